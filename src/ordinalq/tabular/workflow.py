"""From a table to a fitted model, from a model and a table to estimates per group, and how good they are."""

import difflib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ordinalq.evaluation import errors
from ordinalq.files.cells import as_words
from ordinalq.files.columns import column_kinds, typed
from ordinalq.files.names import MISSING_WORDS, UNNAMED, require_columns
from ordinalq.files.table import TableFile
from ordinalq.labels import MAX_LABELS, check_label_count, encode_labels
from ordinalq.methods.catalog import Entry, catalog
from ordinalq.protocols import APP, APPOQ, NPP
from ordinalq.samples import Samples
from ordinalq.tabular.columns import table_pipeline
from ordinalq.tabular.saving import final_quantifier
from ordinalq.validation import Floats, check_choice, check_integer

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("ordinalq")

CLASSIFIERS = ("logistic", "forest")

# The group of rows that name none.
NO_GROUP = "(missing)"
WHOLE = "all"

# Groups with fewer items for each class are not diagnosed: nearly anything fits them.
MIN_PER_CLASS = 10

# Of the logistic regression: held-out scores are as good with five folds as with ten, for half the time.
N_FOLDS = 5


@dataclass(frozen=True)
class Fitted:
    """A model fitted on a table.

    Attributes
    ----------
    model : Pipeline
        From a frame with the columns of `kinds` to a distribution; its last step is the quantifier.
    kinds : dict of str to str
        Name and kind of each column that is used.
    n_items : int
    n_skipped : int
        Rows without a label that were left out.
    accuracy : float or None
        Part of the training items whose class the classifier finds when they are held out.
    """

    model: Any
    kinds: dict[str, str]
    n_items: int
    n_skipped: int
    accuracy: float | None


def find_method(name: str) -> Entry:
    """Return the catalog's entry of a method; the error for a typing mistake suggests the nearest name."""
    entries = {entry.name: entry for entry in catalog()}
    if name in entries:
        return entries[name]
    known = {alias.lower(): entry.name for entry in entries.values() for alias in (entry.name, entry.paper_name)}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f"; did you mean {known[near[0]]}?" if near else "."
    raise ValueError(f"method must be one of {', '.join(entries)}, got {name!r}{hint}")


