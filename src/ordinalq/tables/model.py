"""`TableModel`: columns, an encoder, a quantifier, and classifier quality."""

import re
import warnings
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ordinalq._utils.progress import report_step
from ordinalq._utils.text import percent
from ordinalq._utils.validation import Codes, Floats, Index
from ordinalq.classifiers.cross_fitting import CrossFitted, default_classifier, make_folds
from ordinalq.inference.diagnosis import Diagnosis, diagnose
from ordinalq.inference.estimates import Estimates, check_names
from ordinalq.inference.label_plan import LabelsNeeded, labels_needed
from ordinalq.inference.options import IntervalOptions, check_level
from ordinalq.inference.predict import estimate
from ordinalq.io import columns as cells
from ordinalq.io.columns import (
    UNNAMED,
    as_pandas,
    check_kind,
    column_kinds,
    first_words,
    require_columns,
    source_name,
    typed,
)
from ordinalq.io.encoder import names_array, table_encoder, with_name_arrays
from ordinalq.quantifiers.auto import AutoQuantifier
from ordinalq.quantifiers.base import Quantifier
from ordinalq.samples.keys import Keys, is_polars
from ordinalq.samples.labels import encode_labels
from ordinalq.samples.samples import Samples, class_means
from ordinalq.samples.summary import Summary
from ordinalq.solvers.solution import distributions
from ordinalq.tables.grouping import (
    By,
    Grouping,
    check_by,
    known_labels,
    labelled_rows,
    merge_groups_by_spelling,
    merge_spellings,
    names_of,
    parsed_classes,
)
from ordinalq.tables.inner import model_for
from ordinalq.tables.model_file import save_model
from ordinalq.tables.predictors import likely_groups, other_columns_help, unused_reason
from ordinalq.tables.scales import known_order

# Numbers from the columns of a table: columns by their kinds, then an encoder of all of them.


MAX_TERMS = 50_000
CHARACTERS = (2, 4)  # lengths of character n-grams, with the budget "best"
PAIRS = (1, 2)  # words, and pairs of words


class TypedColumns(TransformerMixin, BaseEstimator):
    """Select columns of a table in the order of training, and read them by kind.

    See `ordinalq.io.columns`. ``categories_`` are those of the training table, by column.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds

    def fit(self, X: Any, y: Any = None) -> "TypedColumns":
        """Check the table."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> pd.DataFrame:
        """Return the typed columns of the training table, a pandas or polars frame."""
        for name, kind in self.kinds.items():
            check_kind(f"kinds[{name!r}]", kind)
        frame = typed(as_pandas(X), self.kinds)
        names = [name for name, kind in self.kinds.items() if kind == "category"]
        self.categories_ = {name: np.unique(frame[name].dropna().to_numpy(dtype=str)) for name in names}
        self.feature_names_in_ = names_array(list(self.kinds))
        self.n_features_in_ = len(self.kinds)
        return frame

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the typed columns of a pandas or polars frame.

        A warning is issued if all categories of a column are unknown.
        """
        frame = typed(as_pandas(X), self.kinds)
        for name, known in self.categories_.items():
            words = frame[name].dropna()
            if len(words) and not words.isin(known).any():
                warnings.warn(
                    f"no value of column {name!r} was seen in training: there {first_words(known)}, here "
                    f"{first_words(words.unique())}; are they written in the same way?",
                    UserWarning,
                    stacklevel=2,
                )
        return frame


# Column of the labels next to text, which no other column is named.
LABEL = "\0label"
# Steps of the encoder for words begin with this.
WORDS = "words of "
# A warning is issued if a larger part of the rows has no known word, besides the part of training rows without text.
MOST_UNREAD = 0.2
# Stands in no word: what words are made of is letters and figures, and pairs have a blank between them.
BETWEEN = "\n"
# The default pattern of the base class, and one that finds the same words in half the time.
DEFAULT_PATTERN, RUNS = r"(?u)\b\w\w+\b", re.compile(r"\w\w+")


class Words(TfidfVectorizer):
    """TF-IDF weights of words and word pairs, stored as one text.

    Terms are counted by arrays, which gives the matrix of the base class in about a third of its time. The state has
    one text of all terms in their order. A model file has a node for each entry of a dictionary, and for 50,000 terms,
    writing and reading these took longer than fitting the model.
    """

    def _count_vocab(self, raw_documents: Any, fixed_vocab: bool) -> tuple[dict[str, int], Any]:
        """Return the terms with their columns, and the counts (N, terms).

        The method overrides the base class.
        """
        whole = isinstance(self.min_df, Integral)
        options = (self.ngram_range, self.analyzer, self.stop_words, self.tokenizer, self.token_pattern, whole)
        if options != (PAIRS, "word", None, None, DEFAULT_PATTERN, True):
            counted: tuple[dict[str, int], Any] = super()._count_vocab(raw_documents, fixed_vocab)
            return counted
        known = self._known_terms() if fixed_vocab else None
        numbers: Any = defaultdict() if known is None else known.numbers
        if known is None:
            numbers.default_factory = numbers.__len__
        prepare, split = self.build_preprocessor(), RUNS.findall
        words, ends = array("q"), [0]
        for text in raw_documents:
            words.extend(map(numbers.__getitem__, split(prepare(self.decode(text)))))
            ends.append(len(words))
        ids = np.frombuffer(words, dtype=np.int64) if words else np.empty(0, dtype=np.int64)
        row = np.repeat(np.arange(len(ends) - 1, dtype=np.int32), np.diff(ends))
        first, second = ids[:-1], ids[1:]
        # Words that are in no term have the number -1.
        are_pairs = (row[:-1] == row[1:]) & (first >= 0) & (second >= 0)
        pairs = first[are_pairs] * len(numbers) + second[are_pairs]
        row = np.concatenate([row, row[:-1][are_pairs]])
        if known is not None:
            terms, vocabulary = np.concatenate([known.columns[ids], known.pair_columns(pairs)]), self.vocabulary_
        else:
            if not numbers:
                raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
            codes, distinct = pd.factorize(pairs)
            terms = np.concatenate([ids, len(numbers) + codes])
            # The base class removes the rest of the rare terms; naming all of them would take the longest.
            frequent = np.flatnonzero(np.bincount(terms) >= self.min_df)
            # In the order of the base class, by first occurrence, the words of a text before its pairs: then sums over
            # the terms of a text are rounded in the same way.
            first_row = np.empty(len(numbers) + len(distinct), dtype=np.int32)
            first_row[terms[::-1]] = row[::-1]
            frequent = frequent[np.lexsort((frequent, first_row[frequent]))]
            place = np.full(len(first_row), -1, dtype=np.int32)
            place[frequent] = np.arange(len(frequent))
            terms, names = place[terms], list(numbers)
            vocabulary = {}
            for column, term in enumerate(frequent.tolist()):
                if term < len(names):
                    vocabulary[names[term]] = column
                else:
                    one, other = divmod(int(distinct[term - len(names)]), len(names))
                    vocabulary[f"{names[one]} {names[other]}"] = column
        found = terms >= 0
        ones, shape = np.ones(found.sum(), dtype=self.dtype), (len(ends) - 1, len(vocabulary))
        X = sparse.coo_matrix((ones, (row[found], terms[found])), shape=shape).tocsr()
        X.sort_indices()
        return vocabulary, X

    def _known_terms(self) -> "_Terms":
        """Return the terms of the fitted vocabulary as arrays; they are made once."""
        known: _Terms | None = getattr(self, "_terms", None)
        if known is None or known.vocabulary is not self.vocabulary_:
            known = self._terms = _Terms.of(self.vocabulary_)
        return known

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, of the vocabulary only the words."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_terms", None)
        if (numbers := state.get("vocabulary_")) is not None:
            state["vocabulary_"] = BETWEEN.join(sorted(numbers, key=numbers.__getitem__))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Number the words again."""
        if (words := state.get("vocabulary_")) is not None:
            state = {**state, "vocabulary_": {word: i for i, word in enumerate(words.split(BETWEEN))}}
        super().__setstate__(state)


