"""Fitted models in files, from which no code is run: `save_model` and `load_model`.

A file ``.oq`` is a ZIP archive of two members: ``meta.json`` says what the model is and who made it, ``model.skops`` is
the model as skops writes it, that is JSON and arrays, never a pickle. A checksum over both tells a damaged file; it
does not tell who wrote it. What protects the reader of a stranger's file is that only types on a list are built: those
that skops trusts (scikit-learn, NumPy, SciPy) and our own, each by its name.
"""

import copy
import io
import json
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from ordinalq import aliases
from ordinalq._utils.text import first_of, plain
from ordinalq.io.writing import check_output, replacing
from ordinalq.quantifiers.base import Quantifier
from ordinalq.tables.contents import check_contents
from ordinalq.tables.description import META, ModelInfo, check_meta, checksum, describe, plain_labels
from ordinalq.tables.inner import fitted_quantifier, with_quantifier
from ordinalq.tables.payload import (
    OWN,
    SCHEMA,
    UNCHECKED,
    Refused,
    check_payload,
    shared_once,
    types_of,
)

PAYLOAD = "model.skops"
MAX_META = 1 << 24


def save_model(model: Any, path: str | Path, *, overwrite: bool = False) -> ModelInfo:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : TableModel, quantifier, SampleSearch, or pipeline that ends with a quantifier
        Fitted. Of a search, the best quantifier is written.
    path : str or Path
        Usually ``something.oq``. An existing model is replaced; any other existing file is refused.
    overwrite : bool, default=False
        Replace whatever is there.

    Returns
    -------
    ModelInfo
        What the file says about the model.

    Examples
    --------
    >>> import tempfile, numpy as np, ordinalq as oq
    >>> y = np.repeat([1, 2, 3], 40)
    >>> X = y[:, None] + np.random.default_rng(0).normal(size=(120, 2))
    >>> q = oq.PACC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = oq.save_model(q, f"{folder}/stars.oq")
    ...     same = oq.load_model(f"{folder}/stars.oq")
    >>> info.classes, bool((same.predict(X) == q.predict(X)).all())
    ([1, 2, 3], True)
    """
    quantifier = fitted_quantifier(model)
    check_is_fitted(quantifier, "p_train_")
    path = check_output(Path(path))
    if path.exists() and not overwrite and not is_model(path):
        raise FileExistsError(f"{path}: exists and is not an ordinalq model; name another file, or set overwrite=True.")
    if hasattr(model, "best_quantifier"):
        model = quantifier
    info = describe(model, quantifier)
    packed, pairs = _pack(model, quantifier)
    payload = payload_of(packed)
    meta = {**vars(info), "pairs": pairs}
    meta["sha256"] = checksum(meta, payload)
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
    TableModel, quantifier, or pipeline that ends with one

    Examples
    --------
    >>> import tempfile, numpy as np, ordinalq as oq
    >>> q = oq.PCC().fit_scores(np.eye(3)[[0, 1, 2, 0, 1, 2]], [1, 2, 3, 1, 2, 3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = oq.save_model(q, f"{folder}/stars.oq")
    ...     print(load_model(f"{folder}/stars.oq"))
    PCC()
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
    info = check_meta(meta, payload, path)
    _check(payload, path)
    try:
        types = _refuse_untrusted(payload, trusted, path)
        with warnings.catch_warnings():
            # check_meta has judged the versions already.
            warnings.filterwarnings("ignore", category=UserWarning, message="Trying to unpickle")
            model = skops.io.loads(payload, trusted=types)
        check_contents(model)
        quantifier = fitted_quantifier(model)
        for name in meta["pairs"]:
            setattr(quantifier, name, dict(getattr(quantifier, name)))
        if plain_labels(quantifier.classes_) != info.classes:
            raise ValueError(f"its classes are not {info.classes}")
    except UntrustedTypesError:
        raise
    except Exception as error:  # whatever a forged file makes skops do
        reason = plain(" ".join(str(error).split())) or type(error).__name__
        raise ValueError(f"{path}: the model in it cannot be read: {reason[:200]}") from error
    return model, info


def read_info(path: str | Path) -> ModelInfo:
    """Return what a model file says about itself; the model is checked against its checksum, but not loaded."""
    path = Path(path)
    meta, payload = _read(path)
    info = check_meta(meta, payload, path)
    _check(payload, path)
    return info


def is_model(path: Path) -> bool:
    """Return whether a file looks like one of `save_model`, whatever its version."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {META, PAYLOAD} <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


class UntrustedTypesError(ValueError):
    """A model file asks for types that are not known to be harmless."""


