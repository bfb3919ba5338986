"""Actions of the web app: receive files, start jobs, send results."""

import base64
import secrets
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ordinalq.app import commands, forms, jobs, views, work
from ordinalq.app.pages import HERE, Site, go
from ordinalq.app.sessions import BUSY, Session, Walk
from ordinalq.app.uploads import MODEL, Refused, form, receive
from ordinalq.app.work import Table


async def upload(request: Request, site: Site, session: Session) -> Response:
    """Take a labelled table, or a model that was saved: a new walk."""
    walk = session.begin()
    try:
        given = await receive(request, walk.folder, site.folder)
        walk.title = given.shown
        if given.path.suffix == f".{MODEL}":
            walk.model, walk.step = given.path, "/model"
            arguments = {"model": given.path, "picture": walk.folder / "errors.svg"}
            await begin(site, walk, f"Loading {given.shown}", work.look, arguments, "fitted", step="/model")
        else:
            await labelled_table(site, walk, given)
    except BaseException:
        session.end(walk.key)
        raise
    return go(walk)


async def example(request: Request, site: Site, session: Session) -> Response:
    """Make up the tables of a built-in example: a new walk."""
    name = forms.choice(await form(request), "name", ("reviews", "spectrum"), "")
    walk = session.begin()
    walk.title = f"Example: {name}"
    arguments = {"name": name, "folder": walk.folder}
    keep = ("table", "preview", "choices", "ready", "asked")
    await begin(site, walk, "Making up the example", work.make_and_look, arguments, *keep, step="/table")
    return go(walk)


async def begin(site: Site, walk: Walk, title: str, job: Any, arguments: dict[str, Any], *keep: str, step: str) -> None:
    """Begin a piece of work, if there are not too many, see :meth:`Walk.begin`."""
    site.sessions.check_jobs()
    await run_in_threadpool(walk.begin, title, job, arguments, *keep, step=step)


async def busy(request: Request, site: Site, walk: Walk) -> Response:
    """Raise an error if work is under way."""
    raise Refused(BUSY, 409)


async def labelled_table(site: Site, walk: Walk, table: Table) -> None:
    """Look at a labelled table."""
    walk.table, walk.preview, walk.choices, walk.step = table, None, None, "/table"
    arguments = {"table": table, "whole": True}
    await begin(site, walk, f"Reading {table.shown}", work.preview, arguments, "preview", step="/table")


async def read(request: Request, site: Site, walk: Walk) -> Response:
    """Read a table in another way."""
    fields = await form(request)
    which = forms.choice(fields, "which", ("table", "sample"), "table")
    table = walk.table if which == "table" else walk.sample
    if table is None:
        raise Refused("there is no table yet.")
    encoding = forms.choice(fields, "encoding", forms.ENCODINGS, "utf-8")
    quoting = forms.choice(fields, "quoting", list(forms.QUOTING), "auto")
    changed = table._replace(encoding=encoding, quoting=quoting, sheet=forms.one(fields, "sheet")[:100] or None)
    if which == "table":
        await labelled_table(site, walk, changed)
    else:
        await new_table(site, walk, changed)
    return go(walk)


async def fit(request: Request, site: Site, walk: Walk) -> Response:
    """Fit a model on the labelled table."""
    fields = await form(request)
    if walk.table is None or walk.preview is None:
        raise Refused("choose a labelled table first.")
    choices = forms.choices_of(fields, walk.preview)
    if walk.choices is not None and walk.choices.target == choices.target:
        choices = choices._replace(class_values=walk.choices.class_values)
    arguments = {"table": walk.table, "choices": choices, "folder": walk.folder}
    await begin(site, walk, "Learning from your labels", work.fit, arguments, "model", "fitted", step="/model")
    walk.choices = choices
    return go(walk)


async def sample(request: Request, site: Site, walk: Walk) -> Response:
    """Take the table to estimate."""
    if walk.fitted is None:
        raise Refused("a model comes first.")
    given = await receive(request, walk.folder, site.folder)
    if given.path.suffix == f".{MODEL}":
        given.path.unlink()
        raise Refused(f"{given.shown}: expected a table here, got a model.", 415)
    await new_table(site, walk, given)
    return go(walk)


