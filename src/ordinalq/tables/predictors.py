"""Default columns that a model learns from, and reasons for omitting others."""

import logging
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing

from ordinalq._utils.validation import Codes, Floats
from ordinalq.classifiers.cross_fitting import make_folds
from ordinalq.classifiers.registry import NEWTON
from ordinalq.io.columns import parsed_numbers, typed
from ordinalq.io.encoder import table_encoder

logger = logging.getLogger("ordinalq")

# Parts of names of columns. Names such as "reviews.numHelpful" have the parts reviews, num and helpful.
# fmt: off
IDENTIFIERS = {
    "id", "ids", "uuid", "guid", "respondent", "respondents", "caseid", "userid", "respid", "asin", "asins", "sku",
    "ean", "isbn", "url", "urls", "link", "email", "username", "reviewer", "reviewerid", "rownumber",
}
WEIGHTS = {
    "weight", "weights", "wgt", "wgts", "wt", "gewicht", "gewichte", "poids", "peso",
}
# Weights of a survey may have any mean.
SURVEYS = {
    "survey", "sample", "sampling", "design", "final", "person", "household",
}
VOTES = {
    "helpful", "vote", "votes", "upvote", "upvotes", "downvotes", "likes", "dislikes", "thumbs", "views", "clicks",
    "retweets",
}
TIMES = {
    "timestamp", "unixtime", "date", "datetime",
}
# fmt: on
# Parts of names of columns that hold groups, also written together with the word that follows: "shopid".
LIKE_GROUP = re.compile(
    r"(?:sub)?(?:product|group|brand|shop|store|region|cit(?:y|ie)|countr(?:y|ie)|categor(?:y|ie)|film|movie|asin)"
    r"s?(?:id|name|code|no|nr|number)?s?"
)
# Weights without the name of a survey have a mean between these.
MEAN_WEIGHT = (0.5, 2.0)
# Numbers in a column "index" are identifiers if this part of them is distinct.
NEARLY_UNIQUE = 0.95

NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# Rows on which text alone is compared with text and other columns, folds, and terms of each text.
N_ROWS, N_FOLDS, N_TERMS = 3000, 3, 3000
# The other columns are used if they lower the held-out log loss by this many standard errors.
N_ERRORS = 2.0
# A loose tolerance takes a third of the time and changes no decision.
MODEL: dict[str, Any] = {**NEWTON, "tol": 1e-3}


def unused_reason(name: str, kind: str, column: "pd.Series[Any]") -> str:
    """Return the reason for not learning from a column by default, or "".

    The result is "" if the column is used.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : str
        Kind of the column, see :mod:`ordinalq.io.columns`.
    column : Series (N,)
        Its values.

    Examples
    --------
    >>> unused_reason("numHelpful", "number", pd.Series([0, 3, 1]))
    'a count of votes'
    >>> unused_reason("price", "number", pd.Series([9.5, 3, 1]))
    ''
    >>> unused_reason("Weight (kg)", "number", pd.Series([71, 64.5, 90]))
    ''
    """
    parts = name_parts(name)
    if kind.startswith("date"):
        return "a date"
    if kind in ("number", "category") and parts & IDENTIFIERS:
        return "an identifier"
    if kind != "number" or np.iscomplexobj(column):
        return ""
    if parts & TIMES:
        return "a date"
    values = parsed_numbers(column)
    known = values[np.isfinite(values)]
    if not len(known) or known.min() < 0:
        return ""
    if parts & WEIGHTS:
        is_weight = len(parts) == 1 or parts & SURVEYS or MEAN_WEIGHT[0] <= known.mean() <= MEAN_WEIGHT[1]
        return "a weight" if is_weight else ""
    whole = bool((known == np.round(known)).all())
    if whole and "index" in parts and len(np.unique(known)) > NEARLY_UNIQUE * len(known):
        return "an identifier"
    if whole and parts & VOTES:
        return "a count of votes"
    # Numbers of the rows, in any order.
    counts_rows = whole and len(known) > 100 and np.ptp(known) == len(known) - 1 and len(np.unique(known)) == len(known)
    return "a number of the row" if counts_rows else ""


def name_parts(name: str) -> set[str]:
    """Return the words of a name in lower case.

    >>> sorted(name_parts("reviews.numHelpful"))
    ['helpful', 'num', 'reviews']
    """
    return {part.lower() for part in NAME_PART.findall(name)}


def is_like_group(name: str) -> bool:
    """Return whether the name of a column suggests that it holds groups of rows.

    >>> is_like_group("productId"), is_like_group("shop_name"), is_like_group("restored")
    (True, True, False)
    """
    return any(LIKE_GROUP.fullmatch(part) for part in name_parts(name))


def likely_groups(kinds: Mapping[str, str]) -> list[str]:
    """Return the columns whose names suggest that they hold groups of rows."""
    return [name for name, kind in kinds.items() if kind in ("category", "number") and is_like_group(name)]


def other_columns_help(
    table: pd.DataFrame, kinds: Mapping[str, str], codes: Codes, groups: Codes | None = None
) -> bool:
    """Return whether other columns than text lower the error on held-out rows.

    Logistic regressions of text alone and of text with all other columns are compared by their log loss on the same
    folds of at most 3,000 rows. Folds keep groups together. If a table is too small for this, the columns are used and
    a warning is logged.

    Parameters
    ----------
    table : DataFrame (N, ...)
        Training rows.
    kinds : mapping of str to str
        Kind of each column.
    codes : ndarray (N,)
        Class index of each row.
    groups : ndarray (N,), default=None
        Group number of each row.
    """
    rows = np.random.default_rng(0).permutation(len(table))[:N_ROWS]
    some, codes, groups = typed(table.iloc[rows], kinds), codes[rows], None if groups is None else groups[rows]
    texts = [name for name, kind in kinds.items() if kind == "text"]
    try:
        words = [TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=N_TERMS) for _ in texts]
        X = sparse.hstack([one.fit_transform(some[name]) for one, name in zip(words, texts, strict=True)]).tocsr()
        folds = make_folds(N_FOLDS, codes, groups, seen=False)
    except ValueError as error:  # no word occurs twice, or too few rows or groups for folds
        used = ", ".join(repr(name) for name in kinds if name not in texts)
        logger.warning("columns next to text are used without a comparison of held-out errors: %s (%s)", used, error)
        return True
    rest = some[[name for name in kinds if name not in texts]]
    others = table_encoder(rest, scale=True).fit_transform(rest)
    both = sparse.hstack([X, sparse.csr_matrix(others)]).tocsr()
    gain = _held_out_loss(X, codes, folds) - _held_out_loss(both, codes, folds)
    sums = np.bincount(np.arange(len(gain)) if groups is None else groups, weights=gain)
    return bool(gain.sum() > N_ERRORS * np.sqrt((sums**2).sum()))


def _held_out_loss(X: Any, codes: Codes, folds: list[tuple[Codes, Codes]]) -> Floats:
    """Return the log loss of each item (N,) by a model that was fitted without it."""
    loss = np.zeros(len(codes))
    for train, test in folds:
        model = LogisticRegression(**MODEL).fit(_safe_indexing(X, train), codes[train])
        p = np.full((len(test), int(codes.max()) + 1), 1e-6)  # classes that are not in the training fold
        p[:, model.classes_] = model.predict_proba(_safe_indexing(X, test))
        loss[test] = -np.log(np.maximum(p[np.arange(len(test)), codes[test]], 1e-6))
    return loss
