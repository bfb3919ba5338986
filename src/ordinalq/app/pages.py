"""Pages of the web app, one per step."""

import re
from pathlib import Path
from typing import Any

import anyio
import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from ordinalq._utils.text import percent
from ordinalq.app import commands, forms, views
from ordinalq.app.jobs import RUNNING
from ordinalq.app.sessions import Project, Session, Sessions
from ordinalq.app.uploads import MAX_FILE
from ordinalq.classifiers.stacking import BUDGETS
from ordinalq.inference.predict import MIN_RANKED
from ordinalq.quantifiers.catalog import catalog
from ordinalq.samples.labels import MAX_LABELS, MIN_CLASSES
from ordinalq.tables.preview import likely_group
from ordinalq.version import __version__

HERE = Path(__file__).parent


class Site:
    """State of all pages: the sessions, their private folder and the templates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions = Sessions(folder)
        # Figures drawn at the same time.
        self.drawing = anyio.CapacityLimiter(2)
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self._environment.filters["sentence"] = sentence
        # Small prevalences have a digit more, unless it would be a zero.
        self._environment.filters["percent"] = lambda p: percent(p, 2 if 0.00005 <= p < 0.001 else 1)

    def render(self, template: str, project: Project | None = None, **values: Any) -> str:
        """Return a page as text, with the results of a project."""
        found = ("fitted", "options", "answer", "compared", "planned")
        values |= {} if project is None else {name: getattr(project, name) for name in found}
        return self._environment.get_template(template).render(version=__version__, project=project, **values)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        return HTMLResponse(self.render(template, **values), status)


def sentence(text: str) -> str:
    """Return a message with a capital unless it begins with a file name.

    >>> sentence("choose a file first."), sentence("my reviews.csv, line 3: expected 2 columns, got 1.")
    ('Choose a file first.', 'my reviews.csv, line 3: expected 2 columns, got 1.')
    """
    is_file = re.search(r"\.[a-z]", text.partition(": ")[0].partition(", line ")[0])
    return text if is_file else text[:1].upper() + text[1:]


def redirect(project: Project, step: str = "") -> Response:
    """Redirect to a step of a project."""
    return RedirectResponse(f"/w/{project.key}{step}", 303)


async def home(request: Request, site: Site, session: Session) -> Response:
    """Show the start page with the projects of the session."""
    return site.page("home.html", projects=list(session.projects.values()), max_file=MAX_FILE >> 30)


async def current(request: Request, site: Site, project: Project) -> Response:
    """Redirect to the current step of the project."""
    return redirect(project, project.step)


async def job(request: Request, site: Site, project: Project) -> Response:
    """Return the progress of the running job as JSON."""
    found = project.job
    if found is None or found.state != RUNNING:
        return JSONResponse({"state": "ended"})
    return JSONResponse(
        {"state": found.state, "text": found.text, "part": found.part, "seconds": round(found.seconds, 1)}
    )


async def working(request: Request, site: Site, project: Project) -> Response:
    """Show the running job."""
    return site.page("working.html", project=project, job=project.job)


def _step(site: Site, project: Project, template: str, **values: Any) -> Response:
    """Show a step with the error message and notes of the last job."""
    problem, notes = project.shown(project.problem), [project.shown(note) for note in project.notes]
    return site.page(template, project=project, problem=problem, notes=notes, **values)


async def table(request: Request, site: Site, project: Project) -> Response:
    """Show the labelled table and the form for its columns."""
    if project.table is None:
        return redirect(project, "/model")
    values: dict[str, Any] = {}
    if project.preview is not None:
        last = project.choices
        target = forms.likely_target(project.preview) if last is None else last.target
        by = likely_group(project.preview, target) if last is None else last.by or ""
        values = {
            "preview": project.preview,
            "columns": project.preview.columns[: forms.MAX_SHOWN],
            "uses": forms.possible_uses,
            "used": forms.current_use,
            "target": target,
            "by": by,
            "weight": forms.likely_weight(project.preview) if last is None else last.weight or "",
            "methods": catalog(),
            "budgets": BUDGETS,
            "n_classes": (MIN_CLASSES, MAX_LABELS),
            "last": last,
        }
    reading = {"encodings": forms.ENCODINGS, "quotings": forms.QUOTING}
    return _step(site, project, "table.html", **reading, **({"preview": None} | values))


async def model(request: Request, site: Site, project: Project) -> Response:
    """Show the quality of the model."""
    if project.fitted is None:
        return redirect(project, "/table") if project.table is not None else _step(site, project, "failed.html")
    command = (
        ""
        if project.table is None or project.choices is None
        else commands.fit_command(project.table, project.choices, commands.MODEL)
    )
    return _step(site, project, "model.html", command=command)


async def new(request: Request, site: Site, project: Project) -> Response:
    """Show the forms for the table to estimate and its groups."""
    if project.fitted is None:
        return redirect(project, project.step)
    values: dict[str, Any] = {"preview": None}
    if project.sample is not None and project.sample_preview is not None:
        preview, options = project.sample_preview, project.options
        by = options.by or ((likely_group(preview),) if project.answer is None else ())
        # Weights of the model are those of the rows, unless the user has chosen otherwise.
        learned = {name for name, reason in project.fitted.unused.items() if reason == "the weight"}
        known = [name for name in forms.columns_of(preview) if name in learned] if project.answer is None else []
        was_tidied = project.answer is None and project.choices is not None and project.choices.tidy_groups
        values = {
            "preview": preview,
            "tidy": options.tidy_groups or was_tidied,
            "groups": forms.columns_of(preview),
            "periods": forms.periods_of(preview),
            "by": [*by, "", ""][:2],
            "weight": options.weight or (known[0] if known else ""),
            "levels": [f"{level:g}" for level in forms.LEVELS],
            "level": f"{options.level:g}",
        }
    reading = {"encodings": forms.ENCODINGS, "quotings": forms.QUOTING, "max_file": MAX_FILE >> 30}
    return _step(site, project, "new.html", **reading, **values)


async def results(request: Request, site: Site, project: Project) -> Response:
    """Show the estimates of the selected groups."""
    if project.answer is None or project.sample is None:
        return redirect(project, project.step)
    estimates = project.answer.estimates
    wanted = views.GroupSelection.of(request.query_params, estimates.classes)
    which = views.positions(estimates, wanted)
    number = request.query_params.get("page", "1")
    last = max(1, -(-len(which) // views.PER_PAGE))
    page = min(max(int(number) if number.isdecimal() and len(number) < 8 else 1, 1), last)
    shown = which[(page - 1) * views.PER_PAGE : page * views.PER_PAGE]
    compared, values = project.compared, {}
    if compared is not None:
        groups = [] if compared.estimates.keys is None else compared.estimates.keys.labels()
        estimand = compared.comparison.estimand
        values = {
            "compared_names": groups,
            "compare_command": commands.compare_command(
                project.sample, project.options, groups, estimand, commands.MODEL
            ),
        }
    return _step(
        site,
        project,
        "results.html",
        estimates=estimates,
        rows=views.Rows.of(estimates, shown),
        wanted=wanted,
        query=request.url.query,
        left_out=views.drawn(which, wanted)[1],
        figures={
            "trend": f"/w/{project.key}/trend.svg",
            "estimates": f"/w/{project.key}/estimates.svg?{request.url.query}",
            "comparison": f"/w/{project.key}/comparison.svg",
        },
        n_wanted=len(which),
        min_ranked=MIN_RANKED,
        page=page,
        last=last,
        fits=views.fit_counts(estimates),
        command=commands.predict_command(project.sample, project.options, commands.MODEL),
        **values,
    )
