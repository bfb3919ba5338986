"""The figures of docs/groups.md: intervals that do not shrink with the number of items, and few labelled groups.

    ORDINALQ_DATA=FOLDER python benchmarks/group_figures.py docs
    python benchmarks/group_figures.py --tiny        # synthetic groups, into the working folder

Both print their figures as tables. The same version of matplotlib writes the same bytes every time.
"""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import group_data
import matplotlib.pyplot as plt
import numpy as np
import real_groups
from matplotlib.ticker import PercentFormatter

import ordinalq as oq
from ordinalq.plot.style import BLUE, FILE_STYLE, SOFT, VERMILION, tidy

SIZES = (10, 30, 100, 300, 700)
NUMBERS = (5, 10, 20, 50, 100)
# Name, method, with groups in training; colour and marker.
PROMISES = (
    ("PACC, trained without groups", oq.PACC, False, VERMILION, "s"),
    ("GroupBLP, trained with groups", oq.GroupBLP, True, BLUE, "o"),
)


def widths(data, sizes):
    """Return {name: (promised, real)}: half widths of the mean class, and the error that 95% of the groups stay below.

    Each test group is cut down to N items, drawn at random; groups of fewer items are left out.
    """
    rng = np.random.default_rng(0)
    keys, counts = np.unique(data.h, return_counts=True)
    items = [rng.permutation(np.flatnonzero(data.h == key)) for key in keys[counts >= max(sizes)]]
    S, found = real_groups.normalized(data.T), {}
    print("\n| method | items | half width of the mean class | 95% of the errors below | covered |\n|" + "---|" * 5)
    for name, method, with_groups, _, _ in PROMISES:
        quantifier = real_groups.fit(data, method, groups=with_groups)
        lines = []
        for size in sizes:
            samples = oq.Samples.from_index([rows[:size] for rows in items], len(S))
            truth = real_groups.shares(data.z, samples, data.n_classes)
            got = real_groups.answer(quantifier, S, samples)
            error = real_groups.mean_error(got.prevalences, truth)
            covered = real_groups.covered(got.bounds, truth)[1].mean()
            half = (got.bounds.mean_upper - got.bounds.mean_lower).mean() / 2
            lines.append((half, np.quantile(error, 0.95)))
            print(f"| {name} | {size} | {half:.2f} | {lines[-1][1]:.2f} | {covered:.0%} |", flush=True)
        found[name] = np.array(lines).T
    return found


def draw_widths(found, sizes):
    """Draw promised against real errors over the number of items."""
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for name, _, _, colour, marker in PROMISES:
        promised, real = found[name]
        ax.plot(sizes, promised, color=colour, marker=marker, label=f"{name}: the 95% interval, ±")
        ax.plot(
            sizes, real, "--", color=colour, marker=marker, fillstyle="none", label="   95% of its errors are below"
        )
    ax.set(xscale="log", xlabel="items of the group", ylabel="mean class: classes", ylim=(0, None))
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    return finished(figure)


def draw_few(lines):
    """Draw error and coverage over the number of labelled groups: name, number, NMD, mean and worst coverage a line."""
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="constrained")
    names = list(dict.fromkeys(line[0] for line in lines))
    for name, colour, marker in zip(names, (BLUE, VERMILION), "os", strict=False):
        number, error, mean, worst = np.array([line[1:] for line in lines if line[0] == name]).T
        axes[0].plot(number, error, color=colour, marker=marker, label=name)
        axes[1].plot(number, mean, color=colour, marker=marker, label=f"{name}, mean of the draws")
        axes[1].plot(
            number, worst, color=colour, marker=marker, fillstyle="none", linestyle="--", label="   worst draw"
        )
    axes[0].set(ylabel="NMD", ylim=(0, None))
    axes[1].axhline(0.95, color=SOFT, linewidth=0.8)
    axes[1].set(ylabel="mean class covered", ylim=(0.5, 1.01))
    axes[1].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for ax in axes:
        ax.set(xscale="log", xlabel="labelled groups")
        shown = sorted({line[1] for line in lines})
        ax.set_xticks(shown, [str(number) for number in shown])
        ax.minorticks_off()
    return finished(figure)


def finished(figure):
    """Return the figure with its axes tidied."""
    for ax in figure.axes:
        tidy(ax)
        ax.legend(fontsize="small")
    plt.close(figure)
    return figure


def main():
    """Draw both figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=".", type=Path)
    parser.add_argument("--draws", type=int, default=20, help="of few labelled groups")
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    args = parser.parse_args()
    if args.tiny:
        data, sizes, numbers, n_draws = real_groups.synthetic(0), (5, 10, 25), (5, 20), 2
        sets = {"synthetic": data}
    else:
        data, sizes, numbers, n_draws = group_data.flights(), SIZES, NUMBERS, args.draws
        sets = {"flights": data, "IMDB": group_data.imdb()}
    with mpl.rc_context(FILE_STYLE):
        drawn = {"groups_width.svg": draw_widths(widths(data, sizes), sizes)}
        few = real_groups.few_groups(sets, numbers, n_draws)
        drawn["groups_few.svg"] = draw_few([(name, n, nmd, mean, worst) for name, n, nmd, _, mean, _, _, worst in few])
        for name, figure in drawn.items():
            figure.savefig(args.folder / name, metadata={"Date": None})


if __name__ == "__main__":
    main()