async def use(request: Request, site: Site, walk: Walk) -> Response:
    """Take the table to estimate of a built-in example."""
    await form(request)
    if walk.fitted is None or "new" not in walk.ready:
        raise Refused("there is no such table.")
    await new_table(site, walk, walk.ready["new"])
    return go(walk)


async def new_table(site: Site, walk: Walk, table: Table) -> None:
    """Look at a table to estimate, in place of an older one."""
    arguments = {"table": table, "whole": False}
    await begin(site, walk, f"Reading {table.shown}", work.preview, arguments, "sample_preview", step="/new")
    walk.sample, walk.sample_preview, walk.step = table, None, "/new"
    walk.answer = walk.compared = walk.planned = None


async def predict(request: Request, site: Site, walk: Walk) -> Response:
    """Estimate the new table."""
    fields = await form(request)
    if walk.sample is None or walk.sample_preview is None or walk.model is None:
        raise Refused("choose a table first.")
    asked = forms.asked_of(fields, walk.sample_preview)
    arguments = {"model": walk.model, "table": walk.sample, "asked": asked, "folder": walk.folder}
    await begin(site, walk, f"Estimating {walk.sample.shown}", work.predict, arguments, "answer", step="/results")
    # What was asked before is forgotten, with its answer: the one is not shown next to the other.
    walk.asked, walk.step = asked, "/new"
    walk.answer = walk.compared = walk.planned = None
    return go(walk)


async def compare(request: Request, site: Site, walk: Walk) -> Response:
    """Compare groups of the new table."""
    fields = await form(request)
    if walk.answer is None or walk.answer.estimates.keys is None or walk.model is None:
        raise Refused("estimate a table first.")
    names = walk.answer.estimates.keys.labels()
    groups = [names[row] for row in forms.rows_of(fields, len(names))]
    # As on the command line: which is higher is a question about populations.
    what = {
        "model": walk.model,
        "groups": groups,
        "level": walk.asked.level,
        "estimand": "population",
        "folder": walk.folder,
    }
    await begin(site, walk, "Comparing groups", work.compare, what, "compared", step="/results#compare")
    return go(walk)


async def plan(request: Request, site: Site, walk: Walk) -> Response:
    """Work out how many rows to label, and draw them."""
    fields = await form(request)
    if walk.answer is None or walk.sample is None or walk.model is None:
        raise Refused("estimate a table first.")
    width = forms.number(fields, "width", 0.2)
    names = [str(label) for label in walk.answer.estimates.classes]
    quantity = forms.choice(fields, "quantity", ["mean", *names], "mean")
    what = {"model": walk.model, "table": walk.sample, "asked": walk.asked, "folder": walk.folder}
    arguments = {**what, "width": width, "quantity": quantity}
    await begin(site, walk, "Drawing rows to label", work.plan, arguments, "planned", step="/results#labels")
    return go(walk)


async def labels(request: Request, site: Site, walk: Walk) -> Response:
    """Take labels of the rows that were drawn, and estimate again."""
    if walk.answer is None or walk.sample is None or walk.model is None:
        raise Refused("estimate a table first.")
    given = await receive(request, walk.folder, site.folder)
    what = {"model": walk.model, "table": walk.sample, "asked": walk.asked, "folder": walk.folder}
    arguments, keep = {**what, "returned": given}, ("sample", "asked", "answer")
    await begin(site, walk, "Estimating again, with the labels", work.label, arguments, *keep, step="/results")
    return go(walk)


async def cancel(request: Request, site: Site, walk: Walk) -> Response:
    """Stop the work under way."""
    await form(request)
    await run_in_threadpool(walk.cancel)
    walk.settle()
    return go(walk)


async def delete(request: Request, site: Site, walk: Walk) -> Response:
    """Stop the work and remove its files."""
    await form(request)
    await run_in_threadpool(request.state.session.end, walk.key)
    return RedirectResponse("/", 303)


# Downloads.


# Files that a walk may have, with their types; no other name leads to a file.
FILES = {
    "model.oq": "application/zip",
    "errors.svg": "image/svg+xml",
    "estimates.csv": "text/csv; charset=utf-8",
    "estimates.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
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
