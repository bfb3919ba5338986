"""The paper's example distributions, and the real ones it shows, with their jaggedness."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.datasets import published as reference
from ordinalq.paper.report.picture import Picture, sheet
from ordinalq.plot.distributions import bars
from ordinalq.plot.style import BLUE, LOOKS, SOFT, handle, legend_below, tidy
from ordinalq.simplex import jaggedness

SIGMA, SUBSCRIPTS = "\N{GREEK SMALL LETTER SIGMA}", "₀₁₂₃₄₅"
FOLD = "The paper's example distributions, and how smooth real ones are"


@cache
def paper_pictures() -> tuple[Picture, ...]:
    """Draw the example distributions of the paper, and the real ones it shows, with their jaggedness."""
    return tuple(_paper_pictures())


def _paper_pictures() -> Iterator[Picture]:
    examples = {name.partition("_")[0]: p for name, p in reversed(reference.example_distributions().items())}
    named = {i: f"{SIGMA}{SUBSCRIPTS[i]}" for i in range(1, 6)}
    yield _bars_picture(
        {named[i]: examples[f"sigma{i}"] for i in (1, 2)},
        "examples_smooth_and_jagged",
        "A smooth and a jagged distribution",
        f"{SIGMA}₁ and {SIGMA}₂ of the paper. Jaggedness ξ₁ sums the squared second differences: small on the left, "
        "where neighbouring classes agree, large on the right.",
    )
    yield _bars_picture(
        {named[i]: examples[f"sigma{i}"] for i in (3, 4, 5)},
        "examples_orders",
        "Three orders of jaggedness",
        f"{SIGMA}₃ to {SIGMA}₅ of the paper, with the constant, the straight line and the parabola that fit them best. "
        f"ξ₀ is zero for constant shapes, ξ₁ for straight lines ({SIGMA}₄), ξ₂ for parabolas ({SIGMA}₅, which is "
        "printed with a sum of .985).",
        orders=(0, 1, 2),
        fits=True,
    )
    yield _bars_picture(
        {entry.name: entry.p for entry in reference.amazon_categories()},
        "amazon_categories",
        "Star distributions of 28 categories of Amazon reviews",
        "Real ordinal distributions are smooth: every category is far below the mean ξ₁ of uniformly drawn "
        "distributions (.0995 for five classes).",
        across=7,
    )
    yield _bars_picture(
        {"Crab nebula, FACT telescope": reference.fact_spectrum().p},
        "fact_spectrum",
        "Expected energies of gamma rays from the Crab nebula",
        "Flux times effective area in 12 bins of log10(energy / GeV) from 2.4 to 4.2: the distribution behind the "
        "protocol real of Fact-OQ.",
    )
    yield _ranges_picture()


def _bars_picture(
    distributions: Mapping[str, Floats],
    name: str,
    title: str,
    caption: str,
    orders: Sequence[int] = (1,),
    across: int = 3,
    fits: bool = False,
) -> Picture:
    """Draw distributions, `across` of them on one axis: a panel of its own for each would take seconds.

    With `fits`, the polynomials of degree 0, 1 and 2 that are nearest to each are drawn over it.
    """
    across = min(across, len(distributions))
    labels, P = list(distributions), list(distributions.values())
    n = len(P[0])
    down = -(-len(labels) // across)
    small = across > 3
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
    """Return smallest, mean and largest xi_1 of real distributions: name -> (min, mean, max)."""
    found = {}
    for name, row in reference.yougov_jaggedness().items():
        survey, _, rest = name.partition(" (n=")
        classes, _, count = rest.rstrip(")").partition(", ")
        label = f"YouGov, {survey.capitalize()}: {count.split()[0]}, n = {classes}"
        found[label] = (row["min"], row["mean"], row["max"])
    xi = [float(jaggedness(entry.p)) for entry in reference.amazon_categories()]
    found[f"Amazon reviews: {len(xi)}, n = 5"] = (min(xi), float(np.mean(xi)), max(xi))
    crab = float(jaggedness(reference.fact_spectrum().p))
    return found | {"FACT, Crab nebula: 1, n = 12": (crab, crab, crab)}


def _ranges_picture() -> Picture:
    """Draw the range of the jaggedness of the real distributions that the paper has looked at."""
    ranges = jaggedness_ranges()
    printed = reference.protocols()
    uniform = {5: printed["Amazon-OQ-BK"]["APP"]["xi1"], 12: printed["Fact-OQ"]["APP"]["xi1"]}
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
            "How jagged real distributions are",
            "Lines: from the smallest to the largest ξ₁ of the distributions that the paper has looked at, with their "
            "number and that of the classes, n; dots: their mean. Those of the surveys of YouGov are as printed, whose "
            "distributions are not. Dashed: the mean of uniformly drawn distributions (APP) of 5 and of 12 classes.",
            section="background",
            fold=FOLD,
        )