class _Numbers(dict[str, int]):
    """Numbers of words; -1 for any other word."""

    def __missing__(self, _: str) -> int:
        return -1


class _Terms(NamedTuple):
    """Terms of a vocabulary: word numbers, word columns, and pair columns.

    Columns of pairs are found by their codes.
    """

    vocabulary: dict[str, int]
    numbers: _Numbers
    columns: npt.NDArray[np.int32]  # of words by their numbers, and -1 at the end for other words
    codes: Index  # ascending
    of_codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, vocabulary: dict[str, int]) -> "_Terms":
        """Return the terms; those with a space are pairs."""
        pairs = {tuple(term.split(" ")): column for term, column in vocabulary.items() if " " in term}
        words = [term for term in vocabulary if " " not in term]
        numbers = _Numbers(
            (word, i) for i, word in enumerate(dict.fromkeys([*words, *(w for pair in pairs for w in pair)]))
        )
        columns = np.full(len(numbers) + 1, -1, dtype=np.int32)
        columns[: len(words)] = [vocabulary[word] for word in words]
        codes = np.array([numbers[a] * len(numbers) + numbers[b] for a, b in pairs], dtype=np.int64)
        order = np.argsort(codes)
        return cls(vocabulary, numbers, columns, codes[order], np.array(list(pairs.values()), dtype=np.int32)[order])

    def pair_columns(self, pairs: Index) -> Index:
        """Return the columns of pairs, -1 for pairs that are not terms."""
        if not len(self.codes):
            return np.full(len(pairs), -1)
        place = np.minimum(np.searchsorted(self.codes, pairs), len(self.codes) - 1)
        return np.where(self.codes[place] == pairs, self.of_codes[place], -1)


def unfitted_encoder(frame: pd.DataFrame, kinds: Mapping[str, str], *, with_characters: bool = False) -> Any:
    """Return the unfitted transformer for the typed columns of a training table.

    Its output are numbers. Text becomes TF-IDF weights of words and pairs of words, at most 50,000 of each column, and
    with `with_characters` as many of 2 to 4 characters. Other columns are encoded by
    :func:`ordinalq.io.encoder.table_encoder`, with numbers of unit variance.

    Parameters
    ----------
    frame : pandas.DataFrame (N, ...)
        Typed training table.
    kinds : dict of str to str
        Kind of each column.
    with_characters : bool, default=False
        Whether character n-grams are added.

    Returns
    -------
    encoder : ColumnTransformer
        Unfitted.
    """
    texts = [name for name, kind in kinds.items() if kind == "text"]
    others = [name for name, kind in kinds.items() if kind != "text"]
    steps: list[Any] = []
    for name in texts:
        vectorizer = Words(
            ngram_range=PAIRS,
            sublinear_tf=True,
            min_df=2 if len(frame) < 2000 else 5,
            max_features=MAX_TERMS,
            dtype=np.float32,
        )
        steps.append((f"{WORDS}{name}", vectorizer, name))
        if with_characters:
            characters = clone(vectorizer).set_params(analyzer="char_wb", ngram_range=CHARACTERS)
            steps.append((f"characters of {name}", characters, name))
    if others:
        positions = np.flatnonzero([kind != "text" for kind in kinds.values()])
        steps.append(("other columns", table_encoder(frame[others], scale=True), positions))
    # With words the matrix is sparse, also if it has other columns.
    return ColumnTransformer(steps, sparse_threshold=1.0 if texts else 0.0, verbose_feature_names_out=False)


