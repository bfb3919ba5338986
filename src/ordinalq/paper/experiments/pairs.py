"""The methods of the comparison of ordinal classifiers: a classifier with a quantifier each, such as "OLR-AT-PACC"."""

from typing import Any

from ordinalq._utils.validation import check_choice

# Classifier -> the parameter that sets the strength of its penalty.
CLASSIFIERS = {"LR": "C", "OLR-AT": "alpha", "OLR-IT": "alpha", "ORidge": "alpha", "LAD": "C"}
QUANTIFIERS = ("CC", "PCC", "ACC", "PACC", "SLD")
# They give no posteriors and serve only the quantifiers that count votes.
VOTERS = ("ORidge", "LAD")
COUNTING = ("CC", "ACC")
ADJUSTED = ("ACC", "PACC")
METHODS = tuple(
    f"{classifier}-{quantifier}"
    for classifier in CLASSIFIERS
    for quantifier in QUANTIFIERS
    if classifier not in VOTERS or quantifier in COUNTING
)
STRENGTHS = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


def split_pair(method: str) -> tuple[str, str]:
    """Return classifier and quantifier of a method; the classifier is "" for a method that is no pair.

    >>> split_pair("OLR-AT-PACC"), split_pair("PACC")
    (('OLR-AT', 'PACC'), ('', 'PACC'))
    """
    classifier, _, quantifier = method.rpartition("-")
    return classifier, quantifier


def classifier_grid(name: str) -> dict[str, list[Any]]:
    """Return the paper's values of each parameter of a classifier; "none" stands for None.

    >>> classifier_grid("ORidge")["normalize"]
    [False, True]
    """
    check_choice("name", name, tuple(CLASSIFIERS))
    grid: dict[str, list[Any]] = {CLASSIFIERS[name]: list(STRENGTHS), "class_weight": ["none", "balanced"]}
    return grid | ({"normalize": [False, True]} if name == "ORidge" else {})
