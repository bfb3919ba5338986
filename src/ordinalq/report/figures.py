"""The figures of an experiment, as matplotlib figures without any global state.

Colours differ in lightness and always come with another marker or line, hence figures can be read in grey. What is
drawn in `INK` takes the colour of the text where a page shows the figure.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ordinalq import reference
from ordinalq.evaluation import not_worse_than_best
from ordinalq.experiments.outcome import Outcome
from ordinalq.measures import nmd
from ordinalq.ordinal import jaggedness
from ordinalq.report.significance import Ranking
from ordinalq.report.tables import LEVEL, display_name, group_of, parsed, rankings, results, truth
from ordinalq.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT = "#21262c", "#7d858e"
# A colour, a marker and a line for each group of methods, or for each protocol.
LOOKS = (("#4c86b8", "o", "-"), ("#e09f1f", "s", "--"), ("#c2386b", "D", "-."), ("#3d9970", "^", ":"), (SOFT, "v", "-"))
TAU_MARKERS = ("v", "o", "s", "^", "D", "P", "X", "*")
N_BINS = 10
MAX_POINTS = 150  # dots per panel
SIGMA, SUBSCRIPTS = "\N{GREEK SMALL LETTER SIGMA}", "₀₁₂₃₄₅"
MAX_CLASSES = 20  # panels
DPI = 150
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "svg.hashsalt": "ordinalq",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a class may be called "$x$"
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Picture:
    """A figure as files: name, title, how to read it, and its content as SVG and PNG."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes

    def file(self) -> str:
        """Return the SVG with a white ground."""
        return re.sub(r"(<svg [^>]*>)", r'\1<rect width="100%" height="100%" fill="#ffffff"/>', self.svg, count=1)

    def inline(self) -> str:
        """Return the SVG for a page: ink in the colour of the text, and ids that are unique on the page."""
        text = self.svg[self.svg.index("<svg") :].replace(INK, "currentColor")
        text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
        text = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}.\1"', text)
        text = re.sub(r'href="#([^"]+)"', rf'href="#{self.name}.\1"', text)
        text = re.sub(r"url\(#([^)]+)\)", rf"url(#{self.name}.\1)", text)
        # As wide as the column, but no wider than drawn.
        text = re.sub(r'<svg ([^>]*?)height="[^"]+"', r"<svg \1", text, count=1)
        return re.sub(r'<svg ([^>]*?)width="([^"]+)"', r'<svg \1style="max-width:\2"', text, count=1)


def all_pictures(outcome: Outcome) -> Iterator[Picture]:
    """Draw every figure that applies to an outcome."""
    for measure in outcome.measures:
        yield from _drawn(error_picture, outcome, measure)
        yield from _drawn(shift_picture, outcome, measure)
        yield from _drawn(jaggedness_picture, outcome, measure)
        yield from _drawn(smoothing_picture, outcome, measure)
    for protocol in outcome.protocols:
        yield from _drawn(prevalence_picture, outcome, protocol)
    yield from rank_pictures(rankings([outcome]), f"{outcome.about['data']['name']}, over test samples")
    yield from paper_pictures()


def error_picture(outcome: Outcome, measure: str) -> Picture | None:
    """Draw the mean error of each method with its confidence interval, a panel per protocol."""
    columns = {protocol: results(outcome, protocol, measure) for protocol in outcome.protocols}
    methods = [method for method in outcome.methods if any(method in errors for errors in columns.values())]
    if not methods:
        return None
    looks = _looks(methods)
    paper = reference.results()
    data = outcome.about["experiment"].get("paper")
    with _canvas(2.2 + 3.2 * len(columns), 1.3 + 0.24 * len(methods)) as (figure, save):
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        printed = False
        for axes, (protocol, errors) in zip(panels, columns.items(), strict=True):
            bold = not_worse_than_best(errors, level=LEVEL) if errors else []
            for row, method in enumerate(methods):
                cell = paper.get(display_name(method), {}).get(data, {}).get(protocol, {}).get(measure.upper())
                if cell:
                    printed = True
                    axes.plot([cell["mean"]] * 2, [row - 0.32, row + 0.32], color=INK, lw=1.4, zorder=3)
                if method not in errors:
                    continue
                colour, marker, _ = looks[group_of(method)]
                mean, half = float(np.mean(errors[method])), _half_width(errors[method])
                axes.errorbar(
                    mean,
                    row,
                    xerr=half,
                    fmt=marker,
                    ms=6,
                    color=colour,
                    mfc=colour if method in bold else "none",
                    mew=1.4,
                    elinewidth=1.4,
                    capsize=2.5,
                    zorder=4,
                )
            _number_axis(axes, "x")
            axes.set_title(protocol)
            axes.set_xlabel(measure.upper())
            axes.grid(axis="both", color=SOFT, lw=0.5, alpha=0.28)
            axes.tick_params(length=0)
        panels[0].set_yticks(range(len(methods)), [display_name(method) for method in methods])
        panels[0].set_ylim(len(methods) - 0.4, -0.6)
        _separate_groups(panels, methods)
        handles = _group_handles(looks)
        if printed:
            handles.append(_line_handle("paper", INK, "|", ""))
        _legend(figure, handles)
        return save(
            f"error_{measure}",
            f"{measure.upper()} by method",
            "Mean over the test samples with its 95 % confidence interval; left is better. Filled marks are not "
            f"significantly worse than the best of the panel (Wilcoxon, p >= {LEVEL})."
            + (" Vertical lines are the paper's means." if printed else ""),
        )