# Quality of the classifier on held-out items, compared with a constant class.


# A class with fewer labelled items is called rare: its column of M scatters by .1 and more.
RARE = 30
# Numbers of classes whose orders are compared: with fewer any order is as good, with more there are too many orders.
MIN_ORDERED, MAX_ORDERED = 4, 7
# Part of the items that a model of the learning curve learns from; the folds learn from twice as many.
PART = 0.4
# e(N) = a + b / sqrt(N): from the errors at PART N and 2 PART N follows that at 2 N, in parts of their difference.
GAIN = (1 - np.sqrt(0.5)) / (1 / np.sqrt(PART) - 1 / np.sqrt(2 * PART))
# Numbers with more distinct values than this are not a scale in which one could be missing.
LONGEST_SCALE = 12


def quality(quantifier: Quantifier, X: Any, codes: Codes, groups: Codes | None = None) -> dict[str, Any] | None:
    """Measure the quality of a quantifier's classifier, or return None.

    The classifier was fitted on items with codes and groups. The result is None if the quantifier has no classifier.
    "accuracy" is the fraction of held-out items that are classified correctly. "largest_share" is the accuracy of
    always predicting the largest class. "distance" is the mean absolute error of held-out items in classes.
    "median_distance" is that of always predicting the median class. "rare" are the labels with fewer than 30 items,
    with their counts. "twice" is the accuracy to expect with twice as many labels. It is None if there are too few
    items.

    Parameters
    ----------
    quantifier : Quantifier
        Fitted.
    X : array-like (N, d)
        Encoded training items.
    codes : ndarray (N,)
        Classes of the items.
    groups : ndarray (N,), default=None
        Groups of the items, which stay together in folds.

    Returns
    -------
    found : dict or None
        The values above by name; None without a classifier.
    """
    S = getattr(getattr(quantifier, "classifier_", None), "held_out_scores_", None)
    if S is None:
        return None
    n = len(quantifier.classes_)
    counts = np.bincount(codes, minlength=n)
    scored = ~np.isnan(S).any(axis=1)
    votes, y = S[scored].argmax(axis=1), codes[scored]
    median = int(np.searchsorted(np.cumsum(counts), len(codes) / 2))
    names = [str(label) for label in quantifier.classes_.tolist()]
    return {
        "accuracy": float((votes == y).mean()),
        "largest": names[int(counts.argmax())],
        "largest_share": float(counts.max() / len(codes)),
        "distance": float(np.abs(votes - y).mean()),
        "median": names[median],
        "median_distance": float(np.abs(median - codes).mean()),
        "rare": {names[i]: int(counts[i]) for i in range(n) if counts[i] < RARE},
        "better_order": _better_order(S[scored], y, names),
        "twice": _with_twice_as_many(quantifier, X, codes, groups, float((votes == y).mean())),
    }


def _better_order(S: Floats, codes: Codes, names: Sequence[str]) -> list[str] | None:
    """Return a class order that fits the confusions better, or None.

    In this order neighbours are confused more often. The result is None if the given order is not contradicted.
    Confusions are held-out scores in each class over their mean, so that frequent classes do not dominate. The cost of
    an order is the mean distance of classes that are confused. The best order of each half of the items is applied to
    the other half. The given order is contradicted if both times the best one costs much less, and is also better than
    random orders.

    Parameters
    ----------
    S : ndarray (N, n)
        Held-out scores.
    codes : ndarray (N,)
        Classes of the items.
    names : list of str
        Classes in the given order.
    """
    n = len(names)
    if not MIN_ORDERED <= n <= MAX_ORDERED or np.bincount(codes, minlength=n).min() < RARE:
        return None
    orders = np.array([order for order in permutations(range(n)) if order[0] < order[-1]])
    ranks = np.argsort(orders, axis=1)

    def costs(rows: Index) -> Floats:
        M = class_means(S[rows], codes[rows])
        C = M / M.mean(axis=1, keepdims=True)
        C = C + C.T
        return np.asarray(sum(C[i, j] * np.abs(ranks[:, i] - ranks[:, j]) for i in range(n) for j in range(i)))

    # Both halves have items of every class.
    by_class = np.argsort(codes, kind="stable")
    halves = [costs(by_class[start::2]) for start in (0, 1)]
    for here, there in (halves, halves[::-1]):
        chosen = there[here.argmin()]
        gained, possible = there[0] - chosen, there.mean() - there.min()
        if there.mean() - chosen < possible / 2 or gained < possible / 2:
            return None
    best = orders[int(np.argmin(halves[0] + halves[1]))].tolist()
    # An order and its reverse are confused in the same way.
    flipped = np.corrcoef(best, np.arange(n))[0, 1] < 0
    return [names[i] for i in (best[::-1] if flipped else best)]


