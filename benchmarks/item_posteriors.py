"""Log loss of item posteriors: as the classifier gives them, calibrated, and corrected for estimated prevalences.

    ORDINALQ_DATA=FOLDER python benchmarks/item_posteriors.py [--split 1] [--devices 3 4 5]

APP samples of fried and of device reviews (no training groups), each sample a group by itself; products of device
reviews as groups (trained with groups). "True" takes the realized prevalences in place of estimates: no estimate can
do better.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import warnings

import group_data
import numpy as np
from real_groups import normalized, synthetic

import ordinalq as oq
from ordinalq.inference.items import item_posteriors, score_calibration
from ordinalq.inference.predict import estimate

HEAD = "| samples | method | classifier | calibrated | corrected | true prevalences |\n|" + "---|" * 6


def log_loss(P, codes):
    """Mean of -ln p of the true class; probabilities are at least 1e-12."""
    return -np.log(np.maximum(P[np.arange(len(codes)), codes], 1e-12)).mean()


def items(name, quantifier, T, codes, samples):
    """Print a row for samples of a pool with scores T (N, n) and codes (N,)."""
    n = T.shape[1]
    S, z = T[samples.items], codes[samples.items]
    alone = oq.Samples(np.arange(len(S)), samples.offsets, len(S))
    found = estimate(quantifier, quantifier.summarize(S, alone), 0.95)
    calibrated = score_calibration(quantifier.held_out_).transform(S)
    truth = np.repeat(alone.average(np.eye(n)[z]), alone.sizes, axis=0) / quantifier.p_train_ * calibrated
    rows = [S, calibrated, item_posteriors(quantifier, S, alone, found), truth / truth.sum(axis=1, keepdims=True)]
    cells = [f"{log_loss(P, z):.3f}" for P in rows]
    print(f"| {name} | {type(quantifier).__name__} | " + " | ".join(cells) + " |", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", type=int, default=1, help="of fried")
    parser.add_argument("--devices", type=int, nargs="+", default=[3, 4, 5], help="splits of the device reviews")
    parser.add_argument("--tiny", action="store_true", help="synthetic groups, in seconds")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    if args.tiny:
        devices("synthetic", synthetic(0, n_groups=20))
        return
    data = group_data.app_pool("fried", "logistic", args.split)
    for method in (oq.AdjustedML, oq.GroupBLP, oq.PACC, oq.SLD):
        quantifier = method().fit_scores(normalized(data.S), data.y)
        for size in (100, 1000):
            samples = oq.protocols.APP(60, size, random_state=3).draw(data.z)
            items(f"fried, {size}", quantifier, normalized(data.T), data.z, samples)
    for split in args.devices:
        devices(f"devices {split}", group_data.amazon("product", split))


def devices(name, data):
    """Print rows for APP samples of a pool with groups, and for the groups themselves."""
    how = {"classes": np.arange(data.n_classes)}
    for method in (oq.AdjustedML, oq.PACC):
        quantifier = method().fit_scores(normalized(data.S), data.y, **how)
        samples = oq.protocols.APP(60, 300, random_state=3, small_pool="repeat").draw(data.z, classes=how["classes"])
        items(f"{name}, APP, 300", quantifier, normalized(data.T), data.z, samples)
    for method in (oq.GroupBLP, oq.PACC):
        quantifier = method().fit_scores(normalized(data.S), data.y, groups=data.g, **how)
        groups = oq.Samples.from_groups(data.h)
        items(f"{name}, {len(groups)} products", quantifier, normalized(data.T), data.z, groups)


if __name__ == "__main__":
    main()
