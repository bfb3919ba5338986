"""Errors of estimates beside the truth of samples, and what they say of a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from ordinalq._utils.text import listed
from ordinalq._utils.validation import Floats
from ordinalq.inference.estimates import Estimates
from ordinalq.metrics import errors
from ordinalq.samples.samples import Samples

MEASURES = ("nmd", "rnod", "mean_class")
NOTHING_CHANGED = "training prevalences"
# What the verdict calls them.
WORDS = {
    "CC": "counting (CC)",
    "PCC": "averaging the scores (PCC)",
    NOTHING_CHANGED: "assuming that nothing changed",
}
# A difference counts where it would be seen by chance in fewer cases.
SIGNIFICANT = 0.05
ROUNDING = 1e-9


def judged(estimates: Mapping[str, Floats], samples: Samples) -> pd.DataFrame:
    """Return means and standard deviations of the errors of several estimates (B, n), a row each."""
    rows = []
    for name, P in estimates.items():
        row: dict[str, Any] = {"estimate": name}
        for measure in MEASURES:
            e = sample_errors(P, samples, measure)
            row |= {measure: e.mean(), f"{measure}_std": e.std(ddof=1) if len(e) > 1 else np.nan}
        rows.append(row)
    return pd.DataFrame(rows)


def judged_groups(estimates: Mapping[str, Floats], samples: Samples, found: Estimates) -> pd.DataFrame:
    """Return the errors of several estimates of groups, the first by the model, with intervals, and its verdict."""
    table = judged(estimates, samples)
    for measure in ("nmd", "mean_class"):
        by_items = [np.average(sample_errors(P, samples, measure), weights=samples.sizes) for P in estimates.values()]
        table[f"{measure}_by_items"] = by_items
    table.loc[0, ["covered", "mean_class_covered", "width"]] = _covered(found, samples)
    model, *others = estimates
    e = {name: sample_errors(P, samples, "nmd") for name, P in estimates.items()}
    compared = [compared_with(name, e[model] - e[name]) for name in others]
    table.attrs |= {
        "level": found.level,
        "n_single": int((samples.sizes == 1).sum()),
        "comparisons": compared,
        "verdict": verdict(compared, len(samples)),
    }
    return table


def sample_errors(P: Floats, samples: Samples, measure: str) -> Floats:
    """Return the error of each estimate (B, n), (B,); "mean_class" is that of the mean class, in classes."""
    assert samples.prevalences is not None
    if measure != "mean_class":
        return errors(P, samples.prevalences, measure)
    return np.asarray(np.abs((P - samples.prevalences) @ np.arange(1.0, P.shape[1] + 1)))


def _covered(found: Estimates, samples: Samples) -> tuple[float, float, float]:
    """Return the parts of the classes and of the mean classes that intervals hold, and the mean width of the first."""
    truth, bounds = samples.prevalences, found.bounds
    assert truth is not None
    assert bounds is not None
    mean = truth @ np.arange(1.0, truth.shape[1] + 1)
    classes = (bounds.lower <= truth + ROUNDING) & (truth <= bounds.upper + ROUNDING)
    means = (bounds.mean_lower <= mean + ROUNDING) & (mean <= bounds.mean_upper + ROUNDING)
    return float(classes.mean()), float(means.mean()), float((bounds.upper - bounds.lower).mean())


def compared_with(name: str, difference: Floats) -> dict[str, Any]:
    """Return a paired t-test of the differences (B,) of errors: the model's minus the other's."""
    B, mean = len(difference), float(difference.mean())
    error = float(difference.std(ddof=1) / np.sqrt(B)) if B > 1 else np.nan
    p_value = np.nan
    if B > 1:
        p_value = float(2 * stdtr(B - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    said = "no better" if not p_value < SIGNIFICANT else "better" if mean < 0 else "worse"
    return {"other": name, "difference": mean, "standard_error": error, "p_value": p_value, "said": said}


def verdict(compared: Sequence[Mapping[str, Any]], n_groups: int) -> str:
    """Return what comparisons say of the model, in one sentence.

    >>> verdict([{"other": "CC", "said": "better"}, {"other": "training prevalences", "said": "no better"}], 9)
    'On your 9 groups this model is better than counting (CC), but no better than assuming that nothing changed.'
    """
    if n_groups < 2:
        return "A single group does not tell whether this model is better than assuming that nothing changed."
    by_word = {
        word: [WORDS.get(one["other"], one["other"]) for one in compared if one["said"] == word]
        for word in ("better", "no better", "worse")
    }
    parts = [f"{word} than {listed(names)}" for word, names in by_word.items() if names]
    word = ", but " if by_word["better"] else ", and "
    joined = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}{word}{parts[-1]}"
    return f"On your {n_groups:,} groups this model is {joined}."