def _with_twice_as_many(
    quantifier: Quantifier, X: Any, codes: Codes, groups: Codes | None, accuracy: float
) -> float | None:
    """Return the accuracy to expect with twice as many labels, or None.

    The result is None if there are too few labels for an estimate. One more model learns from half as many items as
    those of the folds. In a stack it is one of a cross-fitted member. If there is none (forests), a plain logistic
    regression measures the gain of more labels.
    """
    classifier = getattr(quantifier, "classifier_", None)
    parts_of = [classifier, *getattr(classifier, "members_", ())]
    member = next((one for one in parts_of if isinstance(one, CrossFitted)), None)
    model = default_classifier() if member is None else member.estimators_[0]
    try:
        # Of five folds four teach the larger model, two of them the smaller one; the fifth judges where it must.
        parts = [test for _, test in make_folds(5, codes, groups)]
    except ValueError:
        return None
    small = np.concatenate(parts[: max(1, len(parts) // 2)])
    judged = parts[-1] if member is None else np.concatenate(parts[max(1, len(parts) // 2) :])
    if len(parts) < 5 or len(np.unique(codes[small])) < len(quantifier.classes_):
        return None
    below = _accuracy(model, X, codes, small, judged)
    if member is None:
        above = _accuracy(model, X, codes, np.concatenate(parts[:-1]), judged)
    else:
        above = float((member.held_out_scores_.argmax(axis=1) == codes).mean())
    return float(np.clip(accuracy + GAIN * max(above - below, 0.0), accuracy, 1))


def _accuracy(model: Any, X: Any, codes: Codes, taught: Codes, judged: Codes) -> float:
    """Return the accuracy on the judged items of a model fitted on the others.

    The model is fitted on the items `taught`.
    """
    fitted = clone(model).fit(_safe_indexing(X, taught), codes[taught])
    return float((np.asarray(fitted.predict(_safe_indexing(X, judged))) == codes[judged]).mean())


def missing_labels(classes: Sequence[Any]) -> list[str]:
    """Return integers that are missing in a scale of labels.

    They are missing between one and the first label, or between labels.

    >>> [missing_labels(labels) for labels in ([3, 4, 5], [1, 2, 4], [0, 1, 2], [10, 20], ["a", "b"])]
    [['1', '2'], ['3'], [], [], []]
    """
    try:
        numbers = np.array([float(label) for label in classes])
    except (TypeError, ValueError):
        return []
    whole = (numbers == np.round(numbers)).all() and (np.diff(numbers) == 1).any()
    if not whole or numbers[0] < 0 or numbers[-1] > LONGEST_SCALE:
        return []
    scale = range(min(1, int(numbers[0])), int(numbers[-1]) + 1)
    return [str(value) for value in scale if value not in numbers]


def sentences(found: dict[str, Any] | None, classes: Sequence[Any], unit: str) -> list[tuple[str, str]]:
    """Return lines about a classifier and its labels: a word and a sentence each."""
    said = []
    if found is not None:
        always = f"always saying {found['largest']} would be right in {percent(found['largest_share'], 0)}"
        said.append(("accuracy", f"{percent(found['accuracy'], 0)} of the items, held out; {always}"))
        off = f"off by {found['distance']:.2f} {unit} on average"
        said.append(("distance", f"{off}; always saying {found['median']} by {found['median_distance']:.2f}"))
        if found["twice"] is not None:
            gain = found["twice"] - found["accuracy"]
            more = f"may raise the accuracy to about {percent(found['twice'], 0)}"
            hardly = "would hardly change the accuracy"
            said.append(("labels", f"twice as many {more if gain >= 0.01 else hardly}"))
        if found.get("better_order"):
            fits = f"Check it; {', '.join(found['better_order'])} would fit better"
            said.append(
                ("order", f"contradicted by the data: neighbouring classes are hardly taken for one another. {fits}")
            )
        usual = known_order(names := [str(label) for label in classes])
        if usual is not None and usual != names and not found.get("better_order"):
            said.append(("order", f"not the usual order of these words: {', '.join(usual)}. Check it"))
        if found["rare"]:
            few = ", ".join(f"{name} ({count})" for name, count in found["rare"].items())
            said.append(("rare", f"fewer than {RARE} items of {few}: label more of these first"))
    if missing := missing_labels(classes):
        them = "it" if len(missing) == 1 else "these"
        gone = f"no item is labelled {' or '.join(missing)}: shares of {them} cannot be estimated"
        said.append(("absent", f"{gone}; label some if there are any"))
    return said


def unit(target: str | None, classes: Sequence[Any]) -> str:
    """Return the unit of errors: the target if it names steps of one, or classes.

    Stars are such steps.

    >>> unit("stars", [1, 2, 3]), unit("rating", [1, 2, 3]), unit("sizes", ["S", "M", "L"])
    ('stars', 'classes', 'classes')
    """
    try:
        steps = np.diff(np.array([float(label) for label in classes]))
    except (TypeError, ValueError):
        return "classes"
    return target if target and target.isalpha() and target.endswith("s") and (steps == 1).all() else "classes"


class TableModel(BaseEstimator):
    """A quantifier for tables, with typed columns and an encoder.

    Parameters
    ----------
    quantifier : Quantifier, default=None
        Unfitted quantifier. None means ``AutoQuantifier()``.
    text, features, categories : list of str, default=()
        Columns to use: those in `text` as text, those in `categories` as categories, the others by their values. If
        `text` and `features` are empty, all columns are used except the target, groups, weights, identifiers, dates and
        vote counts. Other columns next to text are used only if they lower the error on held-out rows.
    dates : dict of str to str, default=None
        Formats of date columns, such as ``{"day": "%m/%d/%Y"}``. ISO 8601 dates need no format.

    Attributes
    ----------
    quantifier_ : Quantifier
        Fitted quantifier.
    columns_, encoder_ : transformers
        Transformers from a frame to typed columns, and from typed columns to numbers.
    classes_ : ndarray (n,)
        Classes in ascending order.
    target_ : str
        Column of the labels.
    quality_ : dict or None
        Quality of the classifier, see :func:`ordinalq.tables.model.quality`.
    unused_ : dict of str to str
        Columns that are not used, each with the reason. Empty if columns were named.
    n_items_, n_skipped_, n_groups_ : int
        Numbers of training items, of rows left out because they have no label, and of training groups (None without
        groups).
    n_empty_, n_duplicates_ : int
        Numbers of training items without text, and of those with the text and label of an earlier row.
    weight_ : str or None
        Column of weights.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"price": np.arange(90.0), "shop": ["a", "b", "c"] * 30})
    >>> frame["stars"] = np.repeat([1, 2, 3], 30)
    >>> model = TableModel(features=["price"]).fit(frame, target="stars")
    >>> model.predict_groups(frame, by="shop").frame()[["shop", "n_items"]]
      shop  n_items
    0    a       30
    1    b       30
    2    c       30
    """

    quantifier_: Quantifier
    columns_: TypedColumns
    encoder_: Any

    def __init__(
        self,
        quantifier: Quantifier | None = None,
        *,
        text: Sequence[str] = (),
        features: Sequence[str] = (),
        categories: Sequence[str] = (),
        dates: Mapping[str, str] | None = None,
    ) -> None:
        self.quantifier = quantifier
        self.text = text
        self.features = features
        self.categories = categories
        self.dates = dates

    def fit(
        self,
        frame: Any,
        target: str,
        *,
        by: By | None = None,
        classes: Sequence[Any] | None = None,
        class_values: Sequence[float] | Mapping[Any, float] | None = None,
        skip_unlabelled: bool = False,
        sample_weight: str | None = None,
        weight_type: str = "survey",
        tidy_groups: bool = False,
    ) -> Self:
        """Fit encoder and quantifier on a labelled table.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            One row per item.
        target : str
            Column of the labels.
        by : str or list of str, default=None
            Columns of groups, or periods such as "date:month". Held-out scores then come from models that were fitted
            without the items of the group, and the quantifier learns the differences between groups. Group columns are
            not features unless they are listed as such. Rows without a group form one group.
        classes : list, default=None
            Labels in ascending order. Not needed for numbers and words from common scales, such as "unhappy" to
            "happy".
        class_values : list or dict, default=None
            Value of each class for means, see :meth:`ordinalq.PACC.fit`.
        skip_unlabelled : bool, default=False
            Leave out rows without a label. Otherwise, they raise an error.
        sample_weight : str, default=None
            Weight column. It is not a feature. Rows of weight zero are left out.
        weight_type : {"survey", "frequency"}, default="survey"
            Type of the weights, see :meth:`ordinalq.PACC.fit`.
        tidy_groups : bool, default=False
            Merge groups whose names differ only in case or spaces. Otherwise, a warning states their number.

        Returns
        -------
        self : TableModel
            Fitted.
        """
        if not isinstance(target, str):
            raise TypeError(f"target must be the name of a column, got {type(target).__name__}. Pass target='stars'.")
        asked = self.asked_columns(target)
        frame = as_pandas(frame)
        require_columns(frame.columns, [*asked, *self.categories, *(self.dates or ()), target], source_name(frame))
        check_by(names_of(by), target)
        require_columns(frame.columns, names_of(by), source_name(frame))
        columns, self.unused_ = asked, {}
        if not asked:
            roles = {target: "the target", **dict.fromkeys(names_of(by), "the group")}
            self.unused_ = roles if sample_weight is None else {**roles, sample_weight: "the weight"}
            columns = [str(name) for name in frame.columns if name not in (*self.unused_, *UNNAMED)]
        rows, y, self.n_skipped_, classes = labelled_rows(frame, target, classes, skip_unlabelled)
        w = None if sample_weight is None else cells.weights(rows, sample_weight)
        if w is not None and (kept := w > 0).any():
            rows, y, w = rows[kept], y[kept], w[kept]
        named: dict[str, Any] = {"text": self.text, "categories": self.categories, "dates": self.dates}
        kinds = column_kinds(rows, columns, **named, unused=None if asked else self.unused_)
        if not asked:
            kinds = self._without_unused(rows, kinds)
        quantifier: Quantifier = clone(AutoQuantifier() if self.quantifier is None else self.quantifier, safe=False)
        if not isinstance(quantifier, Quantifier):
            raise TypeError(f"quantifier must be a quantifier, such as OPACC(), got {type(quantifier).__name__}.")
        _check_kinds(kinds, target, quantifier, source_name(frame))
        keys = groups = None
        if by is not None:
            keys, codes = Keys.of(Grouping(by).values(rows))
            place, kept_keys = merge_spellings(keys, np.bincount(codes, minlength=len(keys)), tidy_groups)
            groups, keys = place[codes], keys[kept_keys]
        if not asked:
            kinds = self._without_useless(rows, kinds, y, classes, groups)
        self.columns_ = TypedColumns(kinds)
        table = self.columns_.fit_transform(rows)
        self.weight_ = sample_weight
        self.n_empty_, self.n_duplicates_ = _count_texts(table, kinds, y)
        with_characters = getattr(quantifier, "budget", None) == "best"
        self.encoder_ = unfitted_encoder(table, kinds, with_characters=with_characters)
        report_step("numbers of the columns", 0, 20, 3)
        X = _encoded(self.encoder_, table, kinds, source_name(frame))
        self.encoder_ = with_name_arrays(self.encoder_)
        report_step("", 3, 20, 14)
        weighted: dict[str, Any] = {} if w is None else {"sample_weight": w, "weight_type": weight_type}
        # By their names: missing values are a group, too.
        by_name = None
        if keys is not None:
            by_name = {column.name: np.array(column.whole_labels(), dtype=object)[groups] for column in keys.columns}
        how = {"classes": parsed_classes(classes, y), "class_values": class_values, "groups": by_name}
        self.quantifier_ = quantifier.fit(X, y, **how, **weighted)
        self.classes_ = self.quantifier_.classes_
        self.target_ = target
        self.n_items_ = len(y)
        self.n_groups_ = None if groups is None else len(np.unique(groups))
        report_step("how good it is", 17, 20, 3)
        self.quality_ = quality(self.quantifier_, X, encode_labels(y, self.classes_)[1], groups)
        report_step("", 20, 20)
        return self

    def asked_columns(self, target: str) -> list[str]:
        """Return the text and feature columns that were listed.

        Parameters
        ----------
        target : str
            Label column, which must not be among them.

        Returns
        -------
        columns : list of str
            Listed columns. Empty if all columns are used.
        """
        for name, given in (("text", self.text), ("features", self.features), ("categories", self.categories)):
            if isinstance(given, str):
                raise TypeError(f"{name} must be a list of columns, got the text {given!r}; write {name}=[{given!r}].")
        named = [*self.text, *self.features, *self.categories, *(self.dates or ())]
        if target in named:
            raise ValueError(f"the target {target!r} must not be among the columns to learn from.")
        both = (set(self.text) & set(self.categories)) | (set(self.dates or ()) & {*self.text, *self.categories})
        if both:
            raise ValueError(f"column {min(both)!r} must be either text or category, or a date, not two of them.")
        return list(dict.fromkeys(named)) if self.text or self.features else []

    def _without_unused(self, rows: pd.DataFrame, kinds: dict[str, str]) -> dict[str, str]:
        """Return the kinds of the columns to use by default; the others go to `unused_`."""
        asked = {*self.categories, *(self.dates or ())}
        reasons = {name: unused_reason(name, kind, rows[name]) for name, kind in kinds.items() if name not in asked}
        if "text" in kinds.values():
            reasons |= {name: "may be a group of rows" for name in likely_groups(kinds) if name not in asked}
        self.unused_ |= {name: reason for name, reason in reasons.items() if reason}
        return {name: kind for name, kind in kinds.items() if name not in self.unused_}

    def _without_useless(
        self, rows: pd.DataFrame, kinds: dict[str, str], y: Any, classes: Sequence[Any] | None, groups: Codes | None
    ) -> dict[str, str]:
        """Return the kinds of the text columns if other columns do not help.

        They do not help if they do not lower the held-out error.
        """
        texts = {name: kind for name, kind in kinds.items() if kind == "text"}
        asked = {*self.categories, *(self.dates or ())}
        others = [name for name in kinds if name not in texts and name not in asked]
        if not texts or not others:
            return kinds
        codes = encode_labels(y, parsed_classes(classes, y))[1]
        if other_columns_help(rows, kinds, codes, groups):
            return kinds
        self.unused_ |= dict.fromkeys(others, "does not lower the held-out error of the text")
        return {name: kind for name, kind in kinds.items() if name not in others}

    def fitted(self) -> Quantifier:
        """Return the fitted quantifier.

        Returns
        -------
        quantifier : Quantifier
            Fitted quantifier, ``quantifier_``.
        """
        check_is_fitted(self, "quantifier_")
        return self.quantifier_

    def encode(self, frame: Any) -> Any:
        """Encode rows as input of the quantifier, (N, d).

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.

        Returns
        -------
        X : ndarray or sparse array (N, d)
            Encoded rows.
        """
        check_is_fitted(self, "quantifier_")
        return self.encoder_.transform(self.columns_.transform(frame))

    def scores(self, frame: Any) -> Floats:
        """Return class scores (N, n) of the rows, or features.

        See :meth:`ordinalq.Quantifier.scores`.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.

        Returns
        -------
        S : ndarray (N, n) or (N, d)
            Class scores, or features for methods on features.
        """
        return np.asarray(self.fitted().scores(self.encode(frame)), dtype=np.float64)

    def predict(self, frame: Any, sample_weight: Any = None, weight_type: str = "survey") -> Floats:
        """Estimate the class distribution of all rows as one sample, shape (n,).

        Weights are as in :meth:`predict_groups`.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.
        sample_weight : str or array-like (N,), default=None
            Weights of the rows, or their column.
        weight_type : {"survey", "frequency"}, default="survey"
            Type of the weights, see :meth:`ordinalq.PACC.fit`.

        Returns
        -------
        p : ndarray (n,)
            Estimated distribution.
        """
        return np.asarray(
            distributions(self.fitted().solve(_summary(self, frame, None, None, sample_weight, weight_type)))[0]
        )

    def predict_groups(
        self,
        frame: Any,
        by: Any,
        *,
        level: float | None = None,
        labels: Any = None,
        label_inclusion: Any = None,
        drift: Any = "auto",
        options: IntervalOptions | None = None,
        sample_weight: Any = None,
        weight_type: str = "survey",
        tidy_groups: bool = False,
    ) -> Estimates:
        """Estimate the class distribution of each group of rows.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.
        by : str, list of str, array-like (N,) or frame (N, k)
            Columns of the groups, periods of dates such as "date:month", or the groups themselves. Groups keep their
            type and are sorted. Categories keep their order. Rows without a group form the last group.
        level : float, default=None
            Level of the intervals, such as 0.95. With None, intervals are not computed.
        labels : str or array-like (N,), default=None
            Labels of some rows, or their column, see :meth:`ordinalq.PACC.predict_groups`.
        label_inclusion : str or array-like (N,), default=None
            Probabilities with which labelled rows were drawn, or their column.
        drift : "auto", None, float or Drift, default="auto"
            Common offset of all groups from the training groups, see :meth:`ordinalq.PACC.predict_groups`.
        options : IntervalOptions, default=None
            Options for interval estimation, see :class:`ordinalq.inference.IntervalOptions`.
        sample_weight : str or array-like (N,), default=None
            Weights of the rows, or their column.
        weight_type : {"survey", "frequency"}, default="survey"
            Type of the weights, see :meth:`ordinalq.PACC.predict_groups`.
        tidy_groups : bool, default=False
            Merge groups whose names differ only in case or spaces. Otherwise, a warning states their number.

        Returns
        -------
        estimates : Estimates
            Distributions of the groups, with intervals if `level` is given.
        """
        model = model_for(self, by)
        summary = _summary(model, frame, by, labels, sample_weight, weight_type, label_inclusion)
        if summary.keys is not None:
            summary = merge_groups_by_spelling(summary, tidy_groups)
        found = estimate(model.fitted(), summary, level, options, drift)
        return replace(found, polars=is_polars(frame) or is_polars(by))

    def predict_interval(self, frame: Any, level: float = 0.95, by: Any = None, **how: Any) -> Estimates:
        """Estimate class distributions with intervals, of all rows or of each group.

        See :meth:`predict_groups`.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.
        level : float, default=0.95
            Level of the intervals.
        by : str, list of str, array-like (N,) or frame (N, k), default=None
            Columns of the groups, periods such as "date:month", or the groups themselves. None takes all rows as
            one sample.
        **how
            Further arguments of :meth:`predict_groups`.

        Returns
        -------
        estimates : Estimates
            Distributions with intervals.
        """
        return self.predict_groups(frame, by, level=check_level(level), **how)

    def predict_items(self, frame: Any, by: Any = None) -> Floats:
        """Return posterior probabilities of the rows, shape (N, n).

        They are conditional on the estimated prevalences of the group of each row. See
        :meth:`ordinalq.PACC.predict_items`. Columns of groups must not have missing values.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.
        by : str, list of str, array-like (N,) or frame (N, k), default=None
            Columns of the groups, periods such as "date:month", or the groups themselves. None takes all rows as
            one sample.

        Returns
        -------
        P : ndarray (N, n)
            Posterior probabilities of the rows.
        """
        groups = None if by is None else _group_values(self.fitted(), frame, by)
        return self.fitted().predict_items(self.encode(frame), groups)

    def labels_needed(
        self, frame: Any, by: Any, width: float = 0.05, quantity: Any = "mean", **how: Any
    ) -> LabelsNeeded:
        """Return the number of rows to label in each group.

        See :meth:`ordinalq.PACC.labels_needed`.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.
        by : str, list of str, array-like (N,) or frame (N, k)
            Columns of the groups, periods such as "date:month", or the groups themselves.
        width : float, default=0.05
            Upper minus lower bound of the interval to reach: in classes for the mean class, in prevalence for a class.
        quantity : "mean" or a class, default="mean"
            Interval of the mean class, or of the prevalence of a class.
        **how
            Further arguments of :meth:`ordinalq.PACC.labels_needed`, such as `labels`.

        Returns
        -------
        needed : LabelsNeeded
            Numbers of rows to label.
        """
        labels = how.pop("labels", None)
        known = [None] * len(frame) if labels is None else labels
        model = model_for(self, by)
        return labels_needed(model.fitted(), _summary(model, frame, by, known), width, quantity, **how)

    def diagnose(self, frame: Any, sample_weight: Any = None, weight_type: str = "survey") -> Diagnosis:
        """Report whether the estimate of all rows as one sample can be trusted.

        See :meth:`ordinalq.PACC.diagnose`.

        Parameters
        ----------
        frame : pandas or polars DataFrame (N, ...)
            Rows with the columns that the model was fitted on.
        sample_weight : str or array-like (N,), default=None
            Weights of the rows, or their column.
        weight_type : {"survey", "frequency"}, default="survey"
            Type of the weights, see :meth:`ordinalq.PACC.fit`.

        Returns
        -------
        diagnosis : Diagnosis
            Tests and warnings.
        """
        return diagnose(self.fitted(), _summary(self, frame, None, None, sample_weight, weight_type))

    @property
    def kinds_(self) -> dict[str, str]:
        """Name and kind of each column that is used."""
        check_is_fitted(self, "columns_")
        return dict(self.columns_.kinds)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to a file, see :func:`ordinalq.save_model`.

        Parameters
        ----------
        path : str or Path
            File to write, usually ``something.oq``.
        overwrite : bool, default=False
            Replace a file that is not a model.
        """
        save_model(self, path, overwrite=overwrite)


def _count_texts(table: pd.DataFrame, kinds: Mapping[str, str], y: Any) -> tuple[int, int]:
    """Return the number of rows without text, and of repeated rows.

    A repeated row has the text and the label of an earlier row.
    """
    texts = table[[name for name, kind in kinds.items() if kind == "text"]]
    if texts.shape[1] == 0:
        return 0, 0
    empty = texts.apply(lambda column: column.str.strip() == "").all(axis=1).to_numpy(dtype=bool)
    repeated = texts.assign(**{LABEL: y}).duplicated().to_numpy(dtype=bool)
    return int(empty.sum()), int((repeated & ~empty).sum())


def row_counts(model: TableModel) -> str:
    """Return the counts of rows that are incomplete or duplicates in one line.

    These are rows without label, rows without text, and duplicates. The result is "" if there are none.
    """
    counts = (
        (model.n_skipped_, f"without {model.target_!r} (not used)"),
        (model.n_empty_, "without text"),
        (model.n_duplicates_, "with the text and label of an earlier row"),
    )
    return ", ".join(f"{n:,} {what}" for n, what in counts if n)


def warn_of_weights(model: Any, sample_weight: Any) -> None:
    """Warn if a model was fitted with weights and is asked about rows without them."""
    known = getattr(model, "weight_", None)
    if known is not None and sample_weight is None:
        warnings.warn(
            f"the model was fitted with the weights {known!r}, but the rows are estimated without weights. Use "
            f"sample_weight={known!r}.",
            UserWarning,
            stacklevel=3,
        )


def _summary(
    model: TableModel,
    frame: Any,
    by: Any,
    labels: Any,
    sample_weight: Any = None,
    weight_type: str = "survey",
    label_inclusion: Any = None,
) -> Summary:
    """Return the summary of groups of rows that the quantifier needs.

    Groups, labels and weights are columns or values (N,).
    """
    quantifier = model.fitted()
    warn_of_weights(model, sample_weight)
    groups = _group_values(quantifier, frame, by)
    if isinstance(labels, str):
        require_columns(frame.columns, [labels], "the table")
        labels = known_labels(as_pandas(frame), labels, quantifier.classes_)
    if isinstance(sample_weight, str):
        sample_weight = cells.weights(as_pandas(frame), sample_weight)
    if isinstance(label_inclusion, str):
        label_inclusion = cells.probabilities(as_pandas(frame), label_inclusion)
    S, n_unread = scores_of(model, frame)
    warn_of_unread(model, n_unread, len(S))
    samples = Samples.whole(len(S)) if by is None else Samples.from_groups(groups, missing=True)
    if samples.n_items != len(S):
        raise ValueError(f"by must have one value per row, {len(S)}, got {samples.n_items}.")
    return quantifier.summarize(
        S,
        samples,
        labels=labels,
        label_inclusion=label_inclusion,
        sample_weight=sample_weight,
        weight_type=weight_type,
    )


def _group_values(quantifier: Quantifier, frame: Any, by: Any) -> Any:
    """Return the groups of the rows: the values of columns, or those that are given."""
    if not (isinstance(by, str) or _are_names(by, frame)):
        return by
    require_columns(frame.columns, names_of(by), "the table")
    check_names(quantifier.classes_, names_of(by))
    return Grouping(by).values(frame)


def _are_names(by: Any, frame: Any) -> bool:
    """Return whether a list contains names of columns of groups.

    A list as long as the frame contains values, unless all entries are names of columns.
    """
    if not isinstance(by, list | tuple) or not all(isinstance(one, str) for one in by):
        return False
    return len(by) != len(frame) or set(names_of(by)) <= {str(name) for name in frame.columns}


def _check_kinds(kinds: Mapping[str, str], target: str, quantifier: Quantifier, table: str) -> None:
    """Raise an error for columns that the quantifier cannot learn from."""
    if not kinds:
        raise ValueError(
            f"{table}: has no column to learn from besides {target!r}; name some with features=[...] or text=[...]."
        )
    words = [name for name, kind in kinds.items() if kind == "text"]
    if words and quantifier.traits.input_kind == "features":
        raise ValueError(
            f"{type(quantifier).__name__} compares histograms of columns and cannot take the text in "
            f"{words[0]!r}; use another method, such as HDy, or name other columns with features=[...]."
        )


def _encoded(encoder: Any, table: Any, kinds: Mapping[str, str], name: str) -> Any:
    """Fit the encoder and return the encoded table, shape (N, d).

    The error names columns of text without words.
    """
    try:
        return encoder.fit_transform(table)
    except ValueError as error:
        if "vocabulary" in str(error) or "no terms remain" in str(error):
            words = [column for column, kind in kinds.items() if kind == "text"]
            raise ValueError(
                f"{name}: the text in {', '.join(map(repr, words))} has no word that occurs in two rows; "
                "is it the right column?"
            ) from error
        raise


def needed_columns(model: Any) -> dict[str, str]:
    """Return the columns that a model reads, with their kinds.

    The columns of a quantifier with feature names are numbers.
    """
    if isinstance(model, TableModel):
        return model.kinds_
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if not names:
        raise ValueError("the model was not fitted on a table with named columns, so a file cannot be matched to it.")
    return dict.fromkeys(names, "number")


def scores_of(model: Any, frame: pd.DataFrame) -> tuple[Floats, int]:
    """Return class scores or features (N, ...), and the number of unread rows.

    Unread rows are those in which no text column has a word that the model knows. Models without text have none.
    """
    if isinstance(model, TableModel):
        X = model.encode(frame)
        return np.asarray(model.fitted().scores(X), dtype=np.float64), _n_unread(model, X)
    # Fitted on numbers, as quantifiers without a table are.
    return np.asarray(model.scores(typed(frame, needed_columns(model))), dtype=np.float64), 0


def _n_unread(model: TableModel, X: Any) -> int:
    """Return the number of rows of X (N, d) without a word that the model knows."""
    places = [at for name, at in model.encoder_.output_indices_.items() if name.startswith(WORDS)]
    return int((sum(X[:, at].getnnz(axis=1) for at in places) == 0).sum()) if places else 0


def warn_of_unread(model: Any, n_unread: int, n_rows: int) -> None:
    """Warn if many rows have no word that the model knows."""
    if not n_unread or n_unread <= (MOST_UNREAD + model.n_empty_ / model.n_items_) * n_rows:
        return
    names = [repr(name) for name, kind in needed_columns(model).items() if kind == "text"]
    warnings.warn(
        f"{n_unread:,} of {n_rows:,} rows have no word of the training texts in {' and '.join(names)}, so their "
        "estimates are not based on text. Check that the columns contain the same kind of text, in the same language.",
        UserWarning,
        stacklevel=4,
    )
