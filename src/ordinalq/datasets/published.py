"""Published tables and distributions of the paper, as data.

The paper is "Regularization-Based Methods for Ordinal Quantification". `amazon_categories` and `fact_spectrum` are
distributions that occur in nature. `results`, `protocols`, `ordinal_classifiers` and `grids` are the tables of the
paper, for comparison with our results.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats

# The parameters of classifiers in the published tables.
PRINTED_PARAMETERS = ("class_weight", "C", "criterion", "max_depth")


@dataclass(frozen=True)
class Distribution:
    """Distribution of the paper: name, p (n,), and its published jaggedness xi_1."""

    name: str
    p: Floats
    xi1_printed: float


@dataclass(frozen=True)
class Spectrum(Distribution):
    """Spectrum of the Crab nebula as measured by the FACT telescope.

    ``p`` (12,) is over 12 bins of equal width in log10(energy / GeV). ``edges`` (13,) are in log10(energy / GeV),
    ``energies`` (12,) are the bin centres in GeV. ``effective_areas`` has shape (12,).
    """

    edges: Floats
    energies: Floats
    effective_areas: Floats


def amazon_categories() -> list[Distribution]:
    """Return the star distributions of the 28 categories of Amazon reviews.

    They are Distribution objects with n = 5.

    >>> len(amazon_categories()), amazon_categories()[0].name
    (28, 'Video Games')
    """
    entries = _load("distributions")["amazon_categories"]
    return [Distribution(entry["name"], np.array(entry["p"]), entry["xi1_printed"]) for entry in entries]


def amazon_training() -> Floats:
    """Return the class distribution p_L of the training set of Amazon-OQ-BK, (5,)."""
    return np.array(_load("distributions")["amazon_books_training"])


def fact_spectrum(*, bin_width: bool = False) -> Spectrum:
    """Return the expected spectrum of Fact-OQ: p_i ~ flux(E_i) a_i, normalized.

    flux(E) = 3.23e-10 (E/1000)^(-2.47 - 0.24 log10(E/1000)) with E in GeV; a_i are the effective areas.

    Parameters
    ----------
    bin_width : bool, default=False
        Multiply by the width of the energy bins, as required for a differential flux. The paper does not.

    Returns
    -------
    Spectrum
        Distribution p (12,) with edges (13,), energies (12,) and effective areas (12,).
    """
    entry = _load("distributions")["fact_crab_expected"]
    edges = np.array(entry["log10_energy_edges"])
    energies = np.array(entry["energy_bin_centers_GeV"])
    areas = np.array(entry["effective_area"])
    ratio = energies / 1000
    p = 3.23e-10 * ratio ** (-2.47 - 0.24 * np.log10(ratio)) * areas
    if bin_width:
        p *= np.diff(10**edges)
    return Spectrum("Fact (Crab nebula)", p / p.sum(), entry["xi1_printed"], edges, energies, areas)


def example_distributions() -> dict[str, Floats]:
    """Return the paper's examples of smooth and jagged shapes by name.

    The names are sigma_1..sigma_5. Each distribution has shape (5,).
    """
    return {name: np.array(p) for name, p in _load("distributions")["examples"].items()}


def results() -> Any:
    """Return the main tables of the paper.

    The keys are method -> data set -> protocol -> measure -> {mean, std, bold}.

    >>> results()["o-SLD"]["Amazon-OQ-BK"]["APP"]["NMD"]["mean"]
    0.0194
    """
    return _load("tables")["results"]


def protocols() -> dict[str, Any]:
    """Return the protocol table: data set -> protocol -> {xi1, nmd_to_training}."""
    return {
        data: {name.partition(" (")[0]: row for name, row in table.items()}
        for data, table in _load("tables")["protocols"].items()
    }


def ordinal_classifiers() -> Any:
    """Return NMD on Amazon-OQ-BK under APP by classifier and quantifier.

    The keys are classifier -> quantifier -> {mean, std, percentages, bold}.
    """
    return _load("tables")["ordinal_classifiers_NMD_APP_Amazon"]


def grids() -> Any:
    """Return the published hyperparameter tables.

    Deviations of the reference implementation are included.
    """
    return _load("tables")["grids"]


def classifier_grid(family: str) -> dict[str, list[Any]]:
    """Return the published grid of a classifier.

    Other parameters, such as the number of trees, are in the authors' program only.

    Parameters
    ----------
    family : {"forest", "logistic"}
        Kind of the classifier.

    Returns
    -------
    dict of str to list
        Values of each parameter.

    Examples
    --------
    >>> classifier_grid("forest")["max_depth"]
    [4, 8, 12]
    """
    name = "Amazon-OQ-BK" if family == "logistic" else "Fact-OQ and UCI/OpenML"
    return {key: values for key, values in grids()["classifier"][name].items() if key in PRINTED_PARAMETERS}


def yougov_jaggedness() -> dict[str, dict[str, float]]:
    """Return the published range of xi_1 for the surveys of YouGov.

    The keys are survey -> min, mean, max.

    >>> yougov_jaggedness()["sunak (n=5, 5)"]["mean"]
    0.009
    """
    return dict(_load("distributions")["yougov_xi1"])


def app_oq_percent(data: str) -> int:
    """Return the percentage of APP samples that are APP-OQ samples in the paper.

    Parameters
    ----------
    data : str
        Name of the data set in the tables of the paper.

    Returns
    -------
    int
    """
    percent = _load("tables")["app_oq_percent"]
    return int(percent.get(data, percent["others"]))


def _load(name: str) -> Any:
    """Read a file on each call, so that callers can change the result."""
    return json.loads((files("ordinalq") / "datasets" / f"published_{name}.json").read_text(encoding="utf-8"))
