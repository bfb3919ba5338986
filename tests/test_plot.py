"""Pictures: what they show is what they were given, and they leave nothing behind."""

import io
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import ordinalq as oq
from ordinalq import plot
from ordinalq.inference.bounds import Bounds
from ordinalq.inference.estimates import Estimates
from ordinalq.metrics import nmd
from ordinalq.plot import distributions
from ordinalq.samples.keys import Keys

LONG = [f"a class with the long name {i}" for i in range(12)]


@pytest.fixture
def estimates(rng):
    """Return estimates (40, 5) with lower and upper ends and the truth."""
    P = rng.dirichlet([2, 1, 1, 2, 4], 40)
    return P, P - 0.02, P + 0.03, rng.dirichlet([2, 1, 1, 2, 4], 40)


def rendered(ax):
    """Return the figure as grey values (height, width)."""
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="rgba", dpi=80)
    width, height = (int(x * 80) for x in ax.figure.get_size_inches())
    pixels = np.frombuffer(buffer.getvalue(), dtype=np.uint8).reshape(height, width, 4)[:, :, :3]
    return pixels @ [0.299, 0.587, 0.114]


def extents(texts, figure):
    """Return the boxes of texts in pixels, once everything is laid out."""
    if figure.stale:
        figure.draw_without_rendering()
    return [text.get_window_extent() for text in texts if text.get_text() and text.get_visible()]


def inside(ax):
    """Return whether all that is drawn lies inside the figure, up to two pixels."""
    if ax.figure.stale:
        ax.figure.draw_without_rendering()
    box, page = ax.get_tightbbox(), ax.figure.bbox
    return box.x0 > -2 and box.y0 > -2 and box.x1 < page.x1 + 2 and box.y1 < page.y1 + 2


def every_picture(rng):
    P, T = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(4), 20)
    return {
        "distribution": plot.distribution(P[0], None, P[0] - 0.05, P[0] + 0.05, T[0]),
        "groups": plot.groups(P, n_items=np.arange(20))[0],
        "estimate_against_truth": plot.estimate_against_truth(P, T),
        "many_estimates": plot.estimate_against_truth(np.tile(P, (50, 1)), np.tile(T, (50, 1))),
        "tau_path": plot.tau_path([0, 1e-2, 1], [0.3, 0.2, 0.4], [0.01, 0.01, 0.02], chosen=1e-2),
        "response_matrix": plot.response_matrix(P[:6]),
        "error_by_shift": plot.error_by_shift({"one": P, "two": T}, T, T[0]),
        "bias": plot.bias({"one": P, "two": T}, T),
    }


def test_every_figure_can_be_saved_and_is_not_empty(rng):
    for name, ax in every_picture(rng).items():
        grey = rendered(ax)
        assert grey.min() < 100, name
        assert grey.std() > 5, name


def test_every_figure_fits_into_its_figure(rng):
    for name, ax in every_picture(rng).items():
        assert inside(ax), name


def luminance(color):
    """Return the relative luminance of a colour, as the web's guidelines for contrast have it."""
    c = np.array(mpl.colors.to_rgb(color))
    return np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize(("style", "background"), [("default", "white"), ("dark_background", "black")])
def test_words_and_intervals_stand_out_from_any_background(style, background):
    with mpl.style.context(style):
        bars = plot.distribution([0.2, 0.8], None, [0.1, 0.7], [0.3, 0.9])
        path = plot.tau_path([0.1, 1.0], [0.2, 0.1], chosen=1.0)
    words = [text.get_color() for ax in (bars, path) for text in ax.texts]
    for color in [bars.collections[0].get_color()[0], *words]:
        for behind in (background, bars.patches[0].get_facecolor()):
            low, high = sorted((luminance(color), luminance(behind)))
            assert (high + 0.05) / (low + 0.05) > 4.5, (color, behind)
    # The grid stays behind.
    assert abs(luminance(bars.get_ygridlines()[0].get_color()) - luminance(background)) < 0.3


def test_nothing_is_left_behind(rng):
    before = dict(mpl.rcParams)
    every_picture(rng)
    assert dict(mpl.rcParams) == before


