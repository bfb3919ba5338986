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
# Addresses of pictures, and what they show; their kinds.
PICTURES = {"picture": "estimates", "trend": "trend", "comparison": "comparison"}
KINDS = {"svg": "image/svg+xml", "png": "image/png"}


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
    """Draw estimates of the groups that are shown, their change in time, or the comparison."""
    name, kind = PICTURES.get(request.path_params["name"]), request.path_params["kind"]
    what = drawable(walk, request.query_params).get(name or "")
    if what is None or kind not in KINDS:
        raise Refused("there is no such picture.", 404)
    saved = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'} if "save" in request.query_params else {}
    return Response(await drawn(site, walk, what, kind), media_type=KINDS[kind], headers=saved)


def drawable(walk: Walk, query: Any) -> dict[str, dict[str, Any]]:
    """Return what can be drawn of a walk, by name: the arguments of :func:`ordinalq.app.work.draw`."""
    if walk.answer is None:
        return {}
    estimates, target = walk.answer.estimates, walk.answer.info.target
    wanted = views.Wanted.of(query, estimates.classes)
    which, _ = views.drawn(views.positions(estimates, wanted), wanted)
    found: dict[str, dict[str, Any]] = {}
    if len(which):
        found["estimates"] = {"what": estimates.take(which), "target": target}
    if walk.answer.trend is not None:
        found["trend"] = {"what": estimates, "target": target, "in_time": True}
    if walk.compared is not None:
        found["comparison"] = {"what": walk.compared.comparison, "target": target}
    return found


async def drawn(site: Site, walk: Walk, what: dict[str, Any], kind: str) -> bytes:
    """Draw a picture in another process."""
    path = walk.folder / f"picture-{secrets.token_hex(8)}.{kind}"
    try:
        async with site.drawing:
            await run_in_threadpool(jobs.run, work.draw, {**what, "path": path, "kind": kind})
        return path.read_bytes()
    except ValueError as error:
        raise Refused(walk.shown(str(error)), 500) from error
    finally:
        path.unlink(missing_ok=True)


async def report(request: Request, site: Site, walk: Walk) -> Response:
    """Send all that was found as one page that needs nothing else."""
    if walk.answer is None or walk.fitted is None or walk.sample is None:
        raise Refused("estimate a table first.", 404)
    estimates = walk.answer.estimates
    wanted = views.Wanted.of(request.query_params, estimates.classes)
    which = views.positions(estimates, wanted)
    pictures = {
        name: await drawn(site, walk, what, "svg") for name, what in drawable(walk, request.query_params).items()
    }
    if (errors := walk.folder / "errors.svg").is_file():
        pictures["errors"] = errors.read_bytes()
    page = site.render(
        "report.html",
        walk=walk,
        estimates=estimates,
        rows=views.Rows.of(estimates, which),
        fits=views.fit_counts(estimates),
        # Addresses that have the pictures in themselves.
        pictures={
            name: f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}" for name, svg in pictures.items()
        },
        left_out=views.drawn(which, wanted)[1],
        style=(HERE / "static" / "app.css").read_text(encoding="utf-8"),
        commands=commands.all_commands(walk.table, walk.choices, walk.sample, walk.asked),
    )
    return Response(page, media_type="text/html", headers={"Content-Disposition": 'attachment; filename="report.html"'})
