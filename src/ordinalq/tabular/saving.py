"""Fitted models in files, from which no code is run: `save_model` and `load_model`.

A file ``.oq`` is a ZIP archive of two members: ``meta.json`` says what the model is and who made it, ``model.skops`` is
the model as skops writes it, that is JSON and arrays, never a pickle. A checksum over both tells a damaged file; it
does not tell who wrote it. What protects the reader of a stranger's file is that only types on a list are built: those
that skops trusts (scikit-learn, NumPy, SciPy) and our own, each by its name.
"""

import copy
import hashlib
import io
import json
import platform
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ordinalq.files.writing import check_output, replacing

# Increased whenever an older ordinalq could not read the file or would read it wrongly.
FORMAT = 1
META, PAYLOAD = "meta.json", "model.skops"

# What a file may become in memory: so many bytes, and so many times its size. Deflate alone can make it a thousand
# times.
FREE_BYTES = 1 << 26
MAX_RATIO = 100
MAX_META = 1 << 24


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about itself.

    Attributes
    ----------
    format : int
        Of the file.
    versions : dict of str to str
        Of python, ordinalq, scikit-learn, numpy and skops that made the model.
    method : str
        Name in the catalog, or of the class.
    parameters : dict of str to str
        As text.
    classes : list
        In ascending order.
    p_train : list of float
        Class distribution of the training items.
    n_held_out : int or None
        Held-out items that are kept for intervals.
    columns : dict of str to str
        Name and kind of each column of a table that the model needs; "" where the kind is not known.
    target : str or None
        Column of the labels in the training table.
    """

    format: int
    versions: dict[str, str]
    method: str
    parameters: dict[str, str]
    classes: list[Any]
    p_train: list[float]
    n_held_out: int | None
    columns: dict[str, str]
    target: str | None


def save_model(model: Any, path: str | Path, *, overwrite: bool = False) -> ModelInfo:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : quantifier, or pipeline that ends with one
        Fitted.
    path : str or Path
        Usually ``something.oq``. A model that is there is replaced; any other file is refused.
    overwrite : bool, default=False
        Replace whatever is there.

    Returns
    -------
    ModelInfo
        What the file says about the model.

    Examples
    --------
    >>> import ordinalq as oq, tempfile
    >>> y = np.repeat([1, 2, 3], 40)
    >>> X = y[:, None] + np.random.default_rng(0).normal(size=(120, 2))
    >>> q = oq.PACC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = oq.save_model(q, f"{folder}/stars.oq")
    ...     same = oq.load_model(f"{folder}/stars.oq")
    >>> info.classes, bool((same.predict(X) == q.predict(X)).all())
    ([1, 2, 3], True)
    """
    import skops.io
    from sklearn.utils.validation import check_is_fitted

    quantifier = final_quantifier(model)
    check_is_fitted(quantifier, "p_train_")
    path = check_output(Path(path))
    if path.exists() and not overwrite and not is_model(path):
        raise FileExistsError(f"{path}: exists and is no model of ordinalq; name another file, or say overwrite=True.")
    info = _describe(model, quantifier)
    packed, pairs = _pack(model, quantifier)
    try:
        payload = skops.io.dumps(packed, compression=zipfile.ZIP_DEFLATED)
        if _unpacked_size(payload) > _allowed(len(payload)):
            payload = skops.io.dumps(packed)  # so regular that it would look like a bomb
    except (TypeError, ValueError) as error:
        raise type(error)(f"the model cannot be saved without pickling: {error}") from error
    meta = {**vars(info), "pairs": pairs}
    meta["sha256"] = _checksum(meta, payload)
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        # Members without a date: when a model was made says nothing about it.
        archive.writestr(zipfile.ZipInfo(META), json.dumps(meta, indent=1))
        archive.writestr(zipfile.ZipInfo(PAYLOAD), payload)
    return info


