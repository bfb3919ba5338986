"""Actions of the web app: receive files, start jobs, send results."""

import base64
import secrets
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from ordinalq.app import commands, forms, jobs, views, work
from ordinalq.app.pages import HERE, Site, redirect
from ordinalq.app.sessions import BUSY, Project, Session
from ordinalq.app.uploads import MODEL, RequestError, form, receive
from ordinalq.app.work import Table


async def upload(request: Request, site: Site, session: Session) -> Response:
    """Receive a labelled table or a saved model, and start a project."""
    project = session.begin()
    try:
        given = await receive(request, project.folder, site.folder)
        project.title = given.shown
        if given.path.suffix == f".{MODEL}":
            project.model, project.step = given.path, "/model"
            arguments = {"model": given.path, "figure": project.folder / "errors.svg"}
            await begin(site, project, f"Loading {given.shown}", work.load_fitted, arguments, "fitted", step="/model")
        else:
            await labelled_table(site, project, given)
    except BaseException:
        session.end(project.key)
        raise
    return redirect(project)


async def example(request: Request, site: Site, session: Session) -> Response:
    """Write the tables of a built-in example, and start a project."""
    name = forms.choice(await form(request), "name", ("reviews", "spectrum"), "")
    project = session.begin()
    project.title = f"Example: {name}"
    arguments = {"name": name, "folder": project.folder}
    keep = ("table", "preview", "choices", "ready", "options")
    await begin(site, project, "Preparing the example", work.make_example, arguments, *keep, step="/table")
    return redirect(project)


async def begin(
    site: Site, project: Project, title: str, job: Any, arguments: dict[str, Any], *keep: str, step: str
) -> None:
    """Start a job unless too many are running, see :meth:`Project.begin`."""
    site.sessions.check_jobs()
    await run_in_threadpool(project.begin, title, job, arguments, *keep, step=step)


async def busy(request: Request, site: Site, project: Project) -> Response:
    """Raise RequestError: a job is running."""
    raise RequestError(BUSY, 409)


async def labelled_table(site: Site, project: Project, table: Table) -> None:
    """Start the preview of a labelled table."""
    project.table, project.preview, project.choices, project.step = table, None, None, "/table"
    arguments = {"table": table, "whole": True}
    await begin(site, project, f"Reading {table.shown}", work.preview, arguments, "preview", step="/table")


async def read(request: Request, site: Site, project: Project) -> Response:
    """Read a table again with other settings."""
    fields = await form(request)
    which = forms.choice(fields, "which", ("table", "sample"), "table")
    table = project.table if which == "table" else project.sample
    if table is None:
        raise RequestError("no table was uploaded. Upload a table first.")
    encoding = forms.choice(fields, "encoding", forms.ENCODINGS, "utf-8")
    quoting = forms.choice(fields, "quoting", list(forms.QUOTING), "auto")
    changed = table._replace(encoding=encoding, quoting=quoting, sheet=forms.one(fields, "sheet")[:100] or None)
    if which == "table":
        await labelled_table(site, project, changed)
    else:
        await new_table(site, project, changed)
    return redirect(project)


async def fit(request: Request, site: Site, project: Project) -> Response:
    """Fit a model on the labelled table."""
    fields = await form(request)
    if project.table is None or project.preview is None:
        raise RequestError("no labelled table was uploaded. Upload one first.")
    choices = forms.read_choices(fields, project.preview)
    if project.choices is not None and project.choices.target == choices.target:
        choices = choices._replace(class_values=project.choices.class_values)
    arguments = {"table": project.table, "choices": choices, "folder": project.folder}
    await begin(site, project, "Fitting the model", work.fit, arguments, "model", "fitted", step="/model")
    project.choices = choices
    return redirect(project)


