"""Quality of the choice of a strength from real groups: compared with "auto" on smooth samples, and hindsight.

    ORDINALQ_DATA=FOLDER python benchmarks/tuning_groups.py [product month films days] [--splits 20] [--develop]
    python benchmarks/tuning_groups.py --tiny        # synthetic groups, a few seconds, no file

Test groups have at least 20 items; NMD is the mean over all of them, in all splits. "best" is the one strength of a
grid with the smallest NMD on these groups, which no method can know. Differences carry paired standard errors over
groups; those of Amazon are clustered by product or month, which occur in several splits. `--weight items` chooses by
items instead of groups. `--develop` takes other splits: on them everything was chosen.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import time
import warnings
from typing import NamedTuple

import group_data
import numpy as np
from group_data import Groups
from real_groups import normalized, standard_error

import ordinalq as oq

METHODS = {"OPACC": "tau", "OEDy": "tau", "RUN": "tau", "IBU": "interpolation", "OSLD": "interpolation"}
DATA = ("product", "month", "films", "days")
MIN_ITEMS = 20


class Cell(NamedTuple):
    """One method on one split: keys of the test groups, NMD (B,) of the choices, the curve (k, B), choices, seconds."""

    keys: np.ndarray
    errors: dict[str, np.ndarray]
    curve: np.ndarray
    chosen: dict[str, float]
    seconds: dict[str, float]


def load(name, n_splits, develop):
    """Yield the splits of a data set."""
    if name in ("product", "month"):
        for split in range(20, 20 + n_splits) if develop else range(n_splits):
            yield group_data.amazon(name, split)
    elif name == "films":
        yield group_data.imdb("choose 0" if develop else "report")
    elif develop:
        yield from (group_data.flights("choose 0"), group_data.flights("choose 1"))
    else:
        yield group_data.flights("report")


def grid(method):
    """Return the strengths for the best in hindsight, four per decade (two for o-SLD); for RUN per item."""
    if METHODS[method] == "interpolation":
        return np.r_[0, 10 ** np.arange(-4, 0.1, 0.5 if method == "OSLD" else 0.25)]
    return np.r_[0, (1000 if method == "RUN" else 1) * 10 ** np.arange(-5, 3.1, 0.25)]


def run(method, data: Groups, weight="groups") -> Cell:
    """Fit with and without groups, and along the grid."""
    S, T = normalized(data.S), normalized(data.T)
    names, sizes = np.unique(data.h, return_counts=True)
    large = np.isin(data.h, names[sizes >= MIN_ITEMS])
    samples = oq.Samples.from_groups(data.h[large], data.z[large], classes=np.arange(data.n_classes))
    parameter, cls = METHODS[method], getattr(oq, method)
    errors, chosen, seconds = {}, {}, {}
    asked = {"smooth": ("auto", None), "groups": (oq.regularizers.AutoStrength(weight=weight), data.g)}
    for name, (strength, groups) in asked.items():
        start = time.process_time()
        q = cls(**{parameter: strength}).fit_scores(S, data.y, groups=groups)
        seconds[name] = time.process_time() - start
        chosen[name] = q.smoothing().value
        summary = q.summarize(T[large], samples)
        errors[name] = oq.metrics.nmd(samples.prevalences, q.solve(summary).p)
    curve = [oq.metrics.nmd(samples.prevalences, q.with_strength(value).solve(summary).p) for value in grid(method)]
    return Cell(samples.groups_, errors, np.array(curve), chosen, seconds)


def line(name, method, cells):
    """Print one line of the table; return NMD from groups over that of the best in hindsight."""
    keys = np.concatenate([cell.keys for cell in cells])
    found = {choice: np.concatenate([cell.errors[choice] for cell in cells]) for choice in cells[0].errors}
    curve = np.concatenate([cell.curve for cell in cells], axis=1)
    best = int(curve.mean(axis=1).argmin())
    delta = found["groups"] - found["smooth"]
    ratio = found["groups"].mean() / curve[best].mean()
    chosen = {choice: np.median([cell.chosen[choice] for cell in cells]) for choice in found}
    seconds = {choice: np.median([cell.seconds[choice] for cell in cells]) for choice in found}
    print(
        f"| {name} | {method} | {chosen['groups']:.2g} | {chosen['smooth']:.2g} | {grid(method)[best]:.2g} | "
        f"{found['groups'].mean():.4f} | {found['smooth'].mean():.4f} | "
        f"{curve[0].mean():.4f} | {curve[best].mean():.4f} | {ratio:.3f} | "
        f"{delta.mean():+.4f} ± {standard_error(delta, keys):.4f} | {seconds['groups']:.1f} |",
        flush=True,
    )
    return ratio


def synthetic():
    """Return small groups of three classes that differ in shares and looks."""
    rng = np.random.default_rng(0)

    def items(n_groups):
        g = np.repeat(np.arange(n_groups), 30)
        y = (rng.random(len(g))[:, None] > np.cumsum(rng.dirichlet(np.ones(3), n_groups), axis=1)[g]).sum(axis=1)
        x = y + 0.3 * rng.normal(size=n_groups)[g] + rng.normal(size=len(g))
        S = np.exp(-((x[:, None] - np.arange(3)) ** 2) / 2)
        return S / S.sum(axis=1, keepdims=True), y, g

    return Groups(*items(30), *items(20))


def main():
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DATA))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--weight", default="groups", choices=["groups", "items"])
    parser.add_argument("--develop", action="store_true")
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, one method")
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.names, arguments.methods = ["synthetic"], ["OPACC"]
    print("| groups | method | strength from groups | smooth | best | NMD from groups | smooth | none | best "
          "| groups / best | groups - smooth | fit, CPU s |")  # fmt: skip
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    # What "auto" warns of is what the table shows.
    warnings.simplefilter("ignore")
    ratios = []
    for name in arguments.names:
        splits = [synthetic()] if arguments.tiny else list(load(name, arguments.splits, arguments.develop))
        ratios += [
            line(name, method, [run(method, split, arguments.weight) for split in splits])
            for method in arguments.methods
        ]
    print(f"\nmean of groups / best: {np.mean(ratios):.3f}, largest {np.max(ratios):.3f}")


if __name__ == "__main__":
    main()