def load_model(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save_model` has written; no code from the file is run.

    Parameters
    ----------
    path : str or Path
        The file.
    trusted : list of str, default=()
        Names of further types that may be built, such as "mypackage.MyClassifier"; those that are neither known nor
        listed are refused, and the error names them.

    Returns
    -------
    quantifier, or pipeline that ends with one
    """
    model, _ = load_model_and_info(path, trusted=trusted)
    return model


def load_model_and_info(path: str | Path, *, trusted: Sequence[str] = ()) -> tuple[Any, ModelInfo]:
    """Read a model with what its file says about it, see :func:`load_model`."""
    import skops.io

    path = Path(path)
    if isinstance(trusted, str):
        raise TypeError(f"trusted must be a list of names of types, got the text {trusted!r}.")
    meta, payload = _read(path)
    info = _check_meta(meta, payload, path)
    try:
        types = _refuse_untrusted(payload, trusted, path)
        with warnings.catch_warnings():
            # _check_meta has judged the versions already.
            warnings.filterwarnings("ignore", category=UserWarning, message="Trying to unpickle")
            model = skops.io.loads(payload, trusted=types)
        _check_trees(model)
        quantifier = final_quantifier(model)
        for name in meta["pairs"]:
            setattr(quantifier, name, dict(getattr(quantifier, name)))
        if _plain(quantifier.classes_) != info.classes:
            raise ValueError(f"its classes are not {info.classes}")
    except UntrustedTypesError:
        raise
    except Exception as error:  # whatever a forged file makes skops do
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: the model in it cannot be read: {reason[:200]}") from error
    return model, info


def read_info(path: str | Path) -> ModelInfo:
    """Return what a model file says about itself; the model is checked against its checksum, but not loaded."""
    path = Path(path)
    return _check_meta(*_read(path), path)


def is_model(path: Path) -> bool:
    """Say whether a file looks like one of `save_model`, whatever its version."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {META, PAYLOAD} <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


class UntrustedTypesError(ValueError):
    """A model file asks for types that are not known to be harmless."""


def final_quantifier(model: Any) -> Any:
    """Return the quantifier: the model itself, or the last step of a pipeline."""
    from ordinalq.methods._base import Quantifier

    last = model[-1] if hasattr(model, "steps") else model
    if not isinstance(last, Quantifier):
        raise TypeError(f"model must be a quantifier, or a pipeline that ends with one, got {type(last).__name__}.")
    return last


def own_types() -> list[str]:
    """Return the names of the types and functions beyond skops' own that a model may consist of, one by one."""
    from sklearn.tree._tree import Tree

    from ordinalq import losses, regularizers, representations, smoothing
    from ordinalq.classify import calibration, held_out, ordinal
    from ordinalq.files import encoder
    from ordinalq.methods.catalog import catalog
    from ordinalq.methods.composed import ComposedQuantifier
    from ordinalq.methods.tuning import Tuning
    from ordinalq.solvers import l1, newton, quadratic
    from ordinalq.tabular.columns import TypedColumns

    things = [
        *(entry.cls for entry in catalog()),
        *(ComposedQuantifier, Tuning, TypedColumns, calibration.Calibration),
        *(held_out.CrossFitted, held_out.InSample, held_out.OutOfBag),
        *(ordinal.LeastAbsoluteDeviation, ordinal.OrdinalLogisticAT),
        *(ordinal.OrdinalLogisticIT, ordinal.OrdinalRidge),
        *(losses.CumulativeSquares, losses.Energy, losses.Hellinger),
        *(losses.LeastSquares, losses.MatchDistance, losses.Poisson),
        *(regularizers.LogTikhonov, regularizers.NoPenalty),
        *(smoothing.PolynomialSmoothing, regularizers.Tikhonov),
        *(representations.HardVotes, representations.Histograms, representations.MeanDistances),
        *(representations.Partition, representations.Posteriors, representations.RankHistogram),
        *(l1.L1Solver, newton.NewtonSolver, quadratic.QuadraticSolver),
        # Not skops' own because a forged one can point outside of its arrays; `_check_trees` looks at that.
        Tree,
        # Read from the header of an empty array.
        np.dtype,
        # Functions: steps of `table_encoder`.
        *(encoder.to_float, encoder.to_object, encoder.calendar, encoder.calendar_names),
    ]
    return sorted(f"{thing.__module__}.{thing.__qualname__}" for thing in things)


def _describe(model: Any, quantifier: Any) -> ModelInfo:
    import sklearn
    import skops

    import ordinalq

    columns = getattr(model[0], "kinds", None) if hasattr(model, "steps") else None
    if columns is None:
        columns = dict.fromkeys(map(str, getattr(model, "feature_names_in_", ())), "")
    held_out = getattr(quantifier, "held_out_", None)
    return ModelInfo(
        format=FORMAT,
        versions={
            "python": platform.python_version(),
            "ordinalq": ordinalq.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "skops": skops.__version__,
        },
        method=type(quantifier).__name__,
        parameters={name: repr(value) for name, value in quantifier.get_params(deep=False).items()},
        classes=_plain(quantifier.classes_),
        p_train=quantifier.p_train_.tolist(),
        n_held_out=None if held_out is None else len(held_out[1]),
        columns=dict(columns),
        target=getattr(model[0], "target", None) if hasattr(model, "steps") else None,
    )


def _plain(classes: Any) -> list[Any]:
    """Return labels as JSON has them."""
    return [
        label if isinstance(label, str | int | float | bool) else str(label) for label in np.asarray(classes).tolist()
    ]


def _pack(model: Any, quantifier: Any) -> tuple[Any, list[str]]:
    """Return a copy in which dictionaries of the quantifier with keys that JSON lacks are lists of pairs, and which."""
    odd = [
        name
        for name, value in vars(quantifier).items()
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value)
    ]
    if not odd:
        return model, []
    packed = copy.copy(quantifier)
    for name in odd:
        setattr(packed, name, list(getattr(quantifier, name).items()))
    if model is not quantifier:
        model = copy.copy(model)
        model.steps = [*model.steps[:-1], (model.steps[-1][0], packed)]
        return model, odd
    return packed, odd


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return both members of a file, of a size that can be."""
    if path.is_dir():
        raise ValueError(f"{path}: expected a model file, got a folder.")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: expected a model of ordinalq, but the file is empty.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if len(members) != len(archive.infolist()) or set(members) != {META, PAYLOAD}:
                raise ValueError(f"{path}: expected a model of ordinalq, got an archive of {_listed(members)}.")
            # Both members are stored as they are, so that nothing can grow here.
            for member in members.values():
                if member.compress_type != zipfile.ZIP_STORED or member.file_size > path.stat().st_size:
                    raise ValueError(f"{path}: {member.filename} must not be compressed; the file is not ours.")
            if members[META].file_size > MAX_META:
                raise ValueError(f"{path}: {META} has {members[META].file_size:,} bytes; the file is not ours.")
            text, payload = archive.read(META), archive.read(PAYLOAD)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        with path.open("rb") as stream:
            start = stream.read(4)
        if start[:1] == b"\x80" or start[:2] == b"\x1f\x8b":
            what = "it looks like a pickle, which is never loaded"
        elif start[:2] == b"PK":
            what = f"the file is damaged or incomplete ({error})"
        else:
            what = "it is something else"
        raise ValueError(f"{path}: expected a model of ordinalq, but {what}.") from error
    try:
        meta = json.loads(text)
        if not isinstance(meta, dict):
            raise ValueError("it is no JSON object")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {META} in it cannot be read: {error}.") from error
    if payload[:2] != b"PK":
        raise ValueError(f"{path}: {PAYLOAD} in it was not written by skops; pickles are never loaded.")
    try:
        size = _unpacked_size(payload)
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"{path}: {PAYLOAD} in it is damaged ({error}).") from error
    if size > _allowed(len(payload)):
        raise ValueError(
            f"{path}: the model in it would grow to {size:,} bytes, which no model does; it is not loaded."
        )
    return meta, payload


def _check_meta(meta: dict[str, Any], payload: bytes, path: Path) -> ModelInfo:
    """Check format, versions and checksum, in this order: a newer file may do everything differently."""
    number = meta.get("format")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{path}: {META} in it names no format of ordinalq, got {number!r}.")
    versions = meta.get("versions")
    versions = versions if isinstance(versions, dict) else {}
    if number > FORMAT:
        raise ValueError(
            f"{path}: was made by a newer ordinalq ({versions.get('ordinalq', 'unknown')}, format {number}; this is "
            f"format {FORMAT}): upgrade ordinalq, or fit the model again."
        )
    names = [*ModelInfo.__annotations__, "pairs", "sha256"]
    missing = [name for name in names if name not in meta]
    if missing:
        raise ValueError(f"{path}: {META} in it is incomplete: {', '.join(missing)} missing.")
    if meta["sha256"] != _checksum(meta, payload):
        raise ValueError(f"{path}: the checksum does not match: the file was damaged or changed after it was written.")
    _check_versions(versions, path)
    return ModelInfo(**{name: meta[name] for name in ModelInfo.__annotations__})


def _check_versions(versions: dict[str, str], path: Path) -> None:
    """Refuse what newer versions have made, and another major version; warn of another minor scikit-learn."""
    import sklearn

    import ordinalq

    for package, here in (("ordinalq", ordinalq.__version__), ("scikit-learn", sklearn.__version__)):
        then = _release(versions.get(package))
        now = _release(here)
        if then is None or now is None:
            raise ValueError(f"{path}: names no version of {package} that made it, got {versions.get(package)!r}.")
        if then > now or then[0] != now[0]:
            raise ValueError(
                f"{path}: was made with {package} {versions[package]}, but {here} is installed: install "
                f"{package} {then[0]}.{then[1]}, or fit the model again."
            )
        if then < now and package == "scikit-learn":
            warnings.warn(
                f"{path}: was made with scikit-learn {versions[package]}, but {here} is installed: estimates may "
                "differ; fit the model again to be sure.",
                UserWarning,
                stacklevel=4,
            )


def _release(version: Any) -> tuple[int, int] | None:
    """Return major and minor version.

    >>> _release("1.9.1"), _release("0.1.0.dev0"), _release("new")
    ((1, 9), (0, 1), None)
    """
    parts = str(version).split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else None


def _refuse_untrusted(payload: bytes, trusted: Sequence[str], path: Path) -> list[str]:
    """Return the types in a payload that are not skops' own; each must be ours or listed by the caller."""
    import skops.io

    types = skops.io.get_untrusted_types(data=payload)
    unknown = sorted(set(types) - set(own_types()) - set(trusted))
    if unknown:
        raise UntrustedTypesError(
            f"{path}: holds types that are not trusted: {_listed(unknown)}; if you know who made them, and have what "
            "defines them installed, give their names as trusted=[...]."
        )
    return list(types)


def _check_trees(thing: Any, n_features: Any = None, in_ensemble: bool = False) -> None:
    """Refuse decision trees whose nodes point to others than their descendants or to features that there are not.

    Scikit-learn follows the nodes without looking, so that those of a forged file could lead anywhere in the memory.
    It compares new items with the `n_features_in_` of the estimator that it is given, and no more inside of an
    ensemble: what counts is the number there, not that of the tree.
    """
    from sklearn.base import BaseEstimator
    from sklearn.ensemble import BaggingClassifier, BaggingRegressor, BaseEnsemble
    from sklearn.tree import BaseDecisionTree
    from sklearn.tree._tree import Tree

    if isinstance(thing, Tree):
        inner = thing.children_left != -1
        own = np.arange(thing.node_count)[inner]
        for children in (thing.children_left[inner], thing.children_right[inner]):
            if not ((children > own) & (children < thing.node_count)).all():
                raise ValueError("a decision tree in it is no tree")
        if not ((thing.feature[inner] >= 0) & (thing.feature[inner] < thing.n_features)).all():
            raise ValueError("a decision tree in it asks for features that there are not")
        if not isinstance(n_features, int | np.integer) or thing.n_features != n_features:
            raise ValueError(f"a decision tree in it is for {thing.n_features} features, its model for {n_features}")
    elif isinstance(thing, BaseEstimator):
        number = vars(thing).get("n_features_in_")
        if in_ensemble and isinstance(thing, BaseDecisionTree) and hasattr(thing, "tree_") and number != n_features:
            raise ValueError(f"a decision tree in it is for {number} features, its model for {n_features}")
        # Bagging may give a tree some of the features, and has it look at them.
        inside = isinstance(thing, BaseEnsemble) and not isinstance(thing, BaggingClassifier | BaggingRegressor)
        _check_trees(list(vars(thing).values()), number, inside)
    elif isinstance(thing, dict):
        _check_trees(list(thing.values()), n_features, in_ensemble)
    elif isinstance(thing, list | tuple) or (isinstance(thing, np.ndarray) and thing.dtype == object):
        for part in thing:
            _check_trees(part, n_features, in_ensemble)


def _checksum(meta: dict[str, Any], payload: bytes) -> str:
    """Return the SHA-256 of everything else in the file."""
    rest = {name: value for name, value in meta.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode() + b"\0" + payload).hexdigest()


def _unpacked_size(payload: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        return sum(member.file_size for member in archive.infolist())


def _allowed(n_bytes: int) -> int:
    return FREE_BYTES + MAX_RATIO * n_bytes


def _listed(names: Any) -> str:
    names = [str(name)[:80] for name in names]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") if names else "nothing"