def test_figures_are_shown_by_pyplot_if_the_user_imported_it():
    code = (
        "import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as plt, ordinalq.plot as plot; "
        "ax = plot.tau_path([0, 1], [1, 2]); assert plt.gcf() is ax.figure"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_importing_loads_no_matplotlib_and_drawing_no_pyplot():
    code = (
        "import io, sys, ordinalq.plot as plot; assert 'matplotlib' not in sys.modules; "
        "plot.tau_path([0, 1], [1, 2]).figure.savefig(io.BytesIO()); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_figures_go_into_the_axes_of_the_caller(rng):
    figure = Figure(layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    P = rng.dirichlet(np.ones(4), 8)
    drawn = [
        plot.distribution(P[0], ax=axes[0]),
        plot.estimate_against_truth(P, P, ax=axes[1]),
        plot.tau_path([0, 1], [1, 2], ax=axes[2]),
        plot.response_matrix(P, ax=axes[3]),
    ]
    assert all(a is b for a, b in zip(drawn, axes, strict=True))
    part = figure.subfigures(1, 1)
    assert plot.groups(P, figure=part)[0].figure is part


# One distribution


def test_bars_intervals_and_truth_are_where_they_should_be():
    p, low, high, true = ([0.2, 0.5, 0.3], [0.1, 0.4, 0.35], [0.3, 0.6, 0.4], [0.25, 0.45, 0.3])
    ax = plot.distribution(p, ["bad", "fair", "good"], low, high, true)
    bars, intervals = ax.containers
    assert_allclose([bar.get_height() for bar in bars], p)
    # The last interval does not hold its estimate; it is drawn all the same.
    assert_allclose([segment[:, 1] for segment in intervals.lines[2][0].get_segments()], np.transpose([low, high]))
    markers = [line for line in ax.lines if line.get_marker() == "D"]
    assert_allclose(markers[0].get_ydata(), true)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["bad", "fair", "good"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["estimate", "interval", "truth"]
    assert ax.get_ylim()[1] > 0.6


def test_values_stand_above_the_bars_in_per_cent_and_nothing_dominates():
    ax = plot.distribution([0.0, 0.7, 0.3], lower=[0, 0.6, 0.2], upper=[0.2, 0.8, 0.4], title="kettle")
    assert [text.get_text() for text in ax.texts] == ["0%", "70%", "30%"]
    assert ax.get_legend().get_title().get_text() == "kettle"
    ax.figure.canvas.draw()
    assert ax.get_yticklabels()[0].get_text() == "0%"
    widths = ax.containers[1].lines[2][0].get_linewidths()
    assert widths[0] < widths[1]
    assert not plot.distribution(np.full(20, 0.05)).texts


def test_spectra_are_steps_between_edges():
    p = np.array([0.6, 0.3, 0.1])
    ax = plot.distribution(p, lower=p / 2, upper=p * 1.2, truth=p[::-1], edges=[1, 10, 100, 1000], log=True)
    steps = [patch for patch in ax.patches if hasattr(patch, "get_data")]
    assert_allclose(steps[0].get_data().values, p)
    assert_allclose(steps[1].get_data().values, p[::-1])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["estimate", "interval", "truth"]
    for edges in ([1, 2, 3], [1, 2, 2, 3]):
        with pytest.raises(ValueError, match="edges must be 4 ascending numbers"):
            plot.distribution(p, edges=edges)


def test_estimates_against_the_truth_in_panels(rng):
    T, P = rng.dirichlet(np.ones(4), (2, 30))
    axes = plot.estimate_against_truth(P, T, classes=list("abcd"), panels=True)
    assert [ax.get_title(loc="left") for ax in axes] == list("abcd")
    assert_allclose(axes[2].collections[0].get_offsets(), np.column_stack([T[:, 2], P[:, 2]]))
    assert len({ax.get_xlim() for ax in axes}) == 1
    with pytest.raises(ValueError, match="ax must be None with panels"):
        plot.estimate_against_truth(P, T, ax=axes[0], panels=True)


def test_the_largest_groups_are_drawn_if_there_are_too_many():
    P, sizes = np.full((5, 3), 1 / 3), [10, 500, 20, 400, 300]
    axes = plot.groups(P, names=list("abcde"), n_items=sizes, max_groups=3)
    assert [ax.get_title(loc="left")[0] for ax in axes] == ["b", "d", "e"]
    assert axes[0].figure.get_supxlabel() == "the largest 3 of 5 groups, in their order"


def test_numbers_of_items_are_called_so_and_a_lone_estimate_needs_no_legend():
    ax = plot.distribution([200, 500, 300])
    assert ax.get_ylabel() == "number of items"
    assert ax.get_legend() is None
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "3"]


@pytest.mark.parametrize("n", [2, 5, 12, 15, 40])
@pytest.mark.parametrize("names", ["numbers", "words", "long"])
def test_names_of_classes_do_not_touch(n, names, rng):
    classes = {"numbers": None, "words": [f"Class{i}" for i in range(n)], "long": [f"{LONG[0]}{i}" for i in range(n)]}
    ax = plot.distribution(rng.dirichlet(np.ones(n)), classes[names])
    assert inside(ax)
    labels = ax.get_xticklabels()
    angle = labels[0].get_rotation()
    boxes = extents(labels, ax.figure)
    if angle in (0, 90):
        assert all(a.x1 < b.x0 + 0.5 for a, b in pairwise(boxes))
    else:
        # Parallel slanted lines: what counts is their distance across.
        distance = np.diff([box.x1 for box in boxes]) * np.sin(np.radians(angle))
        assert (distance > labels[0].get_fontsize() * ax.figure.dpi / 72).all()


def test_very_long_names_are_cut():
    ax = plot.distribution(np.full(12, 1 / 12), LONG)
    assert all(len(text.get_text()) <= 22 and text.get_text().endswith("…") for text in ax.get_xticklabels())


# Groups


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_every_group_has_a_panel_on_common_axes(k, estimates):
    P, low, high, true = (values[:k] for values in estimates)
    axes = plot.groups(P, list("abcde"), [f"group {i}" for i in range(k)], low, high, true)
    assert axes.shape == (k,)
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert axes[0].get_ylim()[1] > max(high.max(), true.max())
    for i, ax in enumerate(axes):
        assert ax.get_title(loc="left") == f"group {i}"
        assert_allclose([bar.get_height() for bar in ax.containers[0]], P[i])
    figure = axes[0].figure
    assert len(figure.legends) == 1


@pytest.mark.parametrize("k", [4, 7])
def test_names_of_classes_stand_below_every_column_and_figures_stay_high(k, rng):
    axes = plot.groups(rng.dirichlet(np.ones(12), k), LONG)
    figure = axes[0].figure
    figure.draw_without_rendering()
    lowest = {}
    for ax in axes:
        lowest[round(ax.get_position().x0, 3)] = ax
    for ax in axes:
        named = any(text.get_visible() and text.get_text() for text in ax.get_xticklabels())
        assert named == (ax is lowest[round(ax.get_position().x0, 3)])
        assert ax.get_window_extent().height / figure.dpi > 0.8
    assert inside(axes[0])
    assert inside(axes[-1])


def test_more_groups_than_fit_are_announced(estimates):
    P = estimates[0]
    axes = plot.groups(P, max_groups=6, columns=2)
    assert len(axes) == 6
    assert axes[0].figure.get_supxlabel() == "the first 6 of 40 groups, in their order"
    assert plot.groups(P[:6])[0].figure.get_supxlabel() == ""
    assert len({round(ax.get_position().x0, 3) for ax in axes}) == 2


def test_titles_keep_the_number_of_items(estimates):
    axes = plot.groups(estimates[0][:2], names=["a group with a name that is far too long", "b"], n_items=[12345, 7])
    titles = [ax.get_title(loc="left") for ax in axes]
    assert titles[0].endswith("… (12,345)")
    assert titles[1] == "b (7)"


def test_long_titles_that_differ_at_their_ends_stay_distinct(estimates):
    names = [f"Electronic reader with a light, 16 GB, colour: {colour}" for colour in ("black", "white", "red")]
    titles = [ax.get_title(loc="left") for ax in plot.groups(estimates[0][:3], names=names, n_items=[1, 20, 300])]
    assert len({title.partition(" (")[0] for title in titles}) == 3
    assert titles[0].endswith("black (1)")


def test_legend_names_the_level_and_the_axis_the_classes(estimates):
    P = estimates[0][:4]
    bounds = {"lower": P - 0.01, "upper": P + 0.01}
    figure = plot.groups(P, **bounds, level=0.95, xlabel="stars")[0].figure
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["estimate", "95% interval"]
    assert figure.get_supxlabel() == "stars"
    figure = plot.groups(P, **bounds, xlabel="stars", max_groups=2)[0].figure
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["estimate", "interval"]
    assert figure.get_supxlabel() == "stars (the first 2 of 4 groups, in their order)"
    ax = plot.distribution(P[0], lower=P[0] - 0.01, upper=P[0] + 0.01, level=0.9, xlabel="stars")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["estimate", "90% interval"]
    assert ax.get_xlabel() == "stars"


# Estimates instead of arrays


def estimates_of(P, keys=None, half=None):
    """Return what `predict_groups` or `predict_interval` gives."""
    B = len(P)
    rest = {f"{name}_{end}": None for name in ("cumulative", "mean") for end in ("lower", "upper")}
    return Estimates(
        classes=np.array(["bad", "fair", "good", "fine", "best"]),
        prevalences=P,
        n_items=np.arange(1, B + 1) * 100,
        keys=None if keys is None else Keys.of(pd.Series(keys, dtype=None if None in keys else "Int64"))[0],
        bounds=None if half is None else Bounds(0.9, "sample", P - half, P + half, **rest),
    )


@pytest.mark.parametrize("keys", [["kettle", "mixer", None], [3, 17, 250]])
def test_groups_of_estimates_bring_names_classes_sizes_and_intervals(estimates, keys):
    P = estimates[0][:3]
    axes = plot.groups(estimates_of(P, keys, half=0.01), xlabel="stars")
    names = ["(missing)" if key is None else str(key) for key in keys]
    sizes = [100, 200, 300]
    assert [ax.get_title(loc="left") for ax in axes] == [f"{a} ({b})" for a, b in zip(names, sizes, strict=True)]
    for i, ax in enumerate(axes):
        bars, intervals = ax.containers
        assert_allclose([bar.get_height() for bar in bars], P[i])
        ends = np.transpose([P[i] - 0.01, P[i] + 0.01])
        assert_allclose([segment[:, 1] for segment in intervals.lines[2][0].get_segments()], ends)
    assert [text.get_text() for text in axes[0].get_xticklabels()] == ["bad", "fair", "good", "fine", "best"]
    assert [text.get_text() for text in axes[0].figure.legends[0].get_texts()] == ["estimate", "90% interval"]


def test_one_row_of_estimates_is_a_distribution_and_arguments_win(estimates):
    P = estimates[0][:1]
    ax = plot.distribution(estimates_of(P, half=0.02), list("abcde"), level=0.5, truth=P[0])
    assert [text.get_text() for text in ax.get_xticklabels()] == list("abcde")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["estimate", "50% interval", "truth"]
    other = plot.distribution(estimates_of(P), lower=P - 0.1, upper=P + 0.1)
    assert [text.get_text() for text in other.get_legend().get_texts()] == ["estimate", "interval"]
    points = plot.estimate_against_truth(estimates_of(estimates[0]), estimates[3])
    assert points.get_legend().get_texts()[0].get_text() == "bad"


def test_bounds_of_one_sample_may_have_a_row(estimates):
    P = estimates[0][:1]
    ax = plot.distribution(P[0], list("abcde"), P - 0.02, P + 0.02)
    assert_allclose([bar.get_height() for bar in ax.containers[0]], P[0])
    assert len(ax.containers) == 2


def test_names_are_not_rendered_as_formulas(estimates):
    classes = ["$5 to $9", "$x", "x_1", "a\nb", "\\"]
    axes = plot.groups(estimates[0][:2], classes, ["$1 to $2", "$\\bad$"], xlabel="$y$ of $z")
    assert rendered(axes[0]).std() > 5
    assert axes[0].get_xticklabels()[3].get_text() == "a b"
    assert rendered(plot.distribution(estimates[0][0], classes, xlabel="$y$")).std() > 5
    assert rendered(plot.estimate_against_truth(estimates[0], estimates[3], classes)).std() > 5
    assert rendered(plot.response_matrix(np.eye(5), classes)).std() > 5


def test_tables_are_rejected_instead_of_drawing_their_keys_and_counts():
    frame = pd.DataFrame({"product": [1, 2], "n_items": [10, 20], "bad": [0.2, 0.3], "good": [0.8, 0.7]})
    for call in (plot.groups, plot.distribution, lambda frame: plot.estimate_against_truth(frame, np.eye(2))):
        with pytest.raises(TypeError, match=r"must be estimates or an array, got a DataFrame.*Pass the estimates"):
            call(frame)


# Estimate against truth


def test_points_are_true_and_estimated_shares_of_each_class(estimates):
    P, _, _, T = estimates
    ax = plot.estimate_against_truth(P, T, list("abcde"))
    for i in range(5):
        assert_allclose(ax.collections[i].get_offsets(), np.transpose([T[:, i], P[:, i]]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("abcde")
    assert ax.get_xlim() == ax.get_ylim()
    diagonal = ax.lines[0].get_xydata()
    assert_allclose(diagonal[:, 0], diagonal[:, 1])


def test_classes_differ_in_lightness_and_in_marker(rng):
    P = rng.dirichlet(np.ones(12), 5)
    ax = plot.estimate_against_truth(P, P)
    light = [points.get_facecolor()[0, :3] @ [0.299, 0.587, 0.114] for points in ax.collections]
    assert (np.diff(light) > 0.02).all()
    shapes = {points.get_paths()[0].vertices.tobytes() for points in ax.collections}
    assert len(shapes) == 12


def test_many_points_are_counted_in_hexagons(rng):
    P = rng.dirichlet(np.ones(4), 1000)
    ax = plot.estimate_against_truth(P, P)
    assert ax.collections[0].get_array().sum() == 4000
    assert ax.get_legend() is None


# Tau path


def test_zero_has_a_place_left_of_all_other_taus():
    ax = plot.tau_path([1e-1, 0, 1e-3, 10], [0.3, 0.5, 0.4, 0.6], [0.01, 0.02, 0.03, 0.04])
    at = ax.transData.transform([[tau, 0.4] for tau in (0, 1e-3, 1e-1, 10)])[:, 0]
    steps = np.diff(at)
    assert (steps > 10).all()
    assert_allclose(steps[1], steps[2], rtol=1e-6)
    assert ax.get_window_extent().x0 < at[0]
    assert at[-1] < ax.get_window_extent().x1
    # A line through the positive taus in their order, and a separate point for zero.
    lines = [container.lines[0] for container in ax.containers]
    assert_allclose(lines[0].get_xydata(), [[1e-3, 0.4], [1e-1, 0.3], [10, 0.6]])
    assert any("{0}" in text.get_text() for text in ax.get_xticklabels())


def test_without_zero_the_axis_is_logarithmic():
    ax = plot.tau_path([1e-3, 1e-1], [0.3, 0.5])
    assert ax.get_xscale() == "log"
    assert ax.get_legend() is None


def test_the_chosen_tau_is_ringed_and_named():
    ax = plot.tau_path([0, 1e-3, 1e-1], [0.3, 0.2, 0.5], chosen=1e-3)
    rings = [line for line in ax.lines if line.get_markerfacecolor() == "none" and line.get_markersize() > 10]
    assert_allclose(rings[0].get_xydata(), [[1e-3, 0.2]])
    assert [text.get_text() for text in ax.texts] == ["chosen: 0.001"]
    assert plot.tau_path([0, 1], [0.3, 0.2], chosen=0).texts[0].get_text() == "chosen: 0"


def test_several_paths_differ_in_marker_and_dashes():
    ax = None
    for i in range(3):
        ax = plot.tau_path([0, 1e-3, 1e-1], [0.3 + i, 0.2, 0.5], chosen=1e-3, label=f"path {i}", ax=ax)
    lines = [container.lines[0] for container in ax.containers]
    assert len({line.get_marker() for line in lines}) == len({line.get_linestyle() for line in lines}) == 3
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(labels) == ["chosen", "path 0", "path 1", "path 2"]


# Response matrix


def test_the_heat_map_has_classes_across_and_bins_upwards(rng):
    M = rng.dirichlet(np.ones(4), 3).T
    ax = plot.response_matrix(M, ["bad", "fair", "good"])
    assert_allclose(ax.images[0].get_array(), M)
    assert ax.images[0].origin == "lower"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["bad", "fair", "good"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "2", "3", "4"]
    assert len(ax.texts) == 12
    square = plot.response_matrix(np.eye(3), ["bad", "fair", "good"])
    assert [text.get_text() for text in square.get_yticklabels()] == ["bad", "fair", "good"]
    assert [text.get_text() for text in square.texts if text.get_text()] == ["1.00"] * 3


def test_numbers_are_readable_on_their_cells(rng):
    M = rng.dirichlet(np.ones(6), 6).T
    ax = plot.response_matrix(M)
    image = ax.images[0]
    for text in ax.texts:
        j, i = text.get_position()
        cell = np.array(image.cmap(image.norm(M[i, j]))[:3]) @ [0.299, 0.587, 0.114]
        ink = np.array(mpl.colors.to_rgb(text.get_color())) @ [0.299, 0.587, 0.114]
        assert abs(ink - cell) > 0.3


def test_large_matrices_have_no_numbers(rng):
    ax = plot.response_matrix(rng.random((100, 12)), LONG)
    assert len(ax.texts) == 0
    assert len(ax.get_yticks()) <= 30
    assert inside(ax)


def test_more_of_the_heat_map_is_darker_or_lighter_in_grey_too():
    ax = plot.response_matrix(np.linspace(0, 1, 20).reshape(4, 5))
    image = ax.images[0]
    light = image.cmap(np.linspace(0, 1, 50))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(light) > 0).all()


# Mistakes

P3 = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
WRONG = [
    (lambda: plot.distribution(P3), r"p must have shape \(n,\), got shape \(2, 3\)"),
    (lambda: plot.distribution([0.5, -0.5]), "p must be >= 0, got -0.5"),
    (lambda: plot.distribution([0.5, np.nan]), "p must be finite"),
    (lambda: plot.distribution("abc"), "p must be a vector or a matrix of numbers"),
    (lambda: plot.distribution([1.0]), "p must have at least 2 classes, got 1"),
    (lambda: plot.distribution(P3[0], ["a"]), "classes must be 3 names, got 1"),
    (lambda: plot.distribution(P3[0], lower=P3[0]), "lower and upper must be given together"),
    (
        lambda: plot.distribution(P3[0], lower=[0, 0], upper=P3[0]),
        r"lower must have the shape of p, \(3,\), got \(2,\)",
    ),
    (lambda: plot.distribution(P3[0], lower=[1, 1, 1], upper=P3[0]), "lower must not be above upper"),
    (
        lambda: plot.distribution(estimates_of(np.full((2, 5), 0.2))),
        "p must be one distribution, got the estimates of 2 groups; choose one by its key",
    ),
    (lambda: plot.groups(P3[0]), r"estimate must have shape \(B, n\), got shape \(3,\)"),
    (lambda: plot.groups(P3, names=["a"]), "names must be 2 names, got 1"),
    (lambda: plot.groups(P3, n_items=[1]), r"n_items must be one number per group, 2, got shape \(1,\)"),
    (lambda: plot.groups(P3, max_groups=0), "max_groups must be an integer >= 1, got 0"),
    (lambda: plot.groups(P3, columns=1.5), "columns must be an integer >= 1, got 1.5"),
    (lambda: plot.estimate_against_truth(P3, P3[0]), r"truth must have the shape of estimate, \(2, 3\), got \(3,\)"),
    (lambda: plot.estimate_against_truth(P3, None), "truth must be the true distributions"),
    (lambda: plot.tau_path([0, -1], [1, 2]), "taus must be >= 0, got -1"),
    (lambda: plot.tau_path([0, 1], [1, 2, 3]), r"errors must be one number per tau, 2, got shape \(3,\)"),
    (lambda: plot.tau_path([], []), "taus must be finite numbers"),
    (lambda: plot.tau_path([0, 1], [1, 2], chosen=3), "chosen must be one of taus, got 3"),
    (lambda: plot.tau_path(["a"], [1]), "taus must be numbers"),
    (lambda: plot.response_matrix([1, 2]), r"M must have shape \(d, n\), got shape \(2,\)"),
    (lambda: plot.response_matrix(np.eye(3), bins=["a"]), "bins must be 3 names, got 1"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message[:60] for _, message in WRONG])
def test_mistakes_are_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_error_by_shift_shows_the_mean_error_of_equally_many_samples(rng):
    T, P = rng.dirichlet(np.ones(4), 60), rng.dirichlet(np.ones(4), 60)
    ax = plot.error_by_shift({"exact": T, "other": P}, T, np.full(4, 0.25), n_bins=6)
    exact, other = ax.lines
    assert_allclose(exact.get_ydata(), 0)
    assert len(other.get_xdata()) == 6
    assert_allclose(np.mean(other.get_ydata()), nmd(T, P).mean())
    assert (np.diff(other.get_xdata()) > 0).all()


def test_bias_has_a_box_for_every_class_and_method(rng):
    T = rng.dirichlet(np.ones(3), 50)
    shifted = np.clip(T + np.array([0.1, 0, -0.1]), 0, None)
    ax = plot.bias({"exact": T, "shifted": shifted / shifted.sum(axis=1, keepdims=True)}, T, ["low", "mid", "high"])
    assert len(ax.patches) == 6
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["exact", "shifted"]
    heights = [patch.get_path().vertices[:, 1] for patch in ax.patches]
    assert_allclose(np.concatenate(heights[:3]), 0)
    assert heights[3].min() > 0 > heights[5].max()


FEW = oq.inference.IntervalOptions(n_replicates=20)


@pytest.mark.parametrize("fits", [("bad", "doubtful"), ("unlike the training groups",) * 2])
def test_groups_whose_fit_is_not_good_are_marked_in_every_plot(fits, rng):
    y = np.repeat([1, 2, 3], 60)
    q = oq.PACC().fit(y[:, None] + rng.normal(size=(180, 2)), y)
    groups = np.repeat(["2021", "2022", "2023"], 40)
    found = q.predict_groups(rng.normal(2, 1, size=(120, 2)), groups, level=0.9, options=FEW)
    found = replace(found, fit=np.array(["good", *fits]))
    axes = found.plot()
    assert [ax.get_title(loc="left").startswith("! ") for ax in axes] == [False, True, True]
    assert distributions.WARNING in axes[0].figure.get_supxlabel()
    single = found.take([1]).plot()
    box = np.ravel(single)[0].get_legend()
    assert distributions.WARNING in box.get_title().get_text()
    top = plot.trend(found)[0]
    assert distributions.WARNING in [text.get_text() for text in top.get_legend().get_texts()]
    for pair in (("2021", "2022"), ("2021", "2023"), ("2022", "2023")):
        ax = plot.comparison(found.compare(*pair))
        assert distributions.WARNING in ax.get_title(loc="left")
        names = ax.get_ylabel().partition(",")[0].split(" - ")
        assert names == [("" if name == "2021" else "! ") + name for name in pair]
        assert found.provenance.short in ax.figure.get_suptitle()
    ax = plot.comparison(found.compare("2021", "2022", "2023"))
    assert distributions.WARNING in ax.get_title(loc="left")
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["2021 - ! 2022", "2021 - ! 2023", "! 2022 - ! 2023"]
    clean = replace(found, fit=np.array(["good", "good", "too few items"]))
    assert distributions.WARNING not in plot.comparison(clean.compare("2021", "2023")).get_title(loc="left")
    assert not any(ax.get_title(loc="left").startswith("!") for ax in clean.plot())
    assert plot.trend(clean)[0].get_legend() is None


def test_the_series_with_most_items_are_drawn_over_time(rng):
    y = np.repeat([1, 2, 3], 60)
    q = oq.PACC().fit(y[:, None] + rng.normal(size=(180, 2)), y)
    sizes = [3, 4, 5, 6, 7, 8, 9]
    frame = pd.DataFrame({"shop": np.repeat(list("abcdefg"), sizes), "year": "2021"})
    found = q.predict_groups(rng.normal(2, 1, size=(len(frame), 2)), frame, level=0.9, options=FEW)
    ax = plot.trend(found)[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()][:5] == list("cdefg")
    assert ax.get_xlabel() == "those with most items, 5 of 7"
