"""The figures of an experiment.

Files of a figure and the look of methods; the paper's claims; critical-difference diagrams; the paper's example
distributions; errors, trends, smoothing and prevalences of an experiment.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordinalq._utils.text import cut
from ordinalq._utils.validation import Floats
from ordinalq.datasets import published
from ordinalq.metrics import nmd
from ordinalq.paper.experiments.outcome import Outcome, rows_of
from ordinalq.paper.report import facts
from ordinalq.paper.report.facts import display_name, group_of
from ordinalq.paper.report.significance import Ranking
from ordinalq.paper.report.tables import FAILS, HOLDS, OPEN, claim_facts, claim_sides, rankings, table_name
from ordinalq.plot.distributions import bars
from ordinalq.plot.style import (
    BLUE,
    FILE_STYLE,
    GRID,
    INK,
    LETTER,
    LOOKS,
    MARKERS,
    NAME_LENGTH,
    SOFT,
    VERMILION,
    Axes,
    Figure,
    Look,
    handle,
    legend_below,
    number_axis,
    tidy,
)
from ordinalq.simplex import jaggedness

# A figure as SVG and PNG, without global state of matplotlib

DPI = 150
# A report can be light or dark: lines and text have its colours.
PAGE_COLORS = {INK: "currentColor", SOFT: "var(--soft)", GRID: "var(--line)"}
# Groups of the paper; each has the same colour in every report.
PAPER_GROUPS = ("non-ordinal", "ordinal", "new ordinal")


@dataclass(frozen=True)
class Plot:
    """Figure of a report: file name, title, caption, SVG and PNG, position.

    It is in a ``section`` of the report, ``after_table`` if that is given. Plots of the same ``fold`` are shown when
    that is opened.
    """

    name: str
    title: str
    caption: str
    svg: str
    png: bytes
    section: str = "figures"
    fold: str = ""
    after_table: str = ""

    def file(self) -> str:
        """Return the SVG with a white ground."""
        return re.sub(r"(<svg [^>]*>)", r'\1<rect width="100%" height="100%" fill="#ffffff"/>', self.svg, count=1)

    def inline(self) -> str:
        """Return the SVG for a report: in its colours, and with unique ids."""
        text = self.svg[self.svg.index("<svg") :]
        for color, of_page in PAGE_COLORS.items():
            text = text.replace(color.lower(), of_page)
        text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
        text = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}.\1"', text)
        text = re.sub(r'href="#([^"]+)"', rf'href="#{self.name}.\1"', text)
        text = re.sub(r"url\(#([^)]+)\)", rf"url(#{self.name}.\1)", text)
        # As wide as the column, but no wider than drawn.
        text = re.sub(r'<svg ([^>]*?)height="[^"]+"', r"<svg \1", text, count=1)
        return re.sub(r'<svg ([^>]*?)width="([^"]+)"', r'<svg \1style="max-width:\2"', text, count=1)


@contextmanager
def sheet(width: float, height: float, *, constrained: bool = True) -> Iterator[tuple["Figure", Callable[..., Plot]]]:
    """Yield an empty figure and the function that makes a Plot of it.

    Width and height are in inches.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def save(name: str, title: str, caption: str, **place: str) -> Plot:
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Title": title})
        figure.savefig(png, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
        return Plot(file_name(name), title, caption, svg.getvalue(), png.getvalue(), **place)

    with mpl.rc_context(FILE_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
        FigureCanvasAgg(figure)
        yield figure, save


def file_name(text: str) -> str:
    """Return a name of a file without special characters.

    >>> file_name("ranks_nmd_APP-OQ")
    'ranks_nmd_app_oq'
    """
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def looks_of(methods: Sequence[str]) -> dict[str, Look]:
    """Return colour, marker and dashes of each method, those of its group."""
    groups = list(dict.fromkeys(map(group_of, methods)))
    if set(groups) & set(PAPER_GROUPS):
        groups = [*PAPER_GROUPS, *(group for group in groups if group not in PAPER_GROUPS)]
    return {method: LOOKS[groups.index(group_of(method)) % len(LOOKS)] for method in methods}


# The paper's claims: two methods of a pair, joined by a line

# By the result of the test: colour and marker.
LOOK = {HOLDS: (BLUE, "o"), FAILS: (VERMILION, "s"), OPEN: (SOFT, "D")}


def claim_plot(outcome: Outcome, measure: str) -> Plot | None:
    """Draw the two errors of each pair as dots on a line.

    There is one panel per protocol. Colours show the result of the test.
    """
    facts = claim_facts(outcome)
    facts = facts[(facts["measure"] == measure) & (facts["result"] != "")]
    if facts.empty:
        return None
    pairs, protocols = list(dict.fromkeys(facts["pair"])), list(dict.fromkeys(facts["protocol"]))
    first, second = claim_sides(outcome)
    with sheet(2.2 + 3.2 * len(protocols), 1.5 + 0.3 * len(pairs)) as (figure, save):
        for axes, protocol in _row_panels(figure, protocols, pairs, measure):
            _draw_pairs(axes, facts[facts["protocol"] == protocol], pairs)
        hollow: Any = handle(first, INK, "o")
        hollow.set(markerfacecolor="white", markeredgewidth=1.2)
        handles = [hollow, *(handle(f"{second}, claim {result}", *look) for result, look in LOOK.items())]
        note = ""
        if np.isfinite(facts["paper_change"]).any():
            handles.append(handle("paper", INK, "|"))
            note = " Small lines: the published means, thin for the first of a pair."
        legend_below(figure, handles)
        return save(
            f"pairs_{measure}",
            f"{first.capitalize() if first != 'LR' else first} and {second}: {measure.upper()}",
            f"Each row is a pair: the open dot is the mean error of the {first} method, the filled mark that of the "
            f"{second} one; a mark to the left of its dot is an improvement. The colour shows whether the paper's "
            "claim holds on these test samples (Wilcoxon)." + note,
            section="results",
            after_table=table_name(outcome),
        )


def _row_panels(figure: "Figure", protocols: Iterable[str], rows: Sequence[str], measure: str) -> Iterator[Any]:
    """Yield the axes of each protocol, side by side, and label them.

    All axes have the same named rows.
    """
    protocols = list(protocols)
    panels = figure.subplots(1, len(protocols), sharey=True, squeeze=False)[0]
    for axes, protocol in zip(panels, protocols, strict=True):
        yield axes, protocol
        axes.set_title(protocol)
        axes.set_xlabel(measure.upper())
        axes.tick_params(length=0)
    panels[0].set_yticks(range(len(rows)), rows)
    panels[0].set_ylim(len(rows) - 0.4, -0.6)


def _draw_pairs(axes: "Axes", facts: pd.DataFrame, pairs: Sequence[str]) -> None:
    """Draw the rows of one panel."""
    drawn: list[float] = []
    for fact in facts.to_dict("records"):
        row, (color, marker) = pairs.index(fact["pair"]), LOOK[fact["result"]]
        ends: list[Any] = [fact["first_mean"], fact["second_mean"]]
        axes.plot(ends, [row, row], color=color, lw=1.6, zorder=2)
        axes.plot(ends[0], row, "o", ms=6, mfc="white", mec=INK, mew=1.2, zorder=3)
        axes.plot(ends[1], row, marker, ms=6, color=color, zorder=4)
        for name, width in (("paper_first", 0.8), ("paper_second", 1.8)):
            if np.isfinite(fact[name]):
                axes.plot([fact[name]] * 2, [row + 0.18, row + 0.42], color=INK, lw=width, zorder=3)
                ends.append(fact[name])
        drawn += ends
    tidy(axes)
    number_axis(axes.xaxis, drawn)


# Critical-difference diagrams: methods on an axis of ranks; bars join those that do not differ (Demsar, 2006)

WIDTH, STEP = 9.6, 0.065  # inches
# Heights below the axis of ranks: the first bar, and the distances of bars and of names.
FIRST_BAR, BAR, NAME = 0.4, 0.28, 0.42
# More ranks than this are not all numbered.
MAX_TICKS = 25


def rank_plots(found: Mapping[tuple[str, str], Ranking], subtitle: str) -> Iterator[Plot]:
    """Draw a diagram for each protocol and measure."""
    for (protocol, measure), ranking in found.items():
        if len(ranking.ranks) > 1:
            title = f"Average ranks, {measure.upper()} under {protocol}"
            yield critical_difference(ranking, f"ranks_{measure}_{protocol}", title, subtitle)


def critical_difference(ranking: Ranking, name: str, title: str, subtitle: str = "") -> Plot:
    """Draw one diagram."""
    order = sorted(ranking.ranks, key=lambda method: ranking.ranks[method])
    looks = looks_of(order)
    k = len(order)
    half = -(-k // 2)
    bars = ranking.groups()
    first_name = 0.8 + BAR * len(bars)
    depth = first_name + NAME * half
    # Room for a name, its rank and the marker between them.
    side = (0.5 + LETTER * max(len(_name(method)) + 7 for method in order)) / WIDTH
    unit = STEP / (WIDTH * (1 - 2 * side)) * (k - 1)
    with sheet(WIDTH, 1.0 + 0.52 * depth, constrained=False) as (figure, save):
        axes = figure.add_axes((side, 0.02, 1 - 2 * side, 0.93))
        axes.set(xlim=(1, k), ylim=(depth, -1.5))
        axes.set_axis_off()
        _draw_axis(axes, k, ranking.difference, subtitle)
        for position, method in enumerate(order):
            left = position < half
            level = first_name + NAME * (position if left else k - 1 - position)
            _draw_method(axes, method, ranking.ranks[method], level, looks[method], unit, left)
        for number, bar in enumerate(bars):
            margin = 0.004 * (k - 1)
            ends = [ranking.ranks[bar[0]] - margin, ranking.ranks[bar[-1]] + margin]
            level = FIRST_BAR + BAR * number
            axes.plot(ends, [level, level], color=INK, lw=3.2, solid_capstyle="butt", clip_on=False)
        return save(
            name,
            title,
            "Methods at their average rank, 1 is best. Thick bars join methods whose ranks do not differ significantly "
            f"(Nemenyi, level {ranking.level:g}, {ranking.n_blocks} blocks).",
            section="ranking",
        )


def _draw_axis(axes: "Axes", k: int, difference: float, subtitle: str) -> None:
    """Draw the axis of ranks and the critical difference above it."""
    small: dict[str, Any] = {"va": "bottom", "fontsize": 8}
    axes.plot([1, k], [0, 0], color=INK, lw=1.1, clip_on=False)
    for tick in range(1, k + 1, 1 if k <= MAX_TICKS else 5):
        axes.plot([tick, tick], [-0.14, 0], color=INK, lw=0.9, clip_on=False)
        axes.text(tick, -0.22, str(tick), ha="center", **small)
    if difference < k - 1:
        axes.plot([1, 1 + difference], [-1.0, -1.0], color=INK, lw=1.4, clip_on=False, marker="|", ms=6)
    wide = "wider than the axis, " if difference >= k - 1 else ""
    axes.text(1, -1.15, f"critical difference {wide}{difference:.2f}", ha="left", **small)
    axes.text(k, -1.15, subtitle, ha="right", color=SOFT, **small)


def _draw_method(axes: "Axes", method: str, rank: float, level: float, look: Look, unit: float, left: bool) -> None:
    """Draw a method at its rank, and a line to its name at the left or right.

    `unit` is a small step.
    """
    color, marker, _ = look
    side = -1 if left else 1
    edge = (axes.get_xlim()[0] if left else axes.get_xlim()[1]) + side * 2 * unit
    axes.plot([rank, rank, edge], [0, level, level], color=SOFT, lw=0.8, clip_on=False, zorder=1)
    axes.plot(rank, 0, marker, ms=5, color=color, clip_on=False, zorder=4)
    axes.plot(edge + side * 1.2 * unit, level, marker, ms=5, color=color, clip_on=False)
    name = f"{_name(method)}  {rank:.2f}" if left else f"{rank:.2f}  {_name(method)}"
    axes.text(edge + side * 3 * unit, level, name, ha="right" if left else "left", va="center", fontsize=9)


def _name(method: str) -> str:
    return cut(display_name(method), NAME_LENGTH)


# The paper's example distributions, and the real ones it shows, with their jaggedness

SIGMA, SUBSCRIPTS = "\N{GREEK SMALL LETTER SIGMA}", "₀₁₂₃₄₅"
FOLD = "The paper's example distributions, and how smooth real ones are"


@cache
def paper_plots() -> tuple[Plot, ...]:
    """Draw the example and real distributions of the paper.

    Their jaggedness is included.
    """
    found = {name.partition("_")[0]: p for name, p in reversed(published.example_distributions().items())}
    examples = {f"{SIGMA}{SUBSCRIPTS[i]}": found[f"sigma{i}"] for i in range(1, 6)}
    smooth_and_jagged = _bars_plot(
        dict(list(examples.items())[:2]),
        "examples_smooth_and_jagged",
        "A smooth and a jagged distribution",
        f"{SIGMA}₁ and {SIGMA}₂ of the paper. Jaggedness ξ₁ sums the squared second differences: small on the left, "
        "where neighbouring classes agree, large on the right.",
    )
    orders = _bars_plot(
        dict(list(examples.items())[2:]),
        "examples_orders",
        "Three orders of jaggedness",
        f"{SIGMA}₃ to {SIGMA}₅ of the paper, with the constant, the straight line and the parabola that fit them best. "
        f"ξ₀ is zero for constant shapes, ξ₁ for straight lines ({SIGMA}₄), ξ₂ for parabolas ({SIGMA}₅, which is "
        "published with a sum of .985).",
        orders=(0, 1, 2),
    )
    amazon = _bars_plot(
        {entry.name: entry.p for entry in published.amazon_categories()},
        "amazon_categories",
        "Star distributions of 28 categories of Amazon reviews",
        "Real ordinal distributions are smooth: every category is far below the mean ξ₁ of uniformly drawn "
        "distributions (.0995 for five classes).",
        across=7,
    )
    fact = _bars_plot(
        {"Crab nebula, FACT telescope": published.fact_spectrum().p},
        "fact_spectrum",
        "Expected energies of gamma rays from the Crab nebula",
        "Flux times effective area in 12 bins of log10(energy / GeV) from 2.4 to 4.2: the distribution behind the "
        "protocol real of Fact-OQ.",
    )
    return smooth_and_jagged, orders, amazon, fact, _ranges_plot()


def _bars_plot(
    distributions: Mapping[str, Floats],
    name: str,
    title: str,
    caption: str,
    orders: Sequence[int] = (1,),
    across: int = 3,
) -> Plot:
    """Draw distributions, `across` of them on one axis.

    A panel for each would take seconds. With several orders of jaggedness, the nearest polynomials of degree 0, 1 and 2
    are drawn over each distribution.
    """
    across = min(across, len(distributions))
    labels, P = list(distributions), list(distributions.values())
    n = len(P[0])
    down = -(-len(labels) // across)
    small, fits = across > 3, len(orders) > 1
    width, height, room = (1.5, 1.25, 1.3) if small else (2.7, 2.4, 1.22)
    with sheet(max(0.6 + width * across, 4.2), 0.3 + height * down) as (figure, save):
        panels = figure.subplots(down, 1, sharey=True, squeeze=False).ravel()
        top = max(float(np.max(p)) for p in P)
        for row, axes in enumerate(panels):
            ticks: list[float] = []
            for column, (label, p) in enumerate(zip(labels[row * across :][:across], P[row * across :], strict=False)):
                x = column * (n + 1.4) + np.arange(1, n + 1)
                bars(axes, p, x)
                for degree, (color, _, dashes) in enumerate(LOOKS[: 3 if fits else 0]):
                    dense = np.linspace(x[0], x[-1], 60)
                    fitted = np.polyval(np.polyfit(x, p, degree), dense)
                    axes.plot(dense, fitted, color=color, ls=dashes, lw=1.6, zorder=4)
                values = "  ".join(f"ξ{SUBSCRIPTS[k]} = {float(jaggedness(p, order=k)):.3f}" for k in orders)
                text = f"{label}\n{values}"
                axes.text(float(x.mean()), top * room, text, ha="center", va="top", fontsize=6.5 if small else 9)
                ticks += x.tolist()
            tidy(axes, grid="y")
            axes.set_xticks(ticks, [str(1 + i % n) for i in range(len(ticks))])
            axes.set(xlim=(0.2, across * (n + 1.4) - 0.6), ylim=(0, top * (room + 0.02)))
            axes.tick_params(length=0, labelsize=7)
        if fits:
            drawn = zip(("constant", "straight line", "parabola"), LOOKS, strict=False)
            legend_below(figure, [handle(label, color, dashes=dashes) for label, (color, _, dashes) in drawn])
        return save(name, title, caption, section="background", fold=FOLD)


def jaggedness_ranges() -> dict[str, tuple[float, float, float]]:
    """Return smallest, mean and largest xi_1 of real distributions by name."""
    found = {}
    for name, row in published.yougov_jaggedness().items():
        survey, _, rest = name.partition(" (n=")
        classes, _, count = rest.rstrip(")").partition(", ")
        label = f"YouGov, {survey.capitalize()}: {count.split()[0]}, n = {classes}"
        found[label] = (row["min"], row["mean"], row["max"])
    xi = [float(jaggedness(entry.p)) for entry in published.amazon_categories()]
    found[f"Amazon reviews: {len(xi)}, n = 5"] = (min(xi), float(np.mean(xi)), max(xi))
    crab = float(jaggedness(published.fact_spectrum().p))
    return found | {"FACT, Crab nebula: 1, n = 12": (crab, crab, crab)}


def _ranges_plot() -> Plot:
    """Draw the range of the jaggedness of the real distributions of the paper."""
    ranges = jaggedness_ranges()
    protocols = published.protocols()
    uniform = {5: protocols["Amazon-OQ-BK"]["APP"]["xi1"], 12: protocols["Fact-OQ"]["APP"]["xi1"]}
    with sheet(7.6, 1.0 + 0.34 * len(ranges)) as (figure, save):
        axes = figure.subplots()
        for row, (low, mean, high) in enumerate(ranges.values()):
            axes.plot([low, high], [row, row], color=BLUE, lw=2.2, solid_capstyle="round", zorder=3)
            axes.plot(mean, row, "o", color=BLUE, ms=6, zorder=4)
        for n, xi1 in uniform.items():
            axes.axvline(xi1, color=SOFT, ls=(0, (4, 2)), lw=1, zorder=1)
            axes.text(xi1, -0.75, f"APP, n = {n}", ha="center", va="bottom", fontsize=8, color=SOFT)
        axes.set_yticks(range(len(ranges)), list(ranges))
        axes.set(ylim=(len(ranges) - 0.5, -0.8), xlim=(0, None), xlabel="jaggedness, ξ₁")
        tidy(axes, grid="x")
        axes.tick_params(length=0)
        return save(
            "jaggedness_ranges",
            "Jaggedness of real distributions",
            "Lines: from the smallest to the largest ξ₁ of the distributions in the paper, with their number and that "
            "of the classes, n; dots: their mean. The surveys of YouGov are as published, without their distributions. "
            "Dashed: the mean of uniformly drawn distributions (APP) of 5 and of 12 classes.",
            section="background",
            fold=FOLD,
        )


# The results of an experiment

N_BINS = 10
MAX_POINTS = 150  # dots per panel
MAX_CLASSES = 20  # panels

Errors = Mapping[str, Floats]


def all_plots(outcome: Outcome) -> Iterator[Plot]:
    """Draw every figure that applies to an outcome."""
    for number, measure in enumerate(outcome.measures):
        for draw in (error_plot, claim_plot, shift_plot, jaggedness_plot, smoothing_plot):
            plot = draw(outcome, measure)
            if plot is not None:
                folded = number > 0 and plot.section == "figures"
                yield replace(plot, fold=f"The same for {measure.upper()}") if folded else plot
    yield from filter(None, (prevalence_plot(outcome, protocol) for protocol in outcome.protocols))
    yield from rank_plots(rankings([outcome]), f"{facts.data_name(outcome)}, over test samples")
    yield from paper_plots()


def error_plot(outcome: Outcome, measure: str) -> Plot | None:
    """Draw the mean error of each method with its confidence interval.

    There is one panel per protocol.
    """
    columns = {protocol: facts.results(outcome, protocol, measure) for protocol in outcome.protocols}
    methods = [method for method in outcome.methods if any(method in errors for errors in columns.values())]
    if not methods:
        return None
    looks = looks_of(methods)
    published_means: dict[str, dict[str, float]] = {}
    for protocol in columns:
        # Those of classifiers are of other versions of data and quantifiers.
        cells = {} if facts.compares_classifiers(outcome) else facts.published_cells(outcome, protocol, measure)
        published_means[protocol] = {method: float(cell["mean"]) for method, cell in cells.items() if method in methods}
    with sheet(2.2 + 3.2 * len(columns), 1.3 + 0.24 * len(methods)) as (figure, save):
        for axes, protocol in _row_panels(figure, columns, list(map(display_name, methods)), measure):
            _draw_errors(axes, methods, columns[protocol], published_means[protocol], looks)
        looks_of_groups = {group_of(method): looks[method][:2] for method in methods}
        handles = [handle(group, *look) for group, look in looks_of_groups.items()]
        note = ""
        if any(published_means.values()):
            handles.append(handle("paper", INK, "|"))
            note = " Vertical lines are the paper's means."
        legend_below(figure, handles)
        return save(
            f"error_{measure}",
            f"{measure.upper()} by method",
            "Mean over the test samples with its 95% confidence interval; left is better. Filled marks are not "
            f"significantly worse than the best of the panel (Wilcoxon, p >= {facts.LEVEL}).{note}",
            section="results",
            after_table="ordinal_classifiers" if facts.compares_classifiers(outcome) else measure,
        )


class Trend(NamedTuple):
    """Figure of errors against a property of the true distributions P (B, n).

    The property depends on the distribution of the training set.
    """

    name: str
    title: str
    label: str
    caption: str
    coordinate: Callable[[Floats, Floats], Any]  # of p_train and P, returns (B,)


def smoothing_plot(outcome: Outcome, measure: str) -> Plot | None:
    """Draw the validation error over the smoothing ratio.

    There is a point per tau, a panel per method and a line per protocol.
    """
    paths = {method: tau_paths(outcome, method, measure) for method in outcome.methods}
    paths = {method: found for method, found in paths.items() if found}
    if not paths:
        return None
    taus = sorted({tau for found in paths.values() for path in found.values() for tau in path[0]})
    markers = {tau: MARKERS[i % len(MARKERS)] for i, tau in enumerate(taus)}
    looks = {protocol: LOOKS[i % len(LOOKS)] for i, protocol in enumerate(outcome.protocols)}
    across = min(4, len(paths))
    with sheet(1.0 + 2.4 * across, 1.4 + 2.1 * -(-len(paths) // across)) as (figure, save):
        panels = figure.subplots(-(-len(paths) // across), across, squeeze=False).ravel()
        for axes, (method, found) in zip(panels, paths.items(), strict=False):
            for protocol, (strengths, smoothing, error) in found.items():
                color, _, dashes = looks[protocol]
                axes.plot(smoothing, error, linestyle=dashes, color=color, lw=1.3, zorder=2)
                for tau, x, y in zip(strengths, smoothing, error, strict=True):
                    axes.plot(x, y, markers[tau], ms=6, color=color, mec=INK, mew=0.5, zorder=3)
            axes.axvline(1, color=SOFT, lw=0.9, ls=(0, (1, 2)), zorder=1)
            axes.set_title(display_name(method))
            tidy(axes)
            number_axis(axes.xaxis)
            number_axis(axes.yaxis)
        _outer_labels(panels, len(paths), across, "smoothing ratio", f"validation {measure.upper()}")
        lines = [handle(protocol, look[0], dashes=look[2]) for protocol, look in looks.items()]
        legend_below(figure, lines + [handle(f"τ = {tau:g}", SOFT, marker) for tau, marker in markers.items()])
        return save(
            f"smoothing_{measure}",
            f"Regularization at work: {measure.upper()} over smoothing",
            "Each point is one strength τ of the regularizer, at the selected classifier. The smoothing ratio is the "
            "mean jaggedness ξ₁ of the estimates over that of the truth: at the dotted line both are equally smooth; "
            "to its right estimates are too jagged, to its left oversmoothed. The lowest point of a line is what model "
            "selection takes. Axes differ between the panels.",
        )


def prevalence_plot(outcome: Outcome, protocol: str) -> Plot | None:
    """Draw the estimated over the true prevalence of each class.

    The figure has the best methods.
    """
    measure = outcome.measures[0]
    errors = facts.results(outcome, protocol, measure)
    if not errors:
        return None
    highlighted = _best_of_groups(errors)[:3]
    best = facts.best_of(errors)
    looks = looks_of(outcome.methods)
    classes = [str(name) for name in outcome.about["data"]["classes"]]
    shown = np.unique(np.linspace(0, len(classes) - 1, min(len(classes), MAX_CLASSES)).astype(int))
    found = {method: outcome.distributions(method, protocol, measure) for method in highlighted}
    # Room for the lines and for nearly all dots.
    top = max(float(np.quantile(P, 0.99, axis=0).max()) for pair in found.values() for P in pair)
    across = 5
    down = -(-len(shown) // across)
    with sheet(11.6, 1.3 + 2.1 * down) as (figure, save):
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, k in zip(panels, shown, strict=False):
            axes.plot([0, top], [0, top], color=SOFT, lw=0.8, zorder=1)
            for method, (P_hat, P) in found.items():
                _draw_prevalence(axes, P[:, k], P_hat[:, k], looks[method], dots=method == best)
            axes.set_title(f"class {classes[k]}" if len(classes[k]) < 8 else cut(classes[k], 24))
            axes.set(xlim=(0, top), ylim=(0, top))
            tidy(axes)
        _outer_labels(panels, len(shown), across, "true prevalence", "estimate")
        legend_below(figure, [handle(display_name(m), *looks[m]) for m in highlighted])
        few = "" if len(shown) == len(classes) else f" {len(shown)} of the {len(classes)} classes are shown."
        return save(
            f"prevalence_{protocol}",
            f"Estimated against true prevalence, {protocol}",
            "Lines: mean estimate in groups of samples with similar true prevalence, for the best method of each "
            f"group. Dots: single samples, {display_name(best)}. On the diagonal an estimate is unbiased." + few,
        )


def tau_paths(outcome: Outcome, method: str, measure: str) -> dict[str, tuple[list[float], list[float], list[float]]]:
    """Return tau, smoothing and error by protocol.

    The configurations are those that differ from the selected one only in tau.
    """
    paths = {}
    for protocol in outcome.protocols:
        chosen = rows_of(outcome.selected, method, protocol, measure)
        if chosen.empty or "tau" not in (best := facts.parsed(chosen.iloc[0]["parameters"])):
            continue
        rows = rows_of(outcome.validation, method, protocol, measure)
        points = []
        for row in rows[rows["classifier"] == chosen.iloc[0]["classifier"]].to_dict("records"):
            parameters = facts.parsed(row["parameters"])
            is_same = all(parameters.get(key) == value for key, value in best.items() if key != "tau")
            if is_same and np.isfinite([row["smoothing"], row["error"]]).all():
                points.append((float(parameters["tau"]), float(row["smoothing"]), float(row["error"])))
        if points:
            taus, smoothing, error = (list(column) for column in zip(*sorted(points), strict=True))
            paths[protocol] = (taus, smoothing, error)
    return paths


def binned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the means of x and y in groups of equal number, sorted by x."""
    parts = np.array_split(np.argsort(x, kind="stable"), min(N_BINS, len(x)))
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])


def trend_plot(outcome: Outcome, measure: str, trend: Trend) -> Plot | None:
    """Draw the mean error in groups of samples of similar coordinate.

    There is one panel per protocol.
    """
    columns = {protocol: facts.results(outcome, protocol, measure) for protocol in outcome.protocols}
    columns = {protocol: errors for protocol, errors in columns.items() if errors}
    if not columns:
        return None
    looks = looks_of(outcome.methods)
    # The same methods in all panels: the best of each group under the first protocol.
    highlighted = _best_of_groups(next(iter(columns.values())))
    p_train = np.asarray(outcome.about["data"]["p_train"], dtype=np.float64)
    heights: list[float] = []
    with sheet(2.0 + 3.4 * len(columns), 3.9) as (figure, save):
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, (protocol, errors) in zip(panels, columns.items(), strict=True):
            x = np.asarray(trend.coordinate(p_train, outcome.true_distributions(protocol)))
            for method in sorted(errors, key=lambda one: one in highlighted):
                centres, means = binned(x, errors[method])
                heights += means.tolist()
                color, marker, dashes = looks[method]
                look: dict[str, Any] = {"color": SOFT, "lw": 0.8, "alpha": 0.45, "zorder": 1}
                if method in highlighted:
                    look = {"color": color, "marker": marker, "ls": dashes, "ms": 4.5, "lw": 1.8, "zorder": 3}
                axes.plot(centres, means, **look)
            axes.set_title(protocol)
            axes.set_xlabel(trend.label)
            axes.set_xlim(left=0)
            tidy(axes)
            number_axis(axes.xaxis)
        panels[0].set_ylabel(f"mean {measure.upper()}")
        number_axis(panels[0].yaxis, heights)
        handles = [handle(display_name(m), *looks[m]) for m in highlighted]
        if len(highlighted) < max(len(errors) for errors in columns.values()):
            handles.append(handle("all others", SOFT, dashes="-"))
        legend_below(figure, handles)
        return save(
            f"{trend.name}_{measure}",
            f"{measure.upper()} against {trend.title}",
            f"{trend.caption} Coloured: the best method of each group; grey: all others.",
        )


SHIFT = Trend(
    "shift",
    "prior shift",
    "prior shift, NMD of training set and sample",
    "The test samples are sorted by the distance of their true distribution from that of the training set, and cut "
    "into groups of equal number; each point is the mean error of a group. A flat line is a method that prior shift "
    "does not disturb.",
    nmd,
)
JAGGEDNESS = Trend(
    "jaggedness",
    "jaggedness",
    "jaggedness of the truth, ξ₁",
    "As before, the samples sorted by the jaggedness of their true distribution. Methods that assume smoothness gain "
    "on the left and pay on the right.",
    lambda p_train, P: jaggedness(P),
)
shift_plot = partial(trend_plot, trend=SHIFT)
jaggedness_plot = partial(trend_plot, trend=JAGGEDNESS)


def _draw_errors(
    axes: "Axes",
    methods: Sequence[str],
    errors: Errors,
    published_means: Mapping[str, float],
    looks: Mapping[str, Look],
) -> None:
    """Draw one row per method: mean, confidence interval and published mean.

    The published mean is a line.
    """
    bold = [method for method, p in facts.p_values(errors).items() if p >= facts.LEVEL]
    drawn = list(published_means.values())
    for row, method in enumerate(methods):
        if row and group_of(method) != group_of(methods[row - 1]):
            axes.axhline(row - 0.5, color=SOFT, lw=0.8)
        if method in published_means:
            axes.plot([published_means[method]] * 2, [row - 0.32, row + 0.32], color=INK, lw=1.4, zorder=3)
        if method in errors:
            (color, marker, _), column = looks[method], errors[method]
            # Half of the 95% confidence interval of the mean.
            half = float(1.96 * np.std(column, ddof=1) / np.sqrt(len(column))) if len(column) > 1 else 0.0
            mean = float(np.mean(column))
            drawn += [mean - half, mean + half]
            filled: dict[str, Any] = {"mfc": color if method in bold else "none", "mew": 1.4, "ms": 6}
            axes.errorbar(
                mean, row, xerr=half, fmt=marker, color=color, elinewidth=1.4, capsize=2.5, zorder=4, **filled
            )
    tidy(axes)
    number_axis(axes.xaxis, drawn)


def _draw_prevalence(axes: "Axes", true: Floats, estimate: Floats, look: Look, *, dots: bool) -> None:
    """Draw the mean estimate of one class over its true prevalence.

    With `dots`, single samples are drawn as dots.
    """
    color, marker, dashes = look
    if dots:
        some = np.linspace(0, len(true) - 1, min(len(true), MAX_POINTS)).astype(int)
        axes.plot(true[some], estimate[some], ".", ms=4, mew=0, color=color, alpha=0.4, zorder=2)
    axes.plot(*binned(true, estimate), linestyle=dashes, marker=marker, ms=3, color=color, lw=1.3, zorder=3)


def _best_of_groups(errors: Errors) -> list[str]:
    """Return the method with the smallest mean error of each group."""
    groups: dict[str, list[str]] = {}
    for method in errors:
        groups.setdefault(group_of(method), []).append(method)
    return [facts.best_of(errors, group) for group in groups.values()]


def _outer_labels(panels: Any, number: int, across: int, below: str, left: str) -> None:
    """Label the outer axes of the panels and remove unused panels.

    Outer axes have no panel below or no panel to the left.
    """
    for axes in panels[number:]:
        axes.set_axis_off()
    for position, axes in enumerate(panels[:number]):
        if position + across >= number:
            axes.set_xlabel(below)
            axes.tick_params(labelbottom=True)
        if position % across == 0:
            axes.set_ylabel(left)
