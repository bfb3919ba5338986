"""The outcome of an experiment: the data of its tables, figures and report."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Floats
from ordinalq.paper.experiments.store import FORMAT, MARK, Store, read_mark, to_json

# The tables of an outcome, each a file of the folder.
TABLES = ("validation", "selected", "estimates", "truth")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The results of one experiment.

    Attributes
    ----------
    about : dict
        What was run: ``experiment`` (name, kind, title, profile, settings, seed, dataset, paper, methods, measures,
        protocols, in_sample, app_oq), ``data`` (name, source, split, notes, classes, n_train, n_validation, n_test,
        n_features, p_train), ``versions``, ``machine``, ``seconds`` (computing time by stage), ``configurations``
        (number), ``damaged`` (parts that had to be computed again), ``command``.
    validation : DataFrame
        One row per configuration, protocol and measure: ``method``, ``classifier`` and ``parameters`` (JSON),
        ``protocol``, ``measure``, ``error`` (mean), ``std``, ``smoothing`` (mean jaggedness xi_1 of the estimates
        over that of the true distributions), ``unconverged``, ``n_samples``, ``seconds``, ``message``.
    selected : DataFrame
        One row per method, protocol and measure: the row of `validation` with the smallest error.
    estimates : DataFrame
        One row per method, protocol, measure and test sample: ``sample`` (number), ``error``, ``converged`` and
        ``p_1``..``p_n``, by the selected configuration.
    truth : DataFrame
        One row per protocol and test sample: ``protocol``, ``sample``, ``p_1``..``p_n``.
    """

    about: dict[str, Any]
    validation: pd.DataFrame
    selected: pd.DataFrame
    estimates: pd.DataFrame
    truth: pd.DataFrame

    @property
    def methods(self) -> list[str]:
        """Methods in the order of the catalog (or of the rows of a table)."""
        return list(self.about["experiment"]["methods"])

    @property
    def protocols(self) -> list[str]:
        """Protocols that apply."""
        return list(self.about["experiment"]["protocols"])

    @property
    def measures(self) -> list[str]:
        """Names of the error measures."""
        return list(self.about["experiment"]["measures"])

    @property
    def failures(self) -> dict[str, str]:
        """Methods without any result, and the message of their first failure."""
        found = {}
        for method in self.methods:
            if method not in set(self.estimates["method"]):
                messages = self.validation.loc[self.validation["method"] == method, "message"]
                said = [message for message in messages if message]
                found[method] = said[0] if said else "the selected configuration failed on the test samples"
        return found

    def errors(self, protocol: str, measure: str) -> dict[str, Floats]:
        """Return the test errors of each method, (B,), in the order of the samples."""
        rows = self.estimates[(self.estimates["protocol"] == protocol) & (self.estimates["measure"] == measure)]
        found = {name: part.sort_values("sample")["error"].to_numpy() for name, part in rows.groupby("method")}
        return {name: found[name] for name in self.methods if name in found}

    def distributions(self, method: str, protocol: str, measure: str) -> tuple[Floats, Floats]:
        """Return estimates and true distributions of the test samples, each (B, n)."""
        return read_prevalences(rows_of(self.estimates, method, protocol, measure)), self.true_distributions(protocol)

    def true_distributions(self, protocol: str) -> Floats:
        """Return the true distributions of the test samples of a protocol, (B, n)."""
        return read_prevalences(self.truth[self.truth["protocol"] == protocol])

    def save(self, store: Store) -> None:
        """Write the outcome into the folder of its experiment.

        The outcome is unfinished until all files are written.
        """
        beginning = {"format": FORMAT, "experiment": self.about["experiment"]}
        store.write(store.folder / MARK, to_json(beginning).encode())
        for name in TABLES:
            buffer = io.BytesIO()
            getattr(self, name).to_parquet(buffer, index=False)
            store.write(store.folder / f"{name}.parquet", buffer.getvalue())
        store.write(store.folder / MARK, to_json({"format": FORMAT} | self.about).encode())


def rows_of(table: pd.DataFrame, method: str, protocol: str, measure: str) -> pd.DataFrame:
    """Return the rows of a method, protocol and measure."""
    return table[(table["method"] == method) & (table["protocol"] == protocol) & (table["measure"] == measure)]


def prevalence_columns(P: Floats, prefix: str = "p") -> dict[str, Floats]:
    """Return the columns ``p_1``..``p_n`` of a table, from P (B, n)."""
    return {f"{prefix}_{i}": column for i, column in enumerate(P.T, start=1)}


def read_prevalences(table: pd.DataFrame) -> Floats:
    """Return the columns ``p_1``..``p_n`` of a table, shape (B, n).

    Rows are in the order of the samples.
    """
    columns = [name for name in table.columns if name.startswith("p_")]
    return np.asarray(table.sort_values("sample")[columns], dtype=np.float64)


def read_outcome(folder: str | Path) -> Outcome:
    """Read the outcome of a finished experiment.

    Parameters
    ----------
    folder : path
        Folder of the experiment.

    Returns
    -------
    Outcome
    """
    folder = Path(folder)
    try:
        about = read_mark(folder)
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} must be the folder of an experiment, but it has no {MARK}.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / MARK} is not the description of an experiment: {error}.") from error
    if about["experiment"].get("kind") == "collection":
        raise ValueError(f"{folder} holds a collection of experiments; name the folders in it.")
    if "versions" not in about or not all((folder / f"{name}.parquet").exists() for name in TABLES):
        raise ValueError(f"{folder} holds an experiment that is not finished; run it again.")
    try:
        return Outcome(about, *(pd.read_parquet(folder / f"{name}.parquet") for name in TABLES))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder} holds a damaged table; run it again. ({error})") from error
