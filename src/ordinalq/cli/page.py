"""The verb that opens a page in the browser."""

from typing import Annotated

import typer

from ordinalq.cli.app import app
from ordinalq.cli.wording import say


@app.command("app")
def page(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve on; 0 takes a free one.")] = 8710,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Serve a page for this machine alone: tables in, distributions with error bars out, in the browser."""
    try:
        from ordinalq.app.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "ordinalq":
            raise
        raise ValueError(
            f"the page needs {error.name}: install ordinalq with the extra `app`, ordinalq[app]."
        ) from error
    serve(port, lambda address: say(f"{address}\nCtrl-C ends it and removes all its files."), browser=not no_browser)