async def sample(request: Request, site: Site, project: Project) -> Response:
    """Receive the table to estimate."""
    if project.fitted is None:
        raise RequestError("the project has no model. Fit or upload a model first.")
    given = await receive(request, project.folder, site.folder)
    if given.path.suffix == f".{MODEL}":
        given.path.unlink()
        raise RequestError(f"{given.shown}: expected a table, got a model.", 415)
    await new_table(site, project, given)
    return redirect(project)


async def use(request: Request, site: Site, project: Project) -> Response:
    """Use the new table of a built-in example."""
    await form(request)
    if project.fitted is None or "new" not in project.ready:
        raise RequestError("the project has no example table.")
    await new_table(site, project, project.ready["new"])
    return redirect(project)


async def new_table(site: Site, project: Project, table: Table) -> None:
    """Replace the table to estimate, and start its preview."""
    arguments = {"table": table, "whole": False}
    await begin(site, project, f"Reading {table.shown}", work.preview, arguments, "sample_preview", step="/new")
    project.sample, project.sample_preview, project.step = table, None, "/new"
    project.answer = project.compared = project.planned = None


async def predict(request: Request, site: Site, project: Project) -> Response:
    """Estimate the new table."""
    fields = await form(request)
    if project.sample is None or project.sample_preview is None or project.model is None:
        raise RequestError("no table to estimate was uploaded. Upload one first.")
    options = forms.read_options(fields, project.sample_preview)
    arguments = {"model": project.model, "table": project.sample, "options": options, "folder": project.folder}
    await begin(site, project, f"Estimating {project.sample.shown}", work.predict, arguments, "answer", step="/results")
    # Former options are removed together with their results.
    project.options, project.step = options, "/new"
    project.answer = project.compared = project.planned = None
    return redirect(project)


async def compare(request: Request, site: Site, project: Project) -> Response:
    """Compare groups of the new table."""
    fields = await form(request)
    if project.answer is None or project.answer.estimates.keys is None or project.model is None:
        raise RequestError("the project has no estimates. Estimate a table first.")
    names = project.answer.estimates.keys.labels()
    groups = [names[row] for row in forms.rows_of(fields, len(names))]
    # As on the command line: which is higher is a question about populations.
    what = {
        "model": project.model,
        "groups": groups,
        "level": project.options.level,
        "estimand": "population",
        "folder": project.folder,
    }
    await begin(site, project, "Comparing groups", work.compare, what, "compared", step="/results#compare")
    return redirect(project)


async def plan(request: Request, site: Site, project: Project) -> Response:
    """Compute the number of rows to label, and draw them."""
    fields = await form(request)
    if project.answer is None or project.sample is None or project.model is None:
        raise RequestError("the project has no estimates. Estimate a table first.")
    width = forms.number(fields, "width", 0.2)
    names = [str(label) for label in project.answer.estimates.classes]
    quantity = forms.choice(fields, "quantity", ["mean", *names], "mean")
    what = {"model": project.model, "table": project.sample, "options": project.options, "folder": project.folder}
    arguments = {**what, "width": width, "quantity": quantity}
    await begin(site, project, "Drawing rows to label", work.plan, arguments, "planned", step="/results#labels")
    return redirect(project)


async def labels(request: Request, site: Site, project: Project) -> Response:
    """Receive labels of the rows that were drawn, and estimate again."""
    if project.answer is None or project.sample is None or project.model is None:
        raise RequestError("the project has no estimates. Estimate a table first.")
    given = await receive(request, project.folder, site.folder)
    what = {"model": project.model, "table": project.sample, "options": project.options, "folder": project.folder}
    arguments, keep = {**what, "returned": given}, ("sample", "options", "answer")
    await begin(site, project, "Estimating again with labels", work.label, arguments, *keep, step="/results")
    return redirect(project)


async def cancel(request: Request, site: Site, project: Project) -> Response:
    """Stop the running job."""
    await form(request)
    await run_in_threadpool(project.cancel)
    project.store_result()
    return redirect(project)


async def delete(request: Request, site: Site, project: Project) -> Response:
    """Stop the job of a project and remove its files."""
    await form(request)
    await run_in_threadpool(request.state.session.end, project.key)
    return RedirectResponse("/", 303)


