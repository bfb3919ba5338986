"""Files to take home: models, tables, pictures."""

import base64
import secrets
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from ordinalq.app import commands, jobs, views, work
from ordinalq.app.sessions import Walk
from ordinalq.app.site import HERE, Site
from ordinalq.app.uploads import Refused

# Files that a walk may have, with their types; no other name leads to a file.
FILES = {
    "model.oq": "application/zip",
    "errors.svg": "image/svg+xml",
    "estimates.csv": "text/csv; charset=utf-8",
    "estimates.parquet": "application/vnd.apache.parquet",
    "to_label.csv": "text/csv; charset=utf-8",
    "comparison.csv": "text/csv; charset=utf-8",
}
# Tables of a built-in example.
EXAMPLES = ("labelled", "new")
# Shown within a page rather than saved.
SHOWN = ("errors.svg",)
PICTURES = {"svg": "image/svg+xml", "png": "image/png"}


async def file(request: Request, site: Site, walk: Walk) -> Response:
    """Send one of the files of a walk."""
    name = request.path_params["name"]
    if name in EXAMPLES and name in walk.ready:
        table = walk.ready[name]
        return FileResponse(table.path, media_type="text/csv; charset=utf-8", filename=table.shown)
    path = walk.model if name == "model.oq" else walk.folder / name
    if name not in FILES or path is None or not path.is_file():
        raise Refused("there is no such file.", 404)
    return FileResponse(path, media_type=FILES[name], filename=None if name in SHOWN else name)


async def picture(request: Request, site: Site, walk: Walk) -> Response:
    """Draw the groups that are shown."""
    if walk.answer is None:
        raise Refused("there is nothing to draw yet.", 404)
    estimates = walk.answer.estimates
    wanted = views.Wanted.of(request.query_params, estimates.classes)
    which, _ = views.drawn(views.positions(estimates, wanted), wanted)
    if not len(which):
        raise Refused("there is nothing to draw.", 404)
    return await _drawn(request, site, walk, estimates.take(which), "estimates")


async def trend(request: Request, site: Site, walk: Walk) -> Response:
    """Draw the groups in time."""
    if walk.answer is None or walk.answer.trend is None:
        raise Refused("there is nothing to draw yet.", 404)
    return await _drawn(request, site, walk, walk.answer.estimates, "trend", in_time=True)


async def comparison(request: Request, site: Site, walk: Walk) -> Response:
    """Draw the comparison."""
    if walk.compared is None:
        raise Refused("there is nothing to draw yet.", 404)
    return await _drawn(request, site, walk, walk.compared.comparison, "comparison")


async def report(request: Request, site: Site, walk: Walk) -> Response:
    """Send all that was found as one page that needs nothing else."""
    if walk.answer is None or walk.fitted is None or walk.sample is None:
        raise Refused("estimate a table first.", 404)
    estimates = walk.answer.estimates
    wanted = views.Wanted.of(request.query_params, estimates.classes)
    which = views.positions(estimates, wanted)
    drawn, left_out = views.drawn(which, wanted)
    pictures = {"estimates": await _svg(site, walk, estimates.take(drawn))} if len(drawn) else {}
    if walk.answer.trend is not None:
        pictures["trend"] = await _svg(site, walk, estimates, in_time=True)
    if walk.compared is not None:
        pictures["comparison"] = await _svg(site, walk, walk.compared.comparison)
    if (errors := walk.folder / "errors.svg").is_file():
        pictures["errors"] = _embedded(errors.read_bytes())
    page = site.render(
        "report.html",
        walk=walk,
        answer=walk.answer,
        fitted=walk.fitted,
        estimates=estimates,
        rows=views.Rows.of(estimates, which),
        fits=views.fit_counts(estimates),
        compared=walk.compared,
        planned=walk.planned,
        pictures=pictures,
        left_out=left_out,
        style=(HERE / "static" / "app.css").read_text(encoding="utf-8"),
        commands=commands.all_commands(walk.table, walk.choices, walk.sample, walk.asked),
    )
    return Response(page, media_type="text/html", headers={"Content-Disposition": 'attachment; filename="report.html"'})


async def _svg(site: Site, walk: Walk, what: Any, *, in_time: bool = False) -> str:
    """Return a picture as an address that has it in itself."""
    return _embedded(await _picture(site, walk, what, "svg", in_time=in_time))


def _embedded(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


async def _drawn(request: Request, site: Site, walk: Walk, what: Any, name: str, *, in_time: bool = False) -> Response:
    kind = request.path_params["kind"]
    if kind not in PICTURES:
        raise Refused("there is no such picture.", 404)
    content = await _picture(site, walk, what, kind, in_time=in_time)
    saved = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'} if "save" in request.query_params else {}
    return Response(content, media_type=PICTURES[kind], headers=saved)


async def _picture(site: Site, walk: Walk, what: Any, kind: str, *, in_time: bool = False) -> bytes:
    """Draw estimates or a comparison in another process."""
    assert walk.answer is not None
    path = walk.folder / f"picture-{secrets.token_hex(8)}.{kind}"
    arguments = {"what": what, "target": walk.answer.info.target, "path": path, "kind": kind, "in_time": in_time}
    try:
        async with site.drawing:
            await run_in_threadpool(jobs.run, work.draw, arguments)
        return path.read_bytes()
    except ValueError as error:
        raise Refused(walk.shown(str(error)), 500) from error
    finally:
        path.unlink(missing_ok=True)