def shift_picture(outcome: Outcome, measure: str) -> Picture | None:
    """Draw the error against the shift from the training distribution."""
    p_train = np.asarray(outcome.about["data"]["p_train"], dtype=np.float64)
    return _trend_picture(
        outcome,
        measure,
        lambda P: nmd(p_train, P),
        f"shift_{measure}",
        f"{measure.upper()} against prior shift",
        "prior shift, NMD of training set and sample",
        "The test samples are sorted by how far their true distribution is from that of the training set, and cut into "
        "groups of equal number; each point is the mean error of a group. A flat line is a method that prior shift "
        "does not disturb.",
    )


def jaggedness_picture(outcome: Outcome, measure: str) -> Picture | None:
    """Draw the error against the jaggedness of the true distribution."""
    return _trend_picture(
        outcome,
        measure,
        jaggedness,
        f"jaggedness_{measure}",
        f"{measure.upper()} against jaggedness",
        "jaggedness of the truth, ξ₁",
        "As before, the samples sorted by the jaggedness of their true distribution. Methods that assume smoothness "
        "gain on the left and pay on the right.",
    )


def smoothing_picture(outcome: Outcome, measure: str) -> Picture | None:
    """Draw the validation error over the smoothing ratio, a point per tau, a panel per method, a line per protocol."""
    paths = {method: _tau_paths(outcome, method, measure) for method in outcome.methods}
    paths = {method: found for method, found in paths.items() if found}
    if not paths:
        return None
    taus = sorted({tau for found in paths.values() for path in found.values() for tau in path["tau"]})
    markers = {tau: TAU_MARKERS[i % len(TAU_MARKERS)] for i, tau in enumerate(taus)}
    looks = dict(zip(outcome.protocols, LOOKS, strict=False))
    across = min(4, len(paths))
    down = -(-len(paths) // across)
    with _canvas(1.0 + 2.4 * across, 1.4 + 2.1 * down) as (figure, save):
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for axes in panels[len(paths) :]:
            axes.set_axis_off()
        for axes, (method, found) in zip(panels, paths.items(), strict=False):
            for protocol, path in found.items():
                colour, _, line = looks[protocol]
                axes.plot(path["smoothing"], path["error"], line, color=colour, lw=1.3, zorder=2)
                for tau, x, y in zip(path["tau"], path["smoothing"], path["error"], strict=True):
                    axes.plot(x, y, markers[tau], ms=6, color=colour, mec=INK, mew=0.5, zorder=3)
            axes.axvline(1, color=SOFT, lw=0.9, ls=(0, (1, 2)), zorder=1)
            axes.set_title(display_name(method))
            axes.grid(color=SOFT, lw=0.5, alpha=0.28)
            _plain_ticks(axes)
        _outer_labels(panels, len(paths), across, "smoothing ratio", f"validation {measure.upper()}")
        handles = [_line_handle(protocol, looks[protocol][0], "", looks[protocol][2]) for protocol in looks]
        handles += [_line_handle(f"τ = {tau:g}", SOFT, marker, "") for tau, marker in markers.items()]
        _legend(figure, handles)
        return save(
            f"smoothing_{measure}",
            f"Regularization at work: {measure.upper()} over smoothing",
            "Each point is one strength τ of the regularizer, at the selected classifier. The smoothing ratio is the "
            "mean jaggedness ξ₁ of the estimates over that of the truth: at the dotted line both are equally smooth; "
            "to its right estimates are too jagged, to its left oversmoothed. The lowest point of a line is what model "
            "selection takes. Axes differ between the panels.",
        )


def prevalence_picture(outcome: Outcome, protocol: str) -> Picture | None:
    """Draw the estimated against the true prevalence of each class for the best methods."""
    measure = outcome.measures[0]
    errors = results(outcome, protocol, measure)
    if not errors:
        return None
    highlighted = _best_of_groups(errors)[:3]
    best = min(errors, key=lambda method: float(np.mean(errors[method])))
    looks = _looks(outcome.methods)
    classes = [str(name) for name in outcome.about["data"]["classes"]]
    shown = np.unique(np.linspace(0, len(classes) - 1, min(len(classes), MAX_CLASSES)).astype(int))
    found = {method: outcome.distributions(method, protocol, measure) for method in highlighted}
    # Room for the lines and for nearly all dots.
    top = max(float(np.quantile(P, 0.99, axis=0).max()) for pair in found.values() for P in pair)
    across = 5
    down = -(-len(shown) // across)
    with _canvas(11.6, 1.3 + 2.1 * down) as (figure, save):
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
        for axes in panels[len(shown) :]:
            axes.set_axis_off()
        for axes, k in zip(panels, shown, strict=False):
            axes.plot([0, top], [0, top], color=SOFT, lw=0.8, zorder=1)
            for method in highlighted:
                colour, marker, line = looks[group_of(method)]
                P_hat, P = found[method]
                if method == best:
                    some = np.linspace(0, len(P) - 1, min(len(P), MAX_POINTS)).astype(int)
                    axes.plot(P[some, k], P_hat[some, k], ".", ms=4, mew=0, color=colour, alpha=0.4, zorder=2)
                x, y = _binned(P[:, k], P_hat[:, k])
                axes.plot(x, y, line, marker=marker, ms=3, color=colour, lw=1.3, zorder=3)
            axes.set_title(f"class {classes[k]}" if len(classes[k]) < 8 else classes[k][:24])
            axes.grid(color=SOFT, lw=0.5, alpha=0.28)
            axes.set_xlim(0, top)
            axes.set_ylim(0, top)
        _outer_labels(panels, len(shown), across, "true prevalence", "estimate")
        _legend(figure, [_line_handle(display_name(m), *looks[group_of(m)]) for m in highlighted])
        few = "" if len(shown) == len(classes) else f" {len(shown)} of the {len(classes)} classes are shown."
        return save(
            _file_name(f"prevalence_{protocol}"),
            f"Estimated against true prevalence, {protocol}",
            "Lines: mean estimate in groups of samples with similar true prevalence, for the best method of each "
            f"group. Dots: single samples, {display_name(best)}. On the diagonal an estimate is unbiased." + few,
        )


def rank_pictures(found: Mapping[tuple[str, str], Ranking], title: str) -> Iterator[Picture]:
    """Draw a critical-difference diagram for each protocol and measure."""
    for (protocol, measure), ranking in found.items():
        if len(ranking.ranks) > 1:
            name = _file_name(f"ranks_{measure}_{protocol}")
            yield critical_difference(ranking, name, f"Average ranks, {measure.upper()} under {protocol}", title)


def critical_difference(ranking: Ranking, name: str, title: str, subtitle: str = "") -> Picture:
    """Draw methods on an axis of ranks; bars join those that do not differ (Demsar, 2006)."""
    order = sorted(ranking.ranks, key=lambda method: ranking.ranks[method])
    k = len(order)
    half = -(-k // 2)
    looks = _looks(order)
    bars = ranking.groups()
    first_label = 0.8 + 0.28 * len(bars)
    depth = first_label + 0.42 * half
    with _canvas(9.6, 1.0 + 0.52 * depth, constrained=False) as (figure, save):
        axes = figure.add_axes((0.16, 0.02, 0.68, 0.93))
        axes.set_xlim(1, k)
        axes.set_ylim(depth, -1.5)
        axes.set_axis_off()
        axes.plot([1, k], [0, 0], color=INK, lw=1.1, clip_on=False)
        step = 1 if k <= 25 else 5
        for tick in range(1, k + 1, step):
            axes.plot([tick, tick], [-0.14, 0], color=INK, lw=0.9, clip_on=False)
            axes.text(tick, -0.22, str(tick), ha="center", va="bottom", fontsize=8)
        width = ranking.difference
        if width < k - 1:
            axes.plot([1, 1 + width], [-1.0, -1.0], color=INK, lw=1.4, clip_on=False, marker="|", ms=6)
        wide = "wider than the axis, " if width >= k - 1 else ""
        axes.text(1, -1.15, f"critical difference {wide}{width:.2f}", ha="left", va="bottom", fontsize=8)
        axes.text(k, -1.15, subtitle, ha="right", va="bottom", fontsize=8, color=SOFT)
        for position, method in enumerate(order):
            left = position < half
            level = first_label + 0.42 * (position if left else k - 1 - position)
            value, edge = ranking.ranks[method], 1 - 0.02 * (k - 1) if left else k + 0.02 * (k - 1)
            axes.plot([value, value, edge], [0, level, level], color=SOFT, lw=0.8, clip_on=False, zorder=1)
            colour, marker, _ = looks[group_of(method)]
            axes.plot(value, 0, marker, ms=5, color=colour, clip_on=False, zorder=4)
            side = -1 if left else 1
            axes.plot(edge + side * 0.012 * (k - 1), level, marker, ms=5, color=colour, clip_on=False)
            axes.text(
                edge + side * 0.03 * (k - 1),
                level,
                f"{display_name(method)}  {value:.2f}" if left else f"{value:.2f}  {display_name(method)}",
                ha="right" if left else "left",
                va="center",
                fontsize=9,
            )
        for number, bar in enumerate(bars):
            low, high = ranking.ranks[bar[0]], ranking.ranks[bar[-1]]
            margin = 0.004 * (k - 1)
            level = 0.4 + 0.28 * number
            axes.plot(
                [low - margin, high + margin], [level, level], color=INK, lw=3.2, solid_capstyle="butt", clip_on=False
            )
        return save(
            name,
            title,
            "Methods at their average rank, 1 is best. Thick bars join methods whose ranks do not differ significantly "
            f"(Nemenyi, level {ranking.level:g}, {ranking.n_blocks} blocks).",
        )


@cache
def paper_pictures() -> tuple[Picture, ...]:
    """Draw the example distributions of the paper, and the real ones it shows, with their jaggedness."""
    return tuple(_paper_pictures())


def _paper_pictures() -> Iterator[Picture]:
    examples = {name.partition("_")[0]: p for name, p in reversed(reference.example_distributions().items())}
    yield _bars_picture(
        {f"{SIGMA}{SUBSCRIPTS[i]}": examples[f"sigma{i}"] for i in (1, 2)},
        "examples_smooth_and_jagged",
        "A smooth and a jagged distribution",
        f"{SIGMA}₁ and {SIGMA}₂ of the paper. Jaggedness ξ₁ sums the squared second differences: small on the left, "
        "where neighbouring classes agree, large on the right.",
        orders=(1,),
    )
    yield _bars_picture(
        {f"{SIGMA}{SUBSCRIPTS[i]}": examples[f"sigma{i}"] for i in (3, 4, 5)},
        "examples_orders",
        "Three orders of jaggedness",
        f"{SIGMA}₃ to {SIGMA}₅ of the paper. ξ₀ is zero for constant shapes, ξ₁ for straight lines ({SIGMA}₄), ξ₂ for "
        f"parabolas ({SIGMA}₅, which is printed with a sum of .985).",
        orders=(0, 1, 2),
    )
    yield _bars_picture(
        {entry.name: entry.p for entry in reference.amazon_categories()},
        "amazon_categories",
        "Star distributions of 28 categories of Amazon reviews",
        "Real ordinal distributions are smooth: every category is far below the mean ξ₁ of uniformly drawn "
        "distributions (.0995 for five classes).",
        orders=(1,),
        across=7,
    )
    spectrum = reference.fact_spectrum()
    yield _bars_picture(
        {"Crab nebula, FACT telescope": spectrum.p},
        "fact_spectrum",
        "Expected energies of gamma rays from the Crab nebula",
        "Flux times effective area in 12 bins of log10(energy / GeV) from 2.4 to 4.2: the distribution behind the "
        "protocol real of Fact-OQ.",
        orders=(1,),
    )


def _bars_picture(
    distributions: Mapping[str, Floats],
    name: str,
    title: str,
    caption: str,
    orders: Sequence[int],
    across: int = 3,
) -> Picture:
    """Draw distributions, `across` of them on one axis: a panel of its own for each would take seconds."""
    across = min(across, len(distributions))
    names, P = list(distributions), list(distributions.values())
    n = len(P[0])
    down = -(-len(names) // across)
    small = across > 3
    width, height = (1.5, 1.25) if small else (2.7, 2.4)
    with _canvas(max(0.6 + width * across, 4.2), 0.3 + height * down) as (figure, save):
        panels = figure.subplots(down, 1, sharey=True, squeeze=False).ravel()
        top = max(float(np.max(p)) for p in P)
        for row, axes in enumerate(panels):
            ticks: list[float] = []
            for column, (label, p) in enumerate(zip(names[row * across :][:across], P[row * across :], strict=False)):
                x = column * (n + 1.4) + np.arange(1, n + 1)
                axes.bar(x, p, color=LOOKS[0][0], width=0.82)
                values = "  ".join(f"ξ{SUBSCRIPTS[k]} = {float(jaggedness(p, order=k)):.3f}" for k in orders)
                axes.text(
                    float(x.mean()),
                    top * (1.3 if small else 1.14),
                    f"{label}\n{values}",
                    ha="center",
                    va="top",
                    fontsize=6.5 if small else 9,
                )
                ticks += x.tolist()
            axes.set_xticks(ticks, [str(1 + i % n) for i in range(len(ticks))])
            axes.set_xlim(0.2, across * (n + 1.4) - 0.6)
            axes.set_ylim(0, top * (1.32 if small else 1.16))
            axes.tick_params(length=0, labelsize=7)
        return save(name, title, caption)


def _trend_picture(
    outcome: Outcome,
    measure: str,
    coordinate: Callable[[Floats], Any],
    name: str,
    title: str,
    label: str,
    caption: str,
) -> Picture | None:
    """Draw the mean error in groups of samples of similar coordinate, a panel per protocol."""
    columns = {protocol: results(outcome, protocol, measure) for protocol in outcome.protocols}
    columns = {protocol: errors for protocol, errors in columns.items() if errors}
    if not columns:
        return None
    looks = _looks(outcome.methods)
    # The same methods in all panels: the best of each group under the first protocol.
    highlighted = _best_of_groups(next(iter(columns.values())))
    with _canvas(2.0 + 3.4 * len(columns), 3.9) as (figure, save):
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, (protocol, errors) in zip(panels, columns.items(), strict=True):
            x = np.asarray(coordinate(truth(outcome, protocol)))
            for method in sorted(errors, key=lambda one: one in highlighted):
                centres, means = _binned(x, errors[method])
                if method in highlighted:
                    colour, marker, line = looks[group_of(method)]
                    axes.plot(centres, means, line, marker=marker, ms=4.5, color=colour, lw=1.8, zorder=3)
                else:
                    axes.plot(centres, means, color=SOFT, lw=0.8, alpha=0.45, zorder=1)
            axes.set_title(protocol)
            axes.set_xlabel(label)
            axes.set_xlim(left=0)
            axes.grid(color=SOFT, lw=0.5, alpha=0.28)
            _plain_ticks(axes, "x")
        panels[0].set_ylabel(f"mean {measure.upper()}")
        _number_axis(panels[0], "y")
        handles = [_line_handle(display_name(m), *looks[group_of(m)]) for m in highlighted]
        if len(highlighted) < max(len(errors) for errors in columns.values()):
            handles.append(_line_handle("all others", SOFT, "", "-"))
        _legend(figure, handles)
        return save(name, title, caption + " Coloured: the best method of each group; grey: all others.")


def _tau_paths(outcome: Outcome, method: str, measure: str) -> dict[str, dict[str, list[float]]]:
    """Return protocol -> tau, smoothing, error: the configurations that differ from the selected one in tau only."""
    paths = {}
    for protocol in outcome.protocols:
        chosen = _rows(outcome.selected, method, protocol, measure)
        if chosen.empty or "tau" not in (best := parsed(chosen.iloc[0]["parameters"])):
            continue
        rows = _rows(outcome.validation, method, protocol, measure)
        rows = rows[rows["classifier"] == chosen.iloc[0]["classifier"]]
        points = []
        for row in rows.to_dict("records"):
            parameters = parsed(row["parameters"])
            alike = all(parameters.get(key) == value for key, value in best.items() if key != "tau")
            if alike and np.isfinite([row["smoothing"], row["error"]]).all():
                points.append((float(parameters["tau"]), float(row["smoothing"]), float(row["error"])))
        if points:
            points.sort()
            paths[protocol] = dict(
                zip(("tau", "smoothing", "error"), map(list, zip(*points, strict=True)), strict=True)
            )
    return paths


def _rows(table: pd.DataFrame, method: str, protocol: str, measure: str) -> pd.DataFrame:
    return table[(table["method"] == method) & (table["protocol"] == protocol) & (table["measure"] == measure)]


def _best_of_groups(errors: Mapping[str, Floats]) -> list[str]:
    """Return the method with the smallest mean error of each group."""
    best: dict[str, str] = {}
    for method, column in errors.items():
        group = group_of(method)
        if group not in best or np.mean(column) < np.mean(errors[best[group]]):
            best[group] = method
    return list(best.values())


def _binned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the means of x and y in groups of equal number, sorted by x."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, min(N_BINS, len(order)))
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])


def _half_width(column: Floats) -> float:
    """Return half of the 95 % confidence interval of a mean."""
    return float(1.96 * np.std(column, ddof=1) / np.sqrt(len(column))) if len(column) > 1 else 0.0


def _looks(methods: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    groups = dict.fromkeys(group_of(method) for method in methods)
    known = ["non-ordinal", "ordinal", "new ordinal"]
    # A group looks the same in every report, whatever other groups were run.
    names = [*known, *(group for group in groups if group not in known)] if groups.keys() & set(known) else list(groups)
    return {group: LOOKS[i % len(LOOKS)] for i, group in enumerate(names) if group in groups}


def _separate_groups(panels: Any, methods: Sequence[str]) -> None:
    for row in range(1, len(methods)):
        if group_of(methods[row]) != group_of(methods[row - 1]):
            for axes in panels:
                axes.axhline(row - 0.5, color=SOFT, lw=0.8)


def _outer_labels(panels: Any, number: int, across: int, below: str, left: str) -> None:
    """Name the axes of the panels that have none below, or none to their left."""
    for position, axes in enumerate(panels[:number]):
        if position + across >= number:
            axes.set_xlabel(below)
            axes.tick_params(labelbottom=True)
        if position % across == 0:
            axes.set_ylabel(left)


def _number_axis(axes: "Axes", which: str) -> None:
    """Make an axis logarithmic if its values span a factor of four, and give it few plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    low, high = (axes.dataLim.intervalx if which == "x" else axes.dataLim.intervaly).tolist()
    axis = axes.xaxis if which == "x" else axes.yaxis
    if low > 0 and high / low > 4:
        axes.set_xscale("log") if which == "x" else axes.set_yscale("log")
        few = (1, 2, 5) if high / low < 40 else (1,)
        axis.set_major_locator(LogLocator(subs=few, numticks=8))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def _plain_ticks(axes: "Axes", which: str = "both") -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in [axes.xaxis] if which == "x" else [axes.xaxis, axes.yaxis]:
        axis.set_major_locator(MaxNLocator(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))


def _line_handle(label: str, colour: str, marker: str, line: str) -> Any:
    from matplotlib.lines import Line2D

    size = 10 if marker == "|" else 6
    return Line2D([], [], color=colour, marker=marker or None, ls=line or "none", ms=size, mew=1.4, label=label)


def _group_handles(looks: Mapping[str, tuple[str, str, str]]) -> list[Any]:
    return [_line_handle(group, colour, marker, "") for group, (colour, marker, _) in looks.items()]


def _legend(figure: "Figure", handles: list[Any]) -> None:
    # Inches of the widest entry: its letters, and the line or marker before it.
    widest = max(0.6 + 0.075 * len(handle.get_label()) for handle in handles)
    columns = max(1, min(len(handles), int(figure.get_size_inches()[0] / widest)))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=9)


def _drawn(draw: Callable[..., Picture | None], *arguments: Any) -> Iterator[Picture]:
    picture = draw(*arguments)
    if picture is not None:
        yield picture


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


@contextmanager
def _canvas(width: float, height: float, constrained: bool = True) -> Iterator[tuple["Figure", Callable[..., Picture]]]:
    """Give an empty figure, width and height in inches, and the function that makes a Picture of it."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def save(name: str, title: str, caption: str) -> Picture:
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Title": title})
        figure.savefig(png, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
        return Picture(name, title, caption, svg.getvalue(), png.getvalue())

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
        FigureCanvasAgg(figure)
        yield figure, save