# Downloads.


# Files of a project with their types. Other names are not served.
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
# Shown in the browser, not downloaded.
SHOWN = ("errors.svg",)
# File types of figures.
KINDS = {"svg": "image/svg+xml", "png": "image/png"}


async def file(request: Request, site: Site, project: Project) -> Response:
    """Send one of the files of a project."""
    name = request.path_params["name"]
    if name in EXAMPLES and name in project.ready:
        table = project.ready[name]
        return FileResponse(table.path, media_type="text/csv; charset=utf-8", filename=table.shown)
    path = project.model if name == "model.oq" else project.folder / name
    if name not in FILES or path is None or not path.is_file():
        raise RequestError("file not found.", 404)
    return FileResponse(path, media_type=FILES[name], filename=None if name in SHOWN else name)


async def figure(request: Request, site: Site, project: Project) -> Response:
    """Draw the estimates of the selected groups, their trend, or the comparison."""
    name, kind = request.path_params["name"], request.path_params["kind"]
    what = drawable(project, request.query_params).get(name)
    if what is None or kind not in KINDS:
        raise RequestError("figure not found.", 404)
    saved = {"Content-Disposition": f'attachment; filename="{name}.{kind}"'} if "save" in request.query_params else {}
    return Response(await drawn(site, project, what, kind), media_type=KINDS[kind], headers=saved)


def drawable(project: Project, query: Any) -> dict[str, dict[str, Any]]:
    """Return the arguments of :func:`ordinalq.app.work.draw` by name of the figure."""
    if project.answer is None:
        return {}
    estimates, target = project.answer.estimates, project.answer.info.target
    wanted = views.GroupSelection.of(query, estimates.classes)
    which, _ = views.drawn(views.positions(estimates, wanted), wanted)
    found: dict[str, dict[str, Any]] = {}
    if len(which):
        found["estimates"] = {"what": estimates.take(which), "target": target}
    if project.answer.trend is not None:
        found["trend"] = {"what": estimates, "target": target, "in_time": True}
    if project.compared is not None:
        found["comparison"] = {"what": project.compared.comparison, "target": target}
    return found


async def drawn(site: Site, project: Project, what: dict[str, Any], kind: str) -> bytes:
    """Draw a figure in another process."""
    path = project.folder / f"figure-{secrets.token_hex(8)}.{kind}"
    try:
        async with site.drawing:
            await run_in_threadpool(jobs.run, work.draw, {**what, "path": path, "kind": kind})
        return path.read_bytes()
    except ValueError as error:
        raise RequestError(project.shown(str(error)), 500) from error
    finally:
        path.unlink(missing_ok=True)


async def report(request: Request, site: Site, project: Project) -> Response:
    """Send all results as one HTML file without external resources."""
    if project.answer is None or project.fitted is None or project.sample is None:
        raise RequestError("the project has no estimates. Estimate a table first.", 404)
    estimates = project.answer.estimates
    wanted = views.GroupSelection.of(request.query_params, estimates.classes)
    which = views.positions(estimates, wanted)
    figures = {
        name: await drawn(site, project, what, "svg") for name, what in drawable(project, request.query_params).items()
    }
    if (errors := project.folder / "errors.svg").is_file():
        figures["errors"] = errors.read_bytes()
    page = site.render(
        "report.html",
        project=project,
        estimates=estimates,
        rows=views.Rows.of(estimates, which),
        fits=views.fit_counts(estimates),
        # Data URLs.
        figures={name: f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}" for name, svg in figures.items()},
        left_out=views.drawn(which, wanted)[1],
        style=(HERE / "static" / "app.css").read_text(encoding="utf-8"),
        commands=commands.all_commands(project.table, project.choices, project.sample, project.options),
    )
    return Response(page, media_type="text/html", headers={"Content-Disposition": 'attachment; filename="report.html"'})
