"""The figures of an experiment: errors, what they depend on, smoothing, estimates against the truth."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ordinalq._utils.text import cut
from ordinalq._utils.validation import Floats
from ordinalq.metrics import nmd
from ordinalq.paper.experiments.outcome import Outcome, rows_of
from ordinalq.paper.report import facts
from ordinalq.paper.report.claim_figures import claim_picture
from ordinalq.paper.report.paper_figures import paper_pictures
from ordinalq.paper.report.picture import Picture, looks_of, sheet
from ordinalq.paper.report.rank_figures import rank_pictures
from ordinalq.paper.report.rankings import rankings
from ordinalq.plot.style import INK, LOOKS, MARKERS, SOFT, Axes, Look, handle, legend_below, number_axis, tidy
from ordinalq.simplex import jaggedness

N_BINS = 10
MAX_POINTS = 150  # dots per panel
MAX_CLASSES = 20  # panels

Errors = Mapping[str, Floats]


def all_pictures(outcome: Outcome) -> Iterator[Picture]:
    """Draw every figure that applies to an outcome."""
    for number, measure in enumerate(outcome.measures):
        for draw in (error_picture, claim_picture, shift_picture, jaggedness_picture, smoothing_picture):
            picture = draw(outcome, measure)
            if picture is not None:
                folded = number > 0 and picture.section == "figures"
                yield replace(picture, fold=f"The same for {measure.upper()}") if folded else picture
    yield from filter(None, (prevalence_picture(outcome, protocol) for protocol in outcome.protocols))
    yield from rank_pictures(rankings([outcome]), f"{facts.data_name(outcome)}, over test samples")
    yield from paper_pictures()


def error_picture(outcome: Outcome, measure: str) -> Picture | None:
    """Draw the mean error of each method with its confidence interval, a panel per protocol."""
    columns = {protocol: facts.results(outcome, protocol, measure) for protocol in outcome.protocols}
    methods = [method for method in outcome.methods if any(method in errors for errors in columns.values())]
    if not methods:
        return None
    looks = looks_of(methods)
    printed: dict[str, dict[str, float]] = {}
    for protocol in columns:
        # Those of classifiers are of other versions of data and quantifiers.
        cells = {} if facts.compares_classifiers(outcome) else facts.printed_cells(outcome, protocol, measure)
        printed[protocol] = {method: float(cell["mean"]) for method, cell in cells.items() if method in methods}
    with sheet(2.2 + 3.2 * len(columns), 1.3 + 0.24 * len(methods)) as (figure, save):
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, (protocol, errors) in zip(panels, columns.items(), strict=True):
            _draw_errors(axes, methods, errors, printed[protocol], looks)
            axes.set_title(protocol)
            axes.set_xlabel(measure.upper())
        panels[0].set_yticks(range(len(methods)), [facts.display_name(method) for method in methods])
        panels[0].set_ylim(len(methods) - 0.4, -0.6)
        looks_of_groups = {facts.group_of(method): looks[method][:2] for method in methods}
        handles = [handle(group, *look) for group, look in looks_of_groups.items()]
        note = ""
        if any(printed.values()):
            handles.append(handle("paper", INK, "|"))
            note = " Vertical lines are the paper's means."
        legend_below(figure, handles)
        return save(
            f"error_{measure}",
            f"{measure.upper()} by method",
            "Mean over the test samples with its 95 % confidence interval; left is better. Filled marks are not "
            f"significantly worse than the best of the panel (Wilcoxon, p >= {facts.LEVEL}).{note}",
            section="results",
            beside="ordinal_classifiers" if facts.compares_classifiers(outcome) else measure,
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
            axes.set_title(facts.display_name(method))
            _finish(axes, axes.xaxis, axes.yaxis)
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


def prevalence_picture(outcome: Outcome, protocol: str) -> Picture | None:
    """Draw the estimated against the true prevalence of each class for the best methods."""
    measure = outcome.measures[0]
    errors = facts.results(outcome, protocol, measure)
    if not errors:
        return None
    highlighted = _best_of_groups(errors)[:3]
    best = min(errors, key=lambda method: float(np.mean(errors[method])))
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
            _finish(axes)
        _outer_labels(panels, len(shown), across, "true prevalence", "estimate")
        legend_below(figure, [handle(facts.display_name(m), *looks[m]) for m in highlighted])
        few = "" if len(shown) == len(classes) else f" {len(shown)} of the {len(classes)} classes are shown."
        return save(
            f"prevalence_{protocol}",
            f"Estimated against true prevalence, {protocol}",
            "Lines: mean estimate in groups of samples with similar true prevalence, for the best method of each "
            f"group. Dots: single samples, {facts.display_name(best)}. On the diagonal an estimate is unbiased." + few,
        )


def tau_paths(outcome: Outcome, method: str, measure: str) -> dict[str, tuple[list[float], list[float], list[float]]]:
    """Return protocol -> tau, smoothing, error: the configurations that differ from the selected one in tau only."""
    paths = {}
    for protocol in outcome.protocols:
        chosen = rows_of(outcome.selected, method, protocol, measure)
        if chosen.empty or "tau" not in (best := facts.parsed(chosen.iloc[0]["parameters"])):
            continue
        rows = rows_of(outcome.validation, method, protocol, measure)
        points = []
        for row in rows[rows["classifier"] == chosen.iloc[0]["classifier"]].to_dict("records"):
            parameters = facts.parsed(row["parameters"])
            alike = all(parameters.get(key) == value for key, value in best.items() if key != "tau")
            if alike and np.isfinite([row["smoothing"], row["error"]]).all():
                points.append((float(parameters["tau"]), float(row["smoothing"]), float(row["error"])))
        if points:
            taus, smoothing, error = (list(column) for column in zip(*sorted(points), strict=True))
            paths[protocol] = (taus, smoothing, error)
    return paths


def binned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the means of x and y in groups of equal number, sorted by x."""
    parts = np.array_split(np.argsort(x, kind="stable"), min(N_BINS, len(x)))
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])


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
    columns = {protocol: facts.results(outcome, protocol, measure) for protocol in outcome.protocols}
    columns = {protocol: errors for protocol, errors in columns.items() if errors}
    if not columns:
        return None
    looks = looks_of(outcome.methods)
    # The same methods in all panels: the best of each group under the first protocol.
    highlighted = _best_of_groups(next(iter(columns.values())))
    heights: list[float] = []
    with sheet(2.0 + 3.4 * len(columns), 3.9) as (figure, save):
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, (protocol, errors) in zip(panels, columns.items(), strict=True):
            x = np.asarray(coordinate(outcome.true_distributions(protocol)))
            for method in sorted(errors, key=lambda one: one in highlighted):
                centres, means = binned(x, errors[method])
                heights += means.tolist()
                color, marker, dashes = looks[method]
                look: dict[str, Any] = {"color": SOFT, "lw": 0.8, "alpha": 0.45, "zorder": 1}
                if method in highlighted:
                    look = {"color": color, "marker": marker, "ls": dashes, "ms": 4.5, "lw": 1.8, "zorder": 3}
                axes.plot(centres, means, **look)
            axes.set_title(protocol)
            axes.set_xlabel(label)
            axes.set_xlim(left=0)
            _finish(axes, axes.xaxis)
        panels[0].set_ylabel(f"mean {measure.upper()}")
        number_axis(panels[0].yaxis, heights)
        handles = [handle(facts.display_name(m), *looks[m]) for m in highlighted]
        if len(highlighted) < max(len(errors) for errors in columns.values()):
            handles.append(handle("all others", SOFT, dashes="-"))
        legend_below(figure, handles)
        return save(name, title, caption + " Coloured: the best method of each group; grey: all others.")


