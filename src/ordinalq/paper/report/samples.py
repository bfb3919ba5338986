"""The tables about samples: those of a run, and the protocols of the paper."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from ordinalq._utils.validation import Floats, check_distributions
from ordinalq.datasets import published as reference
from ordinalq.metrics import nmd
from ordinalq.paper.experiments.outcome import Outcome
from ordinalq.paper.report.facts import data_name
from ordinalq.paper.report.formats import Table
from ordinalq.paper.report.tables import Show, lay_out, number, words
from ordinalq.protocols import APP, RealPrevalences, streams
from ordinalq.simplex import jaggedness

N_FACT = 12  # classes of Fact-OQ


def sample_facts(outcome: Outcome) -> pd.DataFrame:
    """Return one row per protocol: number of test samples, mean jaggedness, mean shift from the training set."""
    p_train = np.asarray(outcome.about["data"]["p_train"], dtype=np.float64)
    data = str(outcome.about["experiment"].get("paper"))
    printed = reference.protocols().get(data, {})
    rows = []
    for protocol in outcome.protocols:
        P = outcome.true_distributions(protocol)
        name = f"APP-OQ({reference.app_oq_percent(data)}%)" if protocol == "APP-OQ" else protocol
        paper = printed.get(name, {})
        rows.append(
            {
                "protocol": protocol,
                "n_samples": len(P),
                "xi1": float(np.mean(jaggedness(P))),
                "nmd_to_training": float(np.mean(nmd(p_train, P))),
                "xi1_paper": paper.get("xi1", np.nan),
                "nmd_to_training_paper": paper.get("nmd_to_training", np.nan),
            }
        )
    return pd.DataFrame(rows)


def samples_table(outcome: Outcome) -> Table:
    """Return what the test samples of each protocol are like: number, jaggedness and shift from the training set."""
    facts = sample_facts(outcome)
    columns, rows = lay_out(
        facts,
        rows=["protocol"],
        heads=[words("protocol", "protocol")],
        cells=[
            Show("test samples", "n_samples"),
            Show("jaggedness", "xi1", number(4)),
            Show("shift", "nmd_to_training", number(4)),
            Show("jaggedness, paper", "xi1_paper", number(4), needs="xi1_paper"),
            Show("shift, paper", "nmd_to_training_paper", number(4), needs="xi1_paper"),
        ],
    )
    notes = (
        "Jaggedness: mean xi_1 of the true distributions. Shift: mean NMD between the training set and the sample.",
    )
    return Table("samples", f"Test samples of {data_name(outcome)}", columns, rows, facts, notes, section="run")


def protocols_table(outcome: Outcome) -> Table:
    """Return the paper's table of protocols, recomputed.

    The real distributions of Amazon and the training distribution of Fact are those of the run.
    """
    own: dict[str, Any] = {}
    data = outcome.about["experiment"].get("paper")
    if data == "Amazon-OQ-BK" and "real" in outcome.protocols:
        own["amazon_vectors"] = np.unique(outcome.true_distributions("real"), axis=0)
    if data == "Fact-OQ" and len(outcome.about["data"]["p_train"]) == N_FACT:
        own["fact_training"] = np.asarray(outcome.about["data"]["p_train"], dtype=np.float64)
    facts = protocol_table(**own) if own else _protocols().copy()
    columns, rows = lay_out(
        facts,
        rows=["data", "protocol"],
        heads=[words("protocol", "protocol")],
        cells=[
            Show("ours", "xi1", number(4), above="jaggedness xi_1"),
            Show("paper", "xi1_paper", number(4), above="jaggedness xi_1"),
            Show("ours", "nmd", number(4), above="shift NMD(p_L, p)"),
            Show("paper", "nmd_paper", number(4), above="shift NMD(p_L, p)"),
        ],
        group=lambda fact: str(fact["data"]),
    )
    notes = ["Means over 20,000 drawn samples of 1000 items; they do not depend on any classifier or method."]
    if "amazon_vectors" not in own:
        notes.append("A dash in the row real of Amazon-OQ-BK: it needs the published samples of that data set.")
    if "fact_training" not in own:
        notes.append("A dash at Fact-OQ: its training distribution p_L is not published, and needs the loaded file.")
    notes.append("NPP: the printed row is a comment in the source of the paper; how it was made is not known.")
    fold = "The paper's table of protocols, recomputed"
    return Table("protocols", "Protocols", columns, rows, facts, tuple(notes), section="background", fold=fold)


@cache
def _protocols() -> pd.DataFrame:
    """Return the table of protocols without the real distributions of Amazon; it takes seconds."""
    return protocol_table()


def protocol_table(
    *,
    amazon_vectors: Any = None,
    fact_training: Any = None,
    n_draws: int = 20_000,
    sample_size: int = 1000,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Recompute the paper's table of protocols: mean jaggedness, and mean shift from the training distribution.

    The rows of APP-OQ are the given percentages of the APP samples. With 20,000 draws the standard error of xi_1 is
    .0006 for APP and smaller for the others.

    Parameters
    ----------
    amazon_vectors : array-like (k, 5), default=None
        The real star distributions of books; without them the row "real" of Amazon holds the paper's figures only.
    fact_training : array-like (12,), default=None
        Training distribution p_L of Fact-OQ, which is not published: that of the loaded file. Without it the shift of
        Fact-OQ is not known.
    n_draws, sample_size : int
        Number and size of the samples of each protocol.
    random_state : int, Generator or None, default=0

    Returns
    -------
    pandas.DataFrame
        Columns data, protocol, xi1, xi1_paper, nmd, nmd_paper: xi1 is the mean of xi_1 over the samples, nmd the mean
        NMD(p_L, p). What cannot be recomputed is NaN.

    Examples
    --------
    >>> table = protocol_table(n_draws=500, sample_size=100)
    >>> list(table.columns)
    ['data', 'protocol', 'xi1', 'xi1_paper', 'nmd', 'nmd_paper']
    """
    size: dict[str, Any] = {"n_samples": n_draws, "sample_size": sample_size, "random_state": random_state}
    p_L = {"Amazon-OQ-BK": reference.amazon_training()}
    if fact_training is not None:
        p_L["Fact-OQ"] = check_distributions("fact_training", fact_training)
        if p_L["Fact-OQ"].shape != (12,):
            raise ValueError(f"fact_training must have one entry per class, 12, got shape {p_L['Fact-OQ'].shape}.")
    real = {"Fact-OQ": RealPrevalences(reference.fact_spectrum().p, **size, poisson=True).counts(12) / sample_size}
    if amazon_vectors is not None:
        real["Amazon-OQ-BK"] = RealPrevalences(amazon_vectors, **size).counts(5) / sample_size
    rows = []
    for data, printed in reference.protocols().items():
        app = APP(**size, min_per_class=1).counts(5 if data == "Amazon-OQ-BK" else 12) / sample_size
        # A mirrored distribution is as likely and as jagged, and shifted the other way: half of the noise is gone.
        app = np.concatenate([app, app[:, ::-1]])
        xi = jaggedness(app)
        for protocol, paper in printed.items():
            P: Floats | None
            if protocol.startswith("APP"):
                percent = protocol.removeprefix("APP-OQ(").removesuffix("%)")
                P = app if protocol == "APP" else app[xi <= np.quantile(xi, int(percent) / 100)]
            elif protocol == "real":
                P = real.get(data)
            else:  # NPP: samples of an infinite pool
                rng = streams(random_state)[2]
                P = rng.multinomial(sample_size, p_L[data], n_draws) / sample_size if data in p_L else None
            rows.append(
                {
                    "data": data,
                    "protocol": protocol,
                    "xi1": np.nan if P is None else np.mean(jaggedness(P)),
                    "xi1_paper": paper["xi1"],
                    "nmd": np.nan if P is None or data not in p_L else np.mean(nmd(p_L[data], P)),
                    "nmd_paper": paper["nmd_to_training"],
                }
            )
    return pd.DataFrame(rows)