def own_types() -> list[str]:
    """Return the names of the types and functions beyond skops' own that a model may consist of, one by one."""
    # Trees are not skops' own because a forged one can point outside of its arrays; that is looked at. A type of
    # numbers is read from the header of an empty array.
    others = [
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "numpy.dtype",
    ]
    return sorted([*others, *(f"{OWN}.{alias}" for alias in (*aliases.ALIASES, *aliases.FUNCTIONS))])


def payload_of(model: Any) -> bytes:
    """Return a model as skops writes it, its parts under their aliases."""
    import skops.io

    try:
        written = skops.io.dumps(model)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the model cannot be saved without pickling: {error}") from error
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        for node, name in types_of(schema):
            if node["__module__"].partition(".")[0] == "ordinalq":
                alias = aliases.alias_of(node["__module__"], node["__class__"])
                if alias is None:
                    raise TypeError(f"the model cannot be saved: {name} has no name in files, see ordinalq.aliases.")
                node["__module__"], node["__class__"] = OWN, alias
        members = {name: archive.read(name) for name in sorted(shared_once(schema))}
    members[SCHEMA] = json.dumps(schema).encode()
    payload = _packed(members, zipfile.ZIP_DEFLATED)
    try:
        check_payload(payload)
    except Refused:
        payload = _packed(members, zipfile.ZIP_STORED)  # so regular that it would look like a bomb
        check_payload(payload)
    return payload


def _packed(members: dict[str, bytes], compression: int) -> bytes:
    stream = io.BytesIO()
    # Coefficients hardly shrink: the lowest level takes a third of the time.
    with zipfile.ZipFile(stream, "w", compression, compresslevel=1) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = compression
            archive.writestr(entry, content)
    return stream.getvalue()


def _pack(model: Any, quantifier: Quantifier) -> tuple[Any, list[str]]:
    """Return a copy in which dictionaries of the quantifier with keys that JSON lacks are lists of pairs, and which."""
    odd = [
        name
        for name, value in quantifier.__getstate__().items()
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value)
    ]
    if not odd:
        return model, []
    packed = copy.copy(quantifier)
    for name in odd:
        setattr(packed, name, list(getattr(quantifier, name).items()))
    return with_quantifier(model, packed), odd


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
                    raise ValueError(
                        f"{path}: {plain(member.filename)[:80]} must not be compressed; this file is not from ordinalq."
                    )
            if members[META].file_size > MAX_META:
                raise ValueError(f"{path}: {META} has {members[META].file_size:,} bytes; it is not from ordinalq.")
            text, payload = archive.read(META), archive.read(PAYLOAD)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        with path.open("rb") as stream:
            start = stream.read(4)
        if start[:1] == b"\x80" or start[:2] == b"\x1f\x8b":
            what = "it looks like a pickle, which is never loaded"
        elif start[:2] == b"PK":
            what = f"the file is damaged or incomplete ({plain(str(error))[:200]})"
        else:
            what = "it is something else"
        raise ValueError(f"{path}: expected a model of ordinalq, but {what}.") from error
    try:
        meta = json.loads(text)
        if not isinstance(meta, dict):
            raise ValueError("it is not a JSON object")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {META} in it cannot be read: {plain(str(error))[:200]}.") from error
    if payload[:2] != b"PK":
        raise ValueError(f"{path}: {PAYLOAD} in it was not written by skops; pickles are never loaded.")
    return meta, payload


def _check(payload: bytes, path: Path) -> None:
    """Refuse a payload that is not safe to walk."""
    try:
        check_payload(payload)
    except Refused as error:
        raise ValueError(f"{path}: {plain(str(error))}.") from error
    except Exception as error:  # whatever zipfile and zlib make of rubbish
        raise ValueError(f"{path}: {PAYLOAD} in it is damaged ({plain(str(error))[:200]}).") from error


def _refuse_untrusted(payload: bytes, trusted: Sequence[str], path: Path) -> list[str]:
    """Return the types in a payload that are not skops' own; each must be ours or listed by the caller."""
    import skops.io

    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        unchecked = {name for _, name in types_of(json.loads(archive.read(SCHEMA)))} & set(UNCHECKED)
    types = {*skops.io.get_untrusted_types(data=payload), *unchecked}
    unknown = sorted(types - set(own_types()) - set(trusted))
    if unknown:
        raise UntrustedTypesError(
            f"{path}: holds types that are not trusted: {_listed(unknown)}; if you know who made them, and have what "
            "defines them installed, give their names as trusted=[...]."
        )
    return list(types)


def _listed(names: Any) -> str:
    return first_of([plain(str(name))[:80] for name in names]) or "nothing"