def _draw_errors(
    axes: "Axes", methods: Sequence[str], errors: Errors, printed: Mapping[str, float], looks: Mapping[str, Look]
) -> None:
    """Draw one row per method: mean and confidence interval, and a line at the printed mean."""
    bold = [method for method, p in facts.p_values(errors).items() if p >= facts.LEVEL]
    drawn = list(printed.values())
    for row, method in enumerate(methods):
        if row and facts.group_of(method) != facts.group_of(methods[row - 1]):
            axes.axhline(row - 0.5, color=SOFT, lw=0.8)
        if method in printed:
            axes.plot([printed[method]] * 2, [row - 0.32, row + 0.32], color=INK, lw=1.4, zorder=3)
        if method in errors:
            (color, marker, _), column = looks[method], errors[method]
            # Half of the 95 % confidence interval of the mean.
            half = float(1.96 * np.std(column, ddof=1) / np.sqrt(len(column))) if len(column) > 1 else 0.0
            mean = float(np.mean(column))
            drawn += [mean - half, mean + half]
            filled: dict[str, Any] = {"mfc": color if method in bold else "none", "mew": 1.4, "ms": 6}
            axes.errorbar(
                mean, row, xerr=half, fmt=marker, color=color, elinewidth=1.4, capsize=2.5, zorder=4, **filled
            )
    _finish(axes)
    number_axis(axes.xaxis, drawn)
    axes.tick_params(length=0)


def _draw_prevalence(axes: "Axes", true: Floats, estimate: Floats, look: Look, *, dots: bool) -> None:
    """Draw the mean estimate of one class over its true share; single samples as dots."""
    color, marker, dashes = look
    if dots:
        some = np.linspace(0, len(true) - 1, min(len(true), MAX_POINTS)).astype(int)
        axes.plot(true[some], estimate[some], ".", ms=4, mew=0, color=color, alpha=0.4, zorder=2)
    axes.plot(*binned(true, estimate), linestyle=dashes, marker=marker, ms=3, color=color, lw=1.3, zorder=3)


def _best_of_groups(errors: Errors) -> list[str]:
    """Return the method with the smallest mean error of each group."""
    groups: dict[str, list[str]] = {}
    for method in errors:
        groups.setdefault(facts.group_of(method), []).append(method)
    return [min(group, key=lambda method: float(np.mean(errors[method]))) for group in groups.values()]


def _finish(axes: "Axes", *plain: Any) -> None:
    """Give axes the common look, and some of them few plain numbers."""
    tidy(axes)
    for axis in plain:
        number_axis(axis)


def _outer_labels(panels: Any, number: int, across: int, below: str, left: str) -> None:
    """Name the axes of the panels that have none below, or none to their left; remove those that are not used."""
    for axes in panels[number:]:
        axes.set_axis_off()
    for position, axes in enumerate(panels[:number]):
        if position + across >= number:
            axes.set_xlabel(below)
            axes.tick_params(labelbottom=True)
        if position % across == 0:
            axes.set_ylabel(left)
