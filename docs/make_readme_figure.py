"""Draw docs/ordinal_quantification.svg, the figure of the README, for make_figures.py.

Three steps from left to right: reviews with stars, a pile of reviews without, the star distribution of the pile. The
numbers only illustrate the idea: the true values are near those of a real category of reviews, the estimates are
synthetic. The same version of matplotlib writes the same bytes every time.
"""

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.transforms import Affine2D

from ordinalq.plot.style import BAR, BLUE, GRID, INK, ORANGE, SOFT

TRUE = (0.21, 0.09, 0.11, 0.18, 0.41)
ESTIMATE = (0.19, 0.11, 0.12, 0.19, 0.39)
SMOOTH = (0.10, 0.17, 0.24, 0.28, 0.21)
JAGGED = (0.26, 0.04, 0.34, 0.06, 0.30)

# Of the cards and of what is less likely.
LINE, CARD = "#b0b0b0", "#f6f6f6"

WIDTH, HEIGHT = 100, 34  # units of the drawing, a tenth of an inch each
MIDDLE = 13.5  # height of the arrows


def draw():
    """Return the figure."""
    with mpl.rc_context({"font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(WIDTH / 10, HEIGHT / 10))
        ax = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, HEIGHT))
        ax.axis("off")
        labelled_reviews(ax, left=2, bottom=2.2)
        arrow(ax, 25.5, 31.5, "learn")
        unlabelled_pile(ax, left=33.2, bottom=2.6)
        arrow(ax, 54.2, 60.2, "estimate")
        distribution(figure, ax, left=66.5, bottom=4.6)
    return figure


def heading(ax, x, title, subtitle):
    ax.text(x, 31.8, title, ha="center", va="center", fontsize=14, color=INK)
    ax.text(x, 28.9, subtitle, ha="center", va="center", fontsize=10.5, color=SOFT)


def card(ax, x, y, width, text_width, angle=0.0, level=1):
    """Draw a review with two lines of text, turned by `angle`, lower left corner (x, y); return its coordinates."""
    turned = Affine2D().rotate_deg_around(x + width / 2, y + 2.1, angle) + ax.transData
    shape = "round,pad=0,rounding_size=0.7"
    box = FancyBboxPatch((x, y), width, 4.2, boxstyle=shape, fc=CARD, ec=LINE, lw=1.1, zorder=level)
    box.set_transform(turned)
    box.set_clip_on(False)
    ax.add_patch(box)
    for height, length in ((2.8, text_width), (1.4, 0.7 * text_width)):
        ax.plot(
            [x + 1.2, x + 1.2 + length],
            [y + height] * 2,
            color=LINE,
            lw=2.2,
            transform=turned,
            zorder=level,
            solid_capstyle="round",
            clip_on=False,
        )
    return turned


def labelled_reviews(ax, left, bottom):
    heading(ax, left + 11, "Labelled reviews", "stars known")
    full, empty = [], []
    for k, stars in enumerate((3, 2, 4, 1, 5)):
        y = bottom + 4.9 * k
        card(ax, left, y, 22, (9.0, 7.6, 10.0, 8.2, 9.6)[k])
        for s in range(5):
            (full if s < stars else empty).append((left + 13.6 + 1.75 * s, y + 2.1))
    for points, color in ((full, ORANGE), (empty, "white")):
        ax.plot(*zip(*points, strict=True), ls="", marker="*", ms=11, mew=0.9, mec=INK, mfc=color, clip_on=False)


def unlabelled_pile(ax, left, bottom):
    heading(ax, left + 9.7, "Unlabelled pile", "stars unknown")
    places = (
        (8.4, 0.2, 4),
        (0.4, 0.6, -6),
        (4.3, 3.9, 7),
        (8.7, 7.0, -9),
        (0.3, 7.6, 6),
        (4.8, 10.6, -4),
        (8.5, 14.0, 8),
        (0.8, 14.2, -8),
        (4.6, 18.0, 3),
    )
    for k, (dx, dy, angle) in enumerate(places):
        x, y = left + dx, bottom + dy
        turned = card(ax, x, y, 10.5, (5.6, 4.8, 6.2)[k % 3], angle, level=k + 2)
        ax.text(
            x + 8.7,
            y + 2.1,
            "?",
            fontsize=14,
            color=INK,
            ha="center",
            va="center",
            rotation=angle,
            transform=turned,
            zorder=k + 2,
        )


def arrow(ax, start, end, label):
    tip = FancyArrowPatch((start, MIDDLE), (end, MIDDLE), arrowstyle="-|>", mutation_scale=17, lw=2, color=SOFT)
    ax.add_patch(tip)
    ax.text((start + end) / 2, MIDDLE + 2, label, ha="center", va="center", fontsize=10.5, color=SOFT)


def distribution(figure, ax, left, bottom):
    heading(ax, left + 14.5, "Star distribution of the pile", "of the whole, not review by review")
    bars = bare_axes(figure, left, bottom, 20, 21.6)
    bars.bar(range(5), ESTIMATE, width=0.66, color=BAR, edgecolor=BLUE, label="estimate")
    bars.hlines(TRUE, [k - 0.43 for k in range(5)], [k + 0.43 for k in range(5)], color=INK, lw=2.8, label="truth")
    bars.set_xticks(range(5), ["1★", "2★", "3★", "4★", "5★"], fontsize=11, color=INK)
    bars.set_yticks([0, 0.2, 0.4], ["0", "20%", "40%"], fontsize=10, color=SOFT)
    bars.set_ylim(0, 0.46)
    bars.grid(axis="y", color=GRID, lw=0.8)
    bars.set_axisbelow(True)
    bars.legend(
        loc="upper center",
        bbox_to_anchor=(0.4, 0.98),
        fontsize=10.5,
        handlelength=1.2,
        labelspacing=0.4,
        facecolor="white",
        framealpha=1,
        edgecolor="white",
        fancybox=False,
    )
    for y, heights, color, words in (
        (17.2, SMOOTH, BAR, "smooth:\nplausible"),
        (4.6, JAGGED, LINE, "jagged:\nunlikely"),
    ):
        small = bare_axes(figure, left + 23.2, y + 3.6, 8, 4.6)
        small.bar(range(5), heights, width=0.7, color=color)
        small.set(xticks=[], yticks=[])
        ax.text(left + 27.2, y + 3, words, ha="center", va="top", fontsize=10, color=SOFT, linespacing=1.15)


def bare_axes(figure, left, bottom, width, height):
    axes = figure.add_axes((left / WIDTH, bottom / HEIGHT, width / WIDTH, height / HEIGHT))
    axes.patch.set_visible(False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    axes.tick_params(length=0)
    return axes
