"""SemEval 2016 and 2017, task 4, subtask E: sentiment of tweets by topic.

Results are compared with published figures. Methods learn from tweets of the training topics. They estimate the
distribution of five classes in each new topic. The score is the earth mover's distance, averaged over topics.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from ordinalq._utils.validation import Floats, check_choice
from ordinalq.classifiers.cross_fitting import CrossFitted
from ordinalq.datasets.semeval import load_semeval
from ordinalq.inference.predict import estimate
from ordinalq.metrics import errors
from ordinalq.model_selection.engine import Learned, Training, describe, learn
from ordinalq.paper.benchmarks.parts import run_parts
from ordinalq.quantifiers.adjusted import ACC, OPACC, PACC
from ordinalq.quantifiers.adjusted_ml import AdjustedML
from ordinalq.quantifiers.auto import AutoQuantifier
from ordinalq.quantifiers.base import Quantifier
from ordinalq.quantifiers.counting import CC, PCC
from ordinalq.quantifiers.energy import EDy, OEDy
from ordinalq.quantifiers.group_blp import GroupBLP
from ordinalq.quantifiers.likelihood import SLD, KDEy
from ordinalq.samples.samples import Samples

TRAINING = ("train", "dev", "devtest")
# Parts of the benchmark: the tweets that are added to the training topics, and the topics to estimate.
PARTS = {"2016": ((), "test2016"), "2017": ((), "test2017"), "2017, trained with 2016": (("test2016",), "test2017")}
# Stated without verification: see docs/validation/semeval.md.
PUBLISHED = {
    "best published system": {"2016": 0.243, "2017": 0.236, "2017, trained with 2016": 0.236},
    "second published system": {"2017": 0.250, "2017, trained with 2016": 0.250},
    "third published system": {"2017": 0.334, "2017, trained with 2016": 0.334},
}
LABELS = (30, 100, 300)
N_DRAWS = {"full": 20, "quick": 2}
BUDGETS = {"full": "balanced", "quick": "fast"}


class PublishedMethod(NamedTuple):
    """A method, and whether it learns from the training topics as groups."""

    quantifier: Quantifier
    has_groups: bool = False


METHODS = {
    "CC": PublishedMethod(CC()),
    "PCC": PublishedMethod(PCC()),
    "ACC": PublishedMethod(ACC()),
    "PACC": PublishedMethod(PACC()),
    "SLD": PublishedMethod(SLD()),
    "EDy": PublishedMethod(EDy()),
    "o-PACC, tau auto": PublishedMethod(OPACC(tau="auto")),
    "o-EDy, tau auto": PublishedMethod(OEDy(tau="auto")),
    "KDEy": PublishedMethod(KDEy()),
    "AdjustedML": PublishedMethod(AdjustedML()),
    "GroupBLP, groups": PublishedMethod(GroupBLP(), has_groups=True),
    "AutoQuantifier": PublishedMethod(AutoQuantifier()),
    "AutoQuantifier, groups": PublishedMethod(AutoQuantifier(), has_groups=True),
}


def run_semeval(
    folder: Path, *, profile: str = "full", data: str | Path | None = None, n_jobs: int = 1
) -> Iterator[str]:
    """Run the benchmark and write ``scores.csv`` and ``table.csv``.

    Methods on scores share a logistic regression on TF-IDF vectors, cross-fitted by topic. Methods with training groups
    are also given the labels of 30, 100 and 300 tweets, drawn at random from all new topics. Parts that ``scores.csv``
    already has are not computed again.

    Parameters
    ----------
    folder : path
        Folder of the two files.
    profile : {"full", "quick"}, default="full"
        "quick" has two draws of labels instead of 20, and AutoQuantifier with the budget "fast".
    data : path, default=None
        Local copy of the tweets, see :func:`ordinalq.datasets.load_semeval`.
    n_jobs : int, default=1
        Number of classifiers that are fitted at the same time.

    Yields
    ------
    str
        A line for each part that is done.
    """
    check_choice("profile", profile, tuple(N_DRAWS))
    tweets = load_semeval(data)
    compute = partial(_part, tweets=tweets, profile=profile, n_jobs=n_jobs)
    for (name,) in run_parts(folder, profile, ("part",), [(name,) for name in PARTS], compute, summarize):
        yield f"topics of {name}"


def _part(name: str, tweets: pd.DataFrame, profile: str, n_jobs: int) -> Iterator[dict[str, Any]]:
    """Yield the mean EMD of each method on the topics of one year.

    Methods are run without labels and with some.
    """
    more, asked = PARTS[name]
    known, new = tweets[tweets["part"].isin([*TRAINING, *more])], tweets[tweets["part"] == asked]
    vectors = TfidfVectorizer(min_df=2, sublinear_tf=True, max_features=20_000)
    X, pools = vectors.fit_transform(known["text"]), {"new": vectors.transform(new["text"])}
    y, z, classes = known["label"].to_numpy(), new["label"].to_numpy(), np.unique(known["label"])
    samples = Samples.from_groups(new["topic"].to_numpy(), z, classes=classes)
    truth = samples.prevalences
    assert truth is not None
    training = Training(X, y, classes, known["topic"].to_numpy())
    p_train = np.array([np.mean(y == label) for label in classes])
    baseline = float(errors(truth, np.tile(p_train, (len(truth), 1)), "md").mean())
    yield {"part": name, "method": "training distribution", "labels": 0, "score": baseline, "message": ""}
    classifier = CrossFitted(LogisticRegression(C=3, max_iter=1000), cv=5, n_jobs=n_jobs)
    # Scores are held out by topic for all methods; only those with training groups learn how topics differ.
    scored = learn(CC(classifier), training, pools)
    for method, (quantifier, has_groups) in METHODS.items():
        groups = training.groups if has_groups else None
        if isinstance(quantifier, AutoQuantifier):
            quantifier = AutoQuantifier(budget=BUDGETS[profile], n_jobs=n_jobs)
            learned = learn(quantifier, training._replace(groups=groups), pools)
        else:
            learned = scored._replace(training=training._replace(groups=groups))
        for n_labels in (0, *LABELS) if has_groups else (0,):
            score, message = np.nan, learned.message
            try:
                if not message:
                    draws = [_draw(z, n_labels, seed) for seed in range(N_DRAWS[profile] if n_labels else 1)]
                    found = [_estimate(learned, quantifier, samples, labels) for labels in draws]
                    score = float(np.mean([errors(truth, P, "md").mean() for P in found]))
            except Exception as error:  # the other methods go on, and the message goes to the table
                message = describe(error)
            yield {"part": name, "method": method, "labels": n_labels, "score": score, "message": message}


def _draw(y: Any, n_labels: int, seed: int) -> Floats | None:
    """Return randomly drawn labels of some items (N,), NaN for the others.

    The result is None if no labels are drawn.
    """
    if n_labels == 0:
        return None
    labels = np.full(len(y), np.nan)
    chosen = np.random.default_rng(seed).choice(len(y), min(n_labels, len(y)), replace=False)
    labels[chosen] = y[chosen]
    return labels


def _estimate(learned: Learned, quantifier: Quantifier, samples: Samples, labels: Floats | None) -> Floats:
    """Return the estimates (B, n) for all topics."""
    fitted = learned.fit(quantifier)
    return estimate(fitted, fitted.summarize(learned.pools["new"], samples, labels=labels)).prevalences


def summarize(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean EMD of each method and number of labels.

    There is one column per part. The published figures are included.

    Parameters
    ----------
    scores : pandas.DataFrame
        Rows with part, method, labels and score.

    Returns
    -------
    pandas.DataFrame
        Methods in the order of `METHODS`, then published systems.
    """
    with_labels = scores["method"] + ", " + scores["labels"].astype(str) + " labels"
    names = scores["method"].where(scores["labels"] == 0, with_labels)
    table = scores.assign(method=names).pivot_table("score", "method", "part", dropna=False)
    parts = [part for part in PARTS if part in table.columns]
    return pd.concat([table.loc[names.drop_duplicates(), parts], pd.DataFrame(PUBLISHED).T.reindex(columns=parts)])
