"""Joint regions: how often they contain the whole distribution of a sample, and how large they are.

    ORDINALQ_DATA=FOLDER python benchmarks/regions.py [--split 0] [--films "choose 0"] [--samples 300]
    python benchmarks/regions.py --tiny          # fried without files, a few seconds

APP samples of fried (ten classes, a logistic regression, no training groups) and films with at least 20 reviews
(trained with groups). The truth is the realized distribution. "box" are the Bonferroni intervals that hold together.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import warnings

import group_data
import numpy as np
from real_groups import normalized

import ordinalq as oq
from ordinalq.inference.predict import estimate

METHODS = (oq.PACC, oq.AdjustedML, oq.GroupBLP, oq.ACC, oq.EDy, oq.SLD)
HEAD = (
    "| samples | method | estimand | in the region | in the box | single classes | volume / box (median) |\n|"
    + "---|" * 7
)
# Samples whose volumes are found, by drawing points.
N_VOLUMES = 50


def regions(name, quantifier, S, samples, truth, level=0.95, estimand="sample"):
    """Print a row: coverage of region, box and single intervals, and the ratio of the volumes."""
    options = oq.inference.IntervalOptions(estimand=estimand)
    found = estimate(quantifier, quantifier.summarize(S, samples), level, options)
    region = found.region()
    single = ((found.lower <= truth + 1e-9) & (truth <= found.upper + 1e-9)).mean()
    box = ((region.lower <= truth + 1e-9) & (truth <= region.upper + 1e-9)).all(axis=1).mean()
    ratio = found.take(slice(N_VOLUMES)).region().volume_ratio()
    volume = f"{np.nanmedian(ratio):.2g}" if np.isfinite(ratio).any() else "unknown"
    unknown = f" ({np.isnan(ratio).sum()} of {len(ratio)} unknown)" if np.isnan(ratio).any() else ""
    cells = [f"{region.contains(truth).mean():.1%}", f"{box:.1%}", f"{single:.1%}", volume + unknown]
    print(f"| {name} | {type(quantifier).__name__} | {estimand} | " + " | ".join(cells) + " |", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", type=int, default=0, help="of fried")
    parser.add_argument("--films", default="report", help="of the films, see group_data.py")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--tiny", action="store_true", help="few samples of fried alone")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    data = group_data.app_pool("fried", "logistic", args.split)
    S, T = normalized(data.S), normalized(data.T)
    for method in METHODS[: 3 if args.tiny else None]:
        quantifier = method().fit_scores(S, data.y)
        for size in (300,) if args.tiny else (300, 1000):
            samples = oq.protocols.APP(20 if args.tiny else args.samples, size, random_state=1).draw(data.z)
            regions(f"fried, {size}", quantifier, T, samples, samples.prevalences)
    if args.tiny:
        return
    data = group_data.imdb(args.films)
    keys, sizes = np.unique(data.h, return_counts=True)
    large = np.isin(data.h, keys[sizes >= 20])
    samples = oq.Samples.from_groups(data.h[large], data.z[large], classes=np.arange(data.n_classes))
    for method in METHODS:
        quantifier = method().fit_scores(normalized(data.S), data.y, groups=data.g)
        regions(f"{len(samples)} films", quantifier, normalized(data.T)[large], samples, samples.prevalences)


if __name__ == "__main__":
    main()