def build_quantifier(
    method: str,
    parameters: Mapping[str, Any] | None = None,
    classifier: str | None = None,
    *,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Any:
    """Return an unfitted quantifier for encoded tables.

    Parameters
    ----------
    method : str
        Name in the catalog.
    parameters : dict, default=None
        Of the method, by name.
    classifier : {"logistic", "forest"}, default=None
        Logistic regression, cross-fitted, or a random forest with out-of-bag scores. None is "logistic" where the
        method needs a classifier.
    n_jobs : int, default=None
        Models or trees that are fitted at the same time.
    random_state : int, default=0
        Of folds and forests.
    """
    entry = find_method(method)
    takes = set(entry.cls().get_params(deep=False))
    parameters = dict(parameters or {})
    for name in parameters:
        if name not in takes - {"classifier"}:
            others = ", ".join(sorted(takes - {"classifier"})) or "none"
            raise ValueError(f"{method} has no parameter {name!r}; it has: {others}.")
    if "classifier" not in takes:
        if classifier is not None:
            raise ValueError(f"{method} looks at the columns themselves and uses no classifier; leave classifier out.")
        return entry.cls(**parameters)
    return entry.cls(_classifier(classifier or "logistic", n_jobs, random_state), **parameters)


def _classifier(name: str, n_jobs: int | None, random_state: int) -> Any:
    check_choice("classifier", name, CLASSIFIERS)
    if name == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(
            300,
            oob_score=True,
            min_samples_leaf=3,
            class_weight="balanced_subsample",
            n_jobs=n_jobs,
            random_state=random_state,
        )
    from sklearn.linear_model import LogisticRegression

    from ordinalq.classify.held_out import CrossFitted

    return CrossFitted(LogisticRegression(max_iter=1000), cv=N_FOLDS, n_jobs=n_jobs, random_state=random_state)


def fit_table(
    file: TableFile,
    target: str,
    quantifier: Any,
    *,
    text: Sequence[str] = (),
    features: Sequence[str] = (),
    categories: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    skip_unlabelled: bool = False,
) -> Fitted:
    """Fit a quantifier on a labelled table.

    Parameters
    ----------
    file : TableFile
        Read as a whole.
    target : str
        Column of the labels.
    quantifier : quantifier
        Unfitted, see :func:`build_quantifier`.
    text, features, categories : list of str, default=()
        Columns to use: those of `text` as texts, those of `categories` as categories, the others by their values. All
        but the target if neither `text` nor `features` name any.
    classes : list of str, default=None
        Labels in ascending order; numbers need none.
    skip_unlabelled : bool, default=False
        Leave out rows without a label, which are an error otherwise.
    """
    from sklearn.pipeline import Pipeline

    asked = _asked(target, text, features, categories)
    if not file.lacks_keys:
        require_columns(file.columns(), [*asked, *categories, target], file.name)
    frame = file.read([*asked, target] if asked else None)
    require_columns(frame.columns, [*categories, target], file.name)
    columns = asked or [name for name in frame.columns if name not in (target, *UNNAMED)]
    frame, y, n_skipped = _labelled(frame, target, classes, skip_unlabelled)
    kinds = column_kinds(frame, columns, text=text, categories=categories)
    if not kinds:
        raise ValueError(
            f"{file.name}: has no column to learn from besides {target!r}; name some with features=[...] or text=[...]."
        )
    words = [name for name, kind in kinds.items() if kind == "text"]
    if words and quantifier._on == "features":
        raise ValueError(
            f"{type(quantifier).__name__} compares histograms of columns and cannot take the text in {words[0]!r}; "
            "use another method, such as HDy, or name other columns with features=[...]."
        )
    model = Pipeline([*table_pipeline(typed(frame, kinds), kinds, target), ("quantifier", quantifier)])
    try:
        model.fit(frame, y, quantifier__classes=_parsed_classes(classes, y))
    except ValueError as error:
        if "vocabulary" in str(error) or "no terms remain" in str(error):
            raise ValueError(
                f"{file.name}: the text in {', '.join(map(repr, words))} has no word that occurs in two rows; is it "
                "the right column?"
            ) from error
        raise
    return Fitted(model, kinds, len(y), n_skipped, _accuracy(model[-1], y))


def predict_table(
    model: Any,
    file: TableFile,
    *,
    by: str | None = None,
    level: float | None = None,
    target: str = "sample",
    n_replicates: int | None = None,
    random_state: int = 0,
    progress: Callable[[int], object] | None = None,
) -> "pd.DataFrame":
    """Estimate the class distribution of a table, or of each group of its rows, reading it in portions.

    Parameters
    ----------
    model : Pipeline
        As :func:`fit_table` or `load_model` returns it.
    file : TableFile
        Of any size.
    by : str, default=None
        Column whose values are the groups; rows without a value are the group "(missing)". None takes all rows as one
        group, "all".
    level : float, default=None
        Of intervals, such as 0.95; None gives none.
    target : {"sample", "population"}, default="sample"
        Of what the intervals are: of the rows at hand, or of the population that they were drawn from.
    n_replicates : int, default=None
        Of the bootstrap; None takes the default of the method.
    random_state : int, default=0
        Of the intervals.
    progress : callable, default=None
        Told how many bytes have been read so far.

    Returns
    -------
    DataFrame
        One row per group: its name in a column called as `by` (or "group"), n_items, one column per class, mean_class,
        and with a level <class>_lower, <class>_upper, mean_class_lower and mean_class_upper.
    """
    from ordinalq.methods.streaming import GroupTotals

    quantifier = final_quantifier(model)
    needed = needed_columns(model, file)
    if by is not None and by not in needed:
        needed = [*needed, by]
    totals = GroupTotals(quantifier)
    for frame in file.portions(needed, progress, numbers=number_columns(model)):
        groups = [WHOLE] * len(frame) if by is None else _groups(frame[by])
        totals.add(scores(model, frame), np.array(groups))
    options = {} if n_replicates is None else {"n_replicates": n_replicates}
    table = totals.table(level=level, target=target, random_state=random_state, **options)
    return _in_order(table, by)


def diagnose_table(model: Any, file: TableFile, by: str | None = None) -> tuple[Any, dict[str, Any]]:
    """Say how far the estimate of a table can be trusted; the scores of all rows are kept for it.

    Parameters
    ----------
    model, file, by
        See :func:`predict_table`.

    Returns
    -------
    whole : Diagnosis
        Of the table as one sample.
    groups : dict of str to Diagnosis
        Of the groups with at least ten items per class, by name; none without `by`.
    """
    quantifier = final_quantifier(model)
    needed = needed_columns(model, file)
    if by is not None and by not in needed:
        needed = [*needed, by]
    parts: list[Floats] = []
    names: list[str] = []
    for frame in file.portions(needed, numbers=number_columns(model)):
        parts.append(scores(model, frame))
        names += [] if by is None else _groups(frame[by])
    S = np.concatenate(parts)
    words, codes, sizes = np.unique(np.array(names, dtype=str), return_inverse=True, return_counts=True)
    large = np.flatnonzero(sizes >= MIN_PER_CLASS * len(quantifier.classes_))
    return quantifier.diagnose_scores(S), {str(words[g]): quantifier.diagnose_scores(S[codes == g]) for g in large}


def smoothing(quantifier: Any) -> dict[str, float | None]:
    """Return name and value of the strength of smoothing, None where each sample has its own; nothing if there is none.

    >>> from ordinalq import OPACC
    >>> smoothing(OPACC(tau=0.01).fit(np.arange(60.0)[:, None], np.arange(60) // 20))
    {'tau': 0.01}
    """
    name = getattr(getattr(quantifier, "regularizer_", None), "strength", None)
    if name is None:
        return {}
    value = getattr(quantifier, f"{name}_")
    return {name: None} if value is None else {name: float(value)} if value > 0 else {}


def evaluate_table(
    model: Any,
    file: TableFile,
    protocol: str = "app",
    *,
    target: str | None = None,
    n_samples: int = 1000,
    sample_size: int = 100,
    skip_unlabelled: bool = False,
    random_state: int = 0,
) -> "pd.DataFrame":
    """Measure the errors of a model on samples of a labelled table, beside simple estimates.

    Parameters
    ----------
    model : Pipeline
        As :func:`fit_table` or `load_model` returns it.
    file : TableFile
        Labelled, and none of the items that the model was fitted on.
    protocol : str, default="app"
        "app": distributions drawn uniformly; "app-oq:0.2": the smoothest fifth of them; "npp": rows drawn at random;
        "groups:COLUMN": the groups that a column names.
    target : str, default=None
        Column of the labels; None takes that of the training.
    n_samples, sample_size : int, default=1000, 100
        Number of samples (before "app-oq" chooses among them) and of items in each. Where a class has fewer items than
        a sample needs, they are repeated, which is logged.
    skip_unlabelled : bool, default=False
        Leave out rows without a label, which are an error otherwise.
    random_state : int, default=0
        Of the samples.

    Returns
    -------
    DataFrame
        One row per estimate: name, mean and standard deviation of NMD and RNOD over the samples; ``attrs`` has
        n_samples and n_items.
    """
    import pandas as pd

    quantifier = final_quantifier(model)
    target = target or getattr(model[0], "target", None) if hasattr(model, "steps") else target
    if target is None:
        raise ValueError("target must name the column of the labels: the model does not know it.")
    kind, _, argument = protocol.partition(":")
    check_choice("protocol", kind, ("app", "app-oq", "npp", "groups"))
    columns = dict.fromkeys([*needed_columns(model, file), target, *([argument] if kind == "groups" else [])])
    if kind == "groups" and not argument:
        raise ValueError("protocol must be groups:COLUMN, with the column of the groups, got 'groups'.")
    frame = file.read(list(columns))
    frame, y, _ = _labelled(frame, target, [str(label) for label in quantifier.classes_.tolist()], skip_unlabelled)
    ordered, codes = encode_labels(y, _parsed_classes(quantifier.classes_, y), name=target)
    if kind == "groups":
        samples = Samples.from_groups(np.array(_groups(frame[argument])), y=codes, classes=np.arange(len(ordered)))
    else:
        samples = _draw(kind, argument, codes, ordered, n_samples, sample_size, random_state)
    S = scores(model, frame)
    estimates = {type(quantifier).__name__: quantifier.predict_scores(S, samples)}
    if quantifier._on == "scores":
        n = len(ordered)
        estimates.setdefault("CC", samples.average(np.eye(n)[S.argmax(axis=1)]))
        estimates.setdefault("PCC", samples.average(S))
    estimates["training prevalences"] = np.tile(quantifier.p_train_, (len(samples), 1))
    rows = []
    for name, P in estimates.items():
        row: dict[str, Any] = {"estimate": name}
        for measure in ("nmd", "rnod"):
            e = errors(P, samples.prevalences, measure)
            row |= {measure: e.mean(), f"{measure}_std": e.std()}
        rows.append(row)
    table = pd.DataFrame(rows)
    table.attrs |= {"n_samples": len(samples), "n_items": len(y)}
    return table


def scores(model: Any, frame: "pd.DataFrame") -> Floats:
    """Return what the quantifier of a model sees of a frame (N, ...): class scores, or features."""
    quantifier = final_quantifier(model)
    if model is quantifier:  # fitted on numbers, as quantifiers without a pipeline are
        encoded = typed(frame, dict.fromkeys(map(str, model.feature_names_in_), "number"))
    else:
        encoded = model[:-1].transform(frame)
    return np.asarray(quantifier.scores(encoded), dtype=np.float64)


def needed_columns(model: Any, file: TableFile) -> list[str]:
    """Return the columns that a model reads."""
    kinds = getattr(model[0], "kinds", None) if hasattr(model, "steps") else None
    names = list(kinds) if kinds else list(map(str, getattr(model, "feature_names_in_", ())))
    if not names:
        raise ValueError(
            "the model was not fitted on a table with named columns, so that a file cannot be matched to it."
        )
    if not file.lacks_keys:
        require_columns(file.columns(), names, file.name)
    return names


def number_columns(model: Any) -> list[str]:
    """Return the columns in which a model reads numbers."""
    kinds = getattr(model[0], "kinds", None) if hasattr(model, "steps") else None
    return [name for name, kind in kinds.items() if kind == "number"] if kinds else []


def as_json(table: "pd.DataFrame", classes: Sequence[Any], level: float | None = None) -> dict[str, Any]:
    """Return the table of `predict_table` as an object for machines."""
    names = [str(label) for label in classes]
    groups = []
    for row in table.to_dict("records"):
        entry = {
            "group": row[table.columns[0]],
            "n_items": int(row["n_items"]),
            "prevalences": [float(row[name]) for name in names],
            "mean_class": float(row["mean_class"]),
        }
        if level is not None:
            entry["lower"] = [float(row[f"{name}_lower"]) for name in names]
            entry["upper"] = [float(row[f"{name}_upper"]) for name in names]
            entry["mean_class_lower"] = float(row["mean_class_lower"])
            entry["mean_class_upper"] = float(row["mean_class_upper"])
        groups.append(entry)
    return {"classes": list(classes), "level": level, "groups": groups}


def _groups(column: Any) -> list[str]:
    """Return the groups of rows; those that name none, by an empty cell or a word such as "NA", have one of their own.

    >>> _groups(["a", None, "NA", 1.0])
    ['a', '(missing)', '(missing)', '1']
    """
    return [NO_GROUP if not word or word in MISSING_WORDS else word for word in as_words(column)]


def _asked(target: str, text: Sequence[str], features: Sequence[str], categories: Sequence[str]) -> list[str]:
    """Return the columns to learn from, none if all are."""
    if target in [*text, *features, *categories]:
        raise ValueError(f"the target {target!r} must not be among the columns to learn from.")
    both = set(text) & set(categories)
    if both:
        raise ValueError(f"column {min(both)!r} must be either text or category, not both.")
    return list(dict.fromkeys([*text, *features, *categories])) if text or features else []


def _labelled(
    frame: "pd.DataFrame", target: str, classes: Sequence[str] | None, skip_unlabelled: bool
) -> tuple["pd.DataFrame", npt.NDArray[Any], int]:
    """Return the rows that have a label, their labels as numbers or words, and how many rows have none."""
    import pandas as pd

    words = as_words(frame[target])
    gaps = {None, "", *MISSING_WORDS} - set(as_words(classes or ()))
    missing = np.array([word in gaps for word in words])
    where = frame.attrs["where"]
    if missing.all():
        raise ValueError(f"{where}: column {target!r} has no labels at all.")
    if missing.any() and not skip_unlabelled:
        at = int(missing.argmax())
        got = repr(words[at]) if words[at] else "nothing"
        raise ValueError(
            f"{where}, {frame.index.name} {frame.index[at]}: expected a label in column {target!r}, got {got} "
            f"({missing.sum():,} of {len(frame):,} rows); fill it, or use "
            f"skip_unlabelled=True{', or name it in classes=[...]' if words[at] else ''}."
        )
    frame = frame[~missing]
    kept = np.array([word for word in words if word not in gaps], dtype=object)
    numbers = pd.to_numeric(pd.Series(kept), errors="coerce").to_numpy(dtype=np.float64)
    unreadable = ~np.isfinite(numbers)
    if unreadable.any():
        if classes is None and (~unreadable).mean() > 0.5:
            at = int(unreadable.argmax())
            raise ValueError(
                f"{where}, {frame.index.name} {frame.index[at]}: expected a number in column {target!r}, as in most "
                f"rows, got {kept[at]!r}; correct it, or give all classes in order, classes=[...]."
            )
        if classes is None:
            some = ", ".join(sorted(set(kept.tolist()))[:5])
            raise ValueError(
                f"{where}: column {target!r} has labels without an order ({some}): "
                "give all of them in ascending order, classes=[...]."
            )
        y = kept.astype(str)
    else:
        y = numbers.astype(np.int64) if (numbers == np.round(numbers)).all() else numbers
        if classes is None:
            advice = f"make at most {MAX_LABELS} classes of it first"
            check_label_count(f"{where}: column {target!r}", len(np.unique(y)), advice)
    if classes is not None:
        known = set(_parsed_classes(classes, y).tolist())
        strange = np.array([label not in known for label in y.tolist()])
        if strange.any():
            at = int(strange.argmax())
            raise ValueError(
                f"{where}, {frame.index.name} {frame.index[at]}: column {target!r} has a label that is not among the "
                f"classes {', '.join(map(str, classes))}: {kept[at]!r}."
            )
    return frame, y, int(missing.sum())


def _parsed_classes(classes: Any, y: npt.NDArray[Any]) -> Any:
    """Return the given classes as labels of the kind of `y`, None where none are given."""
    if classes is None:
        return None
    words = as_words(classes)
    if y.dtype.kind == "U":
        return np.array(words, dtype=str)
    try:
        numbers = np.array([float(word or "nan") for word in words])
    except ValueError:
        return np.array(words, dtype=str)  # then no label is among them, which the caller says
    return numbers.astype(np.int64) if y.dtype.kind == "i" and (numbers == np.round(numbers)).all() else numbers


def _accuracy(quantifier: Any, y: npt.NDArray[Any]) -> float | None:
    S = getattr(getattr(quantifier, "classifier_", None), "held_out_scores_", None)
    if S is None:
        return None
    _, codes = encode_labels(y, quantifier.classes_)
    scored = ~np.isnan(S).any(axis=1)
    return float((S[scored].argmax(axis=1) == codes[scored]).mean())


def _draw(
    kind: str,
    argument: str,
    codes: npt.NDArray[np.intp],
    classes: npt.NDArray[Any],
    n_samples: int,
    sample_size: int,
    random_state: int,
) -> Samples:
    check_integer("n_samples", n_samples, minimum=1)
    check_integer("sample_size", sample_size, minimum=1)
    counts = np.bincount(codes, minlength=len(classes))
    if kind == "npp":
        policy = "repeat" if len(codes) < sample_size else "error"
        return NPP(n_samples, sample_size, small_pool=policy, random_state=random_state).draw(
            codes, classes=np.arange(len(classes))
        )
    if (counts == 0).any():
        raise ValueError(
            f"the labelled table must have items of every class for samples of all distributions, but has none of "
            f"{classes[counts.argmin()]}; use protocol='npp'."
        )
    if counts.min() < sample_size:
        logger.info("class %s has only %d items, which repeat in samples", classes[counts.argmin()], counts.min())
    options: dict[str, Any] = {"small_pool": "repeat", "random_state": random_state}
    if kind == "app":
        chosen: Any = APP(n_samples, sample_size, **options)
    else:
        try:
            fraction = float(argument)
        except ValueError as error:
            raise ValueError(f"protocol must be app-oq:FRACTION, such as app-oq:0.2, got {argument!r}.") from error
        chosen = APPOQ(fraction, n_samples, sample_size, **options)
    drawn: Samples = chosen.draw(codes, classes=np.arange(len(classes)))
    return drawn


def _in_order(table: "pd.DataFrame", by: str | None) -> "pd.DataFrame":
    """Sort the groups, numbers by value, and call their column as in the input where no other has that name."""
    import pandas as pd

    names = table["group"].astype(str)
    numbers = pd.to_numeric(names.where(names != NO_GROUP), errors="coerce")
    is_numeric = bool((numbers.notna() | (names == NO_GROUP)).all()) and bool(numbers.notna().any())
    order = np.lexsort(
        (names.to_numpy(dtype=str), numbers.fillna(np.inf).to_numpy() if is_numeric else (names == NO_GROUP))
    )
    table = table.iloc[order].reset_index(drop=True)
    table["group"] = table["group"].astype(str)
    return table if by is None or by in table.columns else table.rename(columns={"group": by})
