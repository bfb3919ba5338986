"""Pages of the web app, one per step."""

from pathlib import Path
from typing import Any

import anyio
import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from ordinalq._utils.text import percent
from ordinalq.app import commands, forms, views
from ordinalq.app.jobs import RUNNING
from ordinalq.app.sessions import Session, Sessions, Walk
from ordinalq.app.uploads import MAX_FILE
from ordinalq.classifiers.stacking import BUDGETS
from ordinalq.inference.predict import MIN_RANKED
from ordinalq.quantifiers.catalog import catalog
from ordinalq.samples.labels import MAX_LABELS, MIN_CLASSES
from ordinalq.tables.preview import likely_group
from ordinalq.version import __version__

# What all pages share.


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
        self._environment.filters["sentence"] = sentence
        # Small prevalences have a digit more, unless it would be a zero.
        self._environment.filters["percent"] = lambda p: percent(p, 2 if 0.00005 <= p < 0.001 else 1)

    def render(self, template: str, walk: Walk | None = None, **values: Any) -> str:
        """Return a page as text, which may show all that was found on a walk."""
        found = ("fitted", "asked", "answer", "compared", "planned")
        values |= {} if walk is None else {name: getattr(walk, name) for name in found}
        return self._environment.get_template(template).render(version=__version__, walk=walk, **values)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        return HTMLResponse(self.render(template, **values), status)


def sentence(text: str) -> str:
    """Return a message with a capital, unless it begins with the name of a file, which is shown as it is.

    >>> sentence("choose a file first."), sentence("my reviews.csv, line 3: expected 2 columns, got 1.")
    ('Choose a file first.', 'my reviews.csv, line 3: expected 2 columns, got 1.')
    """
    is_file = "." in text.partition(": ")[0].partition(", line ")[0].rstrip(".")
    return text if is_file else text[:1].upper() + text[1:]


def go(walk: Walk, step: str = "") -> Response:
    """Send the browser to a step of a walk."""
    return RedirectResponse(f"/w/{walk.key}{step}", 303)


async def home(request: Request, site: Site, session: Session) -> Response:
    """Begin, or go on with what was begun."""
    return site.page("home.html", walks=list(session.walks.values()), max_file=MAX_FILE >> 30)


async def current(request: Request, site: Site, walk: Walk) -> Response:
    """Go where the work has led."""
    return go(walk, walk.step)


async def job(request: Request, site: Site, walk: Walk) -> Response:
    """Report how far the work is."""
    found = walk.job
    if found is None or found.state != RUNNING:
        return JSONResponse({"state": "ended"})
    return JSONResponse(
        {"state": found.state, "text": found.text, "part": found.part, "seconds": round(found.seconds, 1)}
    )


async def working(request: Request, site: Site, walk: Walk) -> Response:
    """Show the work under way."""
    return site.page("working.html", walk=walk, job=walk.job)


def _step(site: Site, walk: Walk, template: str, **values: Any) -> Response:
    """Show a step, with what went wrong in the last one."""
    problem, notes = walk.shown(walk.problem), [walk.shown(note) for note in walk.notes]
    return site.page(template, walk=walk, problem=problem, notes=notes, **values)


async def table(request: Request, site: Site, walk: Walk) -> Response:
    """Show the labelled table, and ask what is what."""
    if walk.table is None:
        return go(walk, "/model")
    values: dict[str, Any] = {}
    if walk.preview is not None:
        last = walk.choices
        target = forms.likely_target(walk.preview) if last is None else last.target
        by = likely_group(walk.preview, target) if last is None else last.by or ""
        values = {
            "preview": walk.preview,
            "columns": walk.preview.columns[: forms.MAX_SHOWN],
            "uses": forms.uses,
            "used": forms.used,
            "target": target,
            "by": by,
            "weight": forms.likely_weight(walk.preview) if last is None else last.weight or "",
            "methods": catalog(),
            "budgets": BUDGETS,
            "n_classes": (MIN_CLASSES, MAX_LABELS),
            "last": last,
        }
    reading = {"encodings": forms.ENCODINGS, "quotings": forms.QUOTING}
    return _step(site, walk, "table.html", **reading, **({"preview": None} | values))


async def model(request: Request, site: Site, walk: Walk) -> Response:
    """State what the model can do."""
    if walk.fitted is None:
        return go(walk, "/table") if walk.table is not None else _step(site, walk, "failed.html")
    command = (
        ""
        if walk.table is None or walk.choices is None
        else commands.fit_command(walk.table, walk.choices, commands.MODEL)
    )
    return _step(site, walk, "model.html", command=command)


async def new(request: Request, site: Site, walk: Walk) -> Response:
    """Ask for the table to estimate, and what is wanted of it."""
    if walk.fitted is None:
        return go(walk, walk.step)
    values: dict[str, Any] = {"preview": None}
    if walk.sample is not None and walk.sample_preview is not None:
        preview, asked = walk.sample_preview, walk.asked
        by = asked.by or ((likely_group(preview),) if walk.answer is None else ())
        # Weights of the model are those of the rows, unless the user has chosen otherwise.
        learned = {name for name, reason in walk.fitted.unused.items() if reason == "the weight"}
        known = [name for name in forms.columns_of(preview) if name in learned] if walk.answer is None else []
        values = {
            "preview": preview,
            "groups": forms.columns_of(preview),
            "periods": forms.periods_of(preview),
            "by": [*by, "", ""][:2],
            "weight": asked.weight or (known[0] if known else ""),
            "levels": [f"{level:g}" for level in forms.LEVELS],
            "level": f"{asked.level:g}",
        }
    reading = {"encodings": forms.ENCODINGS, "quotings": forms.QUOTING, "max_file": MAX_FILE >> 30}
    return _step(site, walk, "new.html", **reading, **values)


async def results(request: Request, site: Site, walk: Walk) -> Response:
    """Show the estimates of the groups that are wanted."""
    if walk.answer is None or walk.sample is None:
        return go(walk, walk.step)
    estimates = walk.answer.estimates
    wanted = views.Wanted.of(request.query_params, estimates.classes)
    which = views.positions(estimates, wanted)
    number = request.query_params.get("page", "1")
    last = max(1, -(-len(which) // views.PER_PAGE))
    page = min(max(int(number) if number.isdecimal() and len(number) < 8 else 1, 1), last)
    shown = which[(page - 1) * views.PER_PAGE : page * views.PER_PAGE]
    compared, values = walk.compared, {}
    if compared is not None:
        groups = [] if compared.estimates.keys is None else compared.estimates.keys.labels()
        estimand = compared.comparison.estimand
        values = {
            "compared_names": groups,
            "compare_command": commands.compare_command(walk.sample, walk.asked, groups, estimand, commands.MODEL),
        }
    return _step(
        site,
        walk,
        "results.html",
        estimates=estimates,
        rows=views.Rows.of(estimates, shown),
        wanted=wanted,
        query=request.url.query,
        left_out=views.drawn(which, wanted)[1],
        pictures={
            "trend": f"/w/{walk.key}/trend.svg",
            "estimates": f"/w/{walk.key}/picture.svg?{request.url.query}",
            "comparison": f"/w/{walk.key}/comparison.svg",
        },
        n_wanted=len(which),
        min_ranked=MIN_RANKED,
        page=page,
        last=last,
        fits=views.fit_counts(estimates),
        command=commands.predict_command(walk.sample, walk.asked, commands.MODEL),
        **values,
    )
