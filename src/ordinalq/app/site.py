"""What all pages share."""

from pathlib import Path
from typing import Any

import anyio
import jinja2
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ordinalq._utils.text import percent
from ordinalq.app.sessions import Sessions, Walk
from ordinalq.version import __version__

HERE = Path(__file__).parent


class Site:
    """What all pages share: the sessions with their private folder, and how a page is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = Sessions(folder)
        # Pictures that are drawn at the same time.
        self.drawing = anyio.CapacityLimiter(2)
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        # Small shares have a digit more.
        self._environment.filters["percent"] = lambda p: percent(p, 2 if 0 < p < 0.001 else 1)

    def render(self, template: str, walk: Walk | None = None, **values: Any) -> str:
        """Return a page as text, which may show all that was found on a walk."""
        found = ("fitted", "asked", "answer", "compared", "planned")
        values |= {} if walk is None else {name: getattr(walk, name) for name in found}
        return self._environment.get_template(template).render(version=__version__, walk=walk, **values)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        return HTMLResponse(self.render(template, **values), status)


def go(walk: Walk, step: str = "") -> Response:
    """Send the browser to a step of a walk."""
    return RedirectResponse(f"/w/{walk.key}{step}", 303)
