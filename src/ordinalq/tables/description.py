"""What a model file says about itself, for people and programs, and whether that can be true."""

import hashlib
import json
import platform
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from ordinalq._utils.text import plain
from ordinalq.io.columns import short
from ordinalq.quantifiers.base import Quantifier
from ordinalq.version import __version__

# Increased whenever an older ordinalq could not read the file or would read it wrongly.
FORMAT = 3
META = "meta.json"


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about itself."""

    format: int  # version of the file format
    versions: dict[str, str]  # of python, ordinalq, scikit-learn, numpy and skops that made the model
    method: str  # name in the catalog, or of the class
    parameters: dict[str, str]  # as text
    classes: list[Any]  # in ascending order
    p_train: list[float]  # class distribution of the training items
    n_held_out: int | None  # held-out items that are kept for intervals
    columns: dict[str, str]  # name and kind of each column that the model needs; "" where the kind is not known
    target: str | None  # column of the labels in the training table


def describe(model: Any, quantifier: Quantifier) -> ModelInfo:
    """Return what the file of a model will say."""
    import skops

    names = dict.fromkeys(map(str, getattr(model, "feature_names_in_", ())), "")
    columns = getattr(model, "kinds_", names)  # those of a table model
    held_out = getattr(quantifier, "held_out_", None)
    return ModelInfo(
        format=FORMAT,
        versions={
            "python": platform.python_version(),
            "ordinalq": __version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "skops": skops.__version__,
        },
        method=type(quantifier).__name__,
        parameters={name: repr(value) for name, value in quantifier.get_params(deep=False).items()},
        classes=plain_labels(quantifier.classes_),
        p_train=quantifier.p_train_.tolist(),
        n_held_out=None if held_out is None else len(held_out[1]),
        columns=dict(columns),
        target=getattr(model, "target_", None),
    )


def plain_labels(classes: Any) -> list[Any]:
    """Return labels as JSON has them."""
    return [
        label if isinstance(label, str | int | float | bool) else str(label) for label in np.asarray(classes).tolist()
    ]


def check_meta(meta: dict[str, Any], payload: bytes, path: Path) -> ModelInfo:
    """Check format, versions, checksum and fields, in this order: a newer file may do everything differently."""
    number = meta.get("format")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{path}: {META} in it does not name a format of ordinalq, got {short(number)}.")
    versions = meta.get("versions")
    versions = versions if isinstance(versions, dict) else {}
    if number > FORMAT:
        raise ValueError(
            f"{path}: was made by a newer ordinalq ({short(versions.get('ordinalq', 'unknown'))}, format {number}; "
            f"this is format {FORMAT}): upgrade ordinalq, or fit the model again."
        )
    if number < FORMAT:
        raise ValueError(
            f"{path}: was made by an older ordinalq (format {number}; this is format {FORMAT}): fit the model again."
        )
    names = [*(field.name for field in fields(ModelInfo)), "pairs", "sha256"]
    missing = [name for name in names if name not in meta]
    if missing:
        raise ValueError(f"{path}: {META} in it is incomplete: {', '.join(missing)} missing.")
    if meta["sha256"] != checksum(meta, payload):
        raise ValueError(f"{path}: the checksum does not match: the file was damaged or changed after it was written.")
    _check_versions(versions, path)
    for name, is_valid in SCHEMA_OF_META.items():
        if not is_valid(meta[name]):
            raise ValueError(f"{path}: {META} in it cannot be read: {name} is {short(meta[name])}.")
    if len(meta["classes"]) != len(meta["p_train"]):
        raise ValueError(f"{path}: {META} in it cannot be read: classes and p_train are of different lengths.")
    return ModelInfo(**{field.name: meta[field.name] for field in fields(ModelInfo)})


def _is_words(value: Any) -> bool:
    """Return whether a value is a dict of str to str."""
    return isinstance(value, dict) and all(isinstance(word, str) for word in value.values())


def _is_list(value: Any, kinds: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, kinds) for part in value)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


# What each field of meta.json is.
SCHEMA_OF_META: dict[str, Callable[[Any], bool]] = {
    "versions": _is_words,
    "method": lambda value: isinstance(value, str),
    "parameters": _is_words,
    "classes": lambda value: _is_list(value, (str, int, float, bool)) and len(value) >= 2,
    "p_train": lambda value: isinstance(value, list) and all(map(_is_share, value)) and abs(sum(value) - 1) < 1e-6,
    "n_held_out": lambda value: (
        value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)
    ),
    "columns": _is_words,
    "target": lambda value: value is None or isinstance(value, str),
    "pairs": lambda value: _is_list(value, str) and all(map(str.isidentifier, value)),
}


def _check_versions(versions: dict[str, str], path: Path) -> None:
    """Refuse what newer versions have made, and another major version; warn of another minor scikit-learn."""
    for package, here in (("ordinalq", __version__), ("scikit-learn", sklearn.__version__)):
        then = _release(versions.get(package))
        now = _release(here)
        if then is None or now is None:
            raise ValueError(f"{path}: does not say which {package} made it, got {short(versions.get(package))}.")
        if then > now or then[0] != now[0]:
            raise ValueError(
                f"{path}: was made with {package} {plain(versions[package])[:40]}, but {here} is installed: install "
                f"{package} {then[0]}.{then[1]}, or fit the model again."
            )
        if then < now and package == "scikit-learn":
            warnings.warn(
                f"{path}: was made with scikit-learn {plain(versions[package])[:40]}, but {here} is installed: "
                "estimates may differ; fit the model again to be sure.",
                UserWarning,
                stacklevel=4,
            )


def _release(version: Any) -> tuple[int, int] | None:
    """Return major and minor version.

    >>> _release("1.9.1"), _release("0.1.0.dev0"), _release("new")
    ((1, 9), (0, 1), None)
    """
    found = re.match(r"([0-9]{1,6})\.([0-9]{1,6})(?![0-9])", version) if isinstance(version, str) else None
    return (int(found[1]), int(found[2])) if found else None


def checksum(meta: dict[str, Any], payload: bytes) -> str:
    """Return the SHA-256 of everything else in the file."""
    rest = {name: value for name, value in meta.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode() + b"\0" + payload).hexdigest()
