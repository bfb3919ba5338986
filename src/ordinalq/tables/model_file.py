"""Model files: `save_model`, `load_model`, and the validation of untrusted files.

A file ``.oq`` is a ZIP archive of two members: ``meta.json`` describes the model, ``model.skops`` is the model as skops
writes it: JSON and arrays, never a pickle. A checksum over both reveals a damaged file, but not its author. Only types
on a list are built, which protects the reader of an untrusted file: those that skops trusts (scikit-learn, NumPy,
SciPy) and those of ordinalq, each by its name.
"""

import copy
import hashlib
import io
import json
import platform
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, BaseEnsemble
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils.validation import check_is_fitted

from ordinalq import aliases
from ordinalq._utils.arrays import Header, read_header
from ordinalq._utils.extras import require_extra
from ordinalq._utils.text import first_of, plain
from ordinalq.io.columns import short
from ordinalq.io.writing import check_output, replacing
from ordinalq.quantifiers.base import Quantifier
from ordinalq.tables.inner import fitted_quantifier, with_quantifier
from ordinalq.version import __version__

# What a model file says about itself, for people and programs, and whether that can be true.


# Increased whenever an older ordinalq could not read the file or would read it wrongly.
FORMAT = 4
META = "meta.json"
# Those of NumPy, not those that the caller has set.
PRINT_OPTIONS: dict[str, Any] = {
    "precision": 8,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "suppress": False,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "floatmode": "maxprec",
    "formatter": None,
    "legacy": False,
}


@dataclass(frozen=True)
class ModelInfo:
    """Description of a model in its file."""

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
    with require_extra("tables", "saving a model"):
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
        parameters=_shown_parameters(quantifier),
        classes=plain_labels(quantifier.classes_),
        p_train=quantifier.p_train_.tolist(),
        n_held_out=None if held_out is None else len(held_out.codes),
        columns=dict(columns),
        target=getattr(model, "target_", None),
    )


def _shown_parameters(quantifier: Quantifier) -> dict[str, str]:
    """Return the parameters as text.

    The text depends on neither display options nor memory addresses.
    """
    parameters = quantifier.get_params(deep=False)
    with sklearn.config_context(print_changed_only=True), np.printoptions(**PRINT_OPTIONS):
        return {name: re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)) for name, value in parameters.items()}


def check_description(info: ModelInfo, model: Any, quantifier: Quantifier) -> None:
    """Raise ValueError if a model is not the one that its file describes."""
    found = describe(model, quantifier)
    names = ["method", "classes", "p_train", "n_held_out", "columns", "target"]
    if info.versions == found.versions:  # otherwise parameters may be shown in another way
        names.append("parameters")
    for name in names:
        described, got = getattr(info, name), getattr(found, name)
        if described != got:
            raise ValueError(f"{name} must be {short(described)}, as described in {META}, got {short(got)}")


def plain_labels(classes: Any) -> list[Any]:
    """Return labels as JSON has them."""
    return [
        label if isinstance(label, str | int | float | bool) else str(label) for label in np.asarray(classes).tolist()
    ]


def check_meta(meta: dict[str, Any], payload: bytes, path: Path) -> ModelInfo:
    """Check format, versions, checksum and fields, in this order.

    A newer file may differ in everything else.
    """
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
    """Raise an error for newer versions and other major versions.

    A warning is issued for another minor version of scikit-learn.
    """
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


# The inside of a model file, judged before anything of it is built.
#
# skops writes an object as a tree of nodes in ``schema.json``, with arrays next to it. Whoever forges a file can write
# any tree: nodes that refer to one another so that walking them never ends, arrays that unpack to gigabytes or are
# counted a hundred times, decision trees without nodes. What is checked here holds for every file that `save_model`
# writes.


SCHEMA = "schema.json"

# What a file may become in memory: this many bytes, and this many times its size. Deflate alone can make it a thousand
# times.
FREE_BYTES = 1 << 26
MAX_RATIO = 20
# The same for the tree, each byte of which takes many as objects.
FREE_SCHEMA = 1 << 23
SCHEMA_RATIO = 40
# A forest of a thousand trees and two vocabularies of 50,000 words have fewer.
MAX_NODES = 600_000
MAX_DEPTH = 100

# Names of our parts in a file.
OWN = "ordinalq.aliases"
# How skops builds nodes, and what it may build in this way here; None: what it trusts itself.
LOADERS: dict[str, tuple[str, ...] | None] = {
    "DTypeNode": ("numpy.dtype",),
    "DictNode": ("builtins.dict", "collections.OrderedDict"),
    "ListNode": ("builtins.list",),
    "SetNode": ("builtins.set",),
    "TreeNode": ("sklearn.tree._tree.Tree",),
    **dict.fromkeys(("BytesNode", "BytearrayNode", "DefaultDictNode", "FunctionNode", "JsonNode", "LossNode")),
    **dict.fromkeys(("MaskedArrayNode", "NdArrayNode", "ObjectNode", "PartialNode", "RandomGeneratorNode")),
    **dict.fromkeys(("RandomStateNode", "SliceNode", "SparseMatrixNode", "TupleNode", "TypeNode")),
    # Refused by skops unless the caller trusts what they call.
    **dict.fromkeys(("ConstructorFromReduceNode", "MethodNode", "OperatorFuncNode")),
}
# Nodes without parts that can be changed.
CONSTANTS = ("JsonNode", "TypeNode")
# Scalars whose constructor takes a number for a size, or that hold anything.
STRANGE_SCALARS = ("numpy.void", "numpy.object_", "numpy.record")
# scikit-learn hands what they hold to C code that looks at no size.
UNCHECKED = tuple(f"sklearn.svm._classes.{name}" for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"))


class InvalidModelError(ValueError):
    """A model file that failed validation."""


def check_payload(payload: bytes) -> dict[str, Any]:
    """Return the validated tree of a skops payload."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if len(members) != len(archive.infolist()) or SCHEMA not in members:
            raise InvalidModelError("the model in it has no tree, or two members of one name")
        size = unpacked_size(archive)
        if size > FREE_BYTES + MAX_RATIO * len(payload):
            raise InvalidModelError(
                f"the model in it would grow to {size:,} bytes, which no model does; it is not loaded"
            )
        tree = members[SCHEMA]
        if tree.file_size > FREE_SCHEMA + SCHEMA_RATIO * tree.compress_size:
            raise InvalidModelError(
                f"the tree of the model in it would grow to {tree.file_size:,} bytes; it is not loaded"
            )
        try:
            schema = json.loads(archive.read(SCHEMA))
        except (ValueError, RecursionError) as error:
            raise InvalidModelError(f"the tree of the model in it cannot be read: {error}") from error
        if not isinstance(schema, dict):
            raise InvalidModelError("the model in it has no valid tree")
        arrays = {name: _check_member(archive, member) for name, member in members.items() if name != SCHEMA}
    nodes = _Nodes(arrays)
    nodes.visit(schema)
    if nodes.n_bytes > FREE_BYTES + MAX_RATIO * len(payload):
        raise InvalidModelError(
            f"the model in it would grow to {nodes.n_bytes:,} bytes, which no model does; it is not loaded"
        )
    return schema


def unpacked_size(archive: zipfile.ZipFile) -> int:
    """Return the decompressed size of the members in bytes.

    Compressed data inside the members are included.
    """
    size = 0
    for member in archive.infolist():
        size += member.file_size
        if member.filename.endswith(".npz") and member.file_size <= FREE_BYTES:
            with archive.open(member) as stream, zipfile.ZipFile(io.BytesIO(stream.read())) as inner:
                size += sum(part.file_size for part in inner.infolist())
    return size


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    """Return shape, type and bytes of an array; of other members only the bytes."""
    if member.filename.endswith(".npz"):
        with archive.open(member) as stream, zipfile.ZipFile(io.BytesIO(stream.read())) as inner:
            parts = [_check_member(inner, part) for part in inner.infolist()]
            return Header((), np.dtype(np.void), member.file_size + sum(part.n_bytes for part in parts))
    if not member.filename.endswith(".npy"):
        return Header((), np.dtype(np.void), member.file_size)
    with archive.open(member) as stream:
        try:
            return read_header(stream, member.file_size)
        except ValueError as error:
            raise InvalidModelError(str(error)) from error


class _Nodes:
    """Visit the tree as skops does.

    A node with the number of an earlier node is that node, with any content. `n_bytes` are those of all arrays, each as
    often as it is read.
    """

    def __init__(self, arrays: Mapping[str, Header]) -> None:
        self.arrays = arrays
        self.n_bytes = 0
        self._known: dict[int, dict[str, Any]] = {}
        # Nodes below each one, those that are referred to being counted each time; 0 while it is not finished.
        self._sizes: dict[int, int] = {}

    def visit(self, node: Any, depth: int = 0) -> int:
        """Check a node and all below it; return their number."""
        if depth > MAX_DEPTH:
            raise InvalidModelError(f"the tree of the model in it is deeper than {MAX_DEPTH}")
        if not isinstance(node, dict):
            raise InvalidModelError("the model in it has a node that is not valid")
        for name in ("__class__", "__module__", "__loader__"):
            if not isinstance(node.get(name), str):
                raise InvalidModelError(f"a node of the model in it has no {name.strip('_')}")
        number = node.get("__id__")
        if number is not None and type(number) is not int:
            raise InvalidModelError("the model in it has a node without a valid number")
        if number in self._known:
            return self._check_reference(node, number)
        if number:
            self._known[number] = node
            self._sizes[number] = 0
        self._check_type(node)
        if "file" in node:
            if not isinstance(node["file"], str) or node["file"] not in self.arrays:
                raise InvalidModelError("a part of the model in it is missing")
            self.n_bytes += self.arrays[node["file"]].n_bytes
        size = 1
        for child in children(node):
            size += self.visit(child, depth + 1)
            if size > MAX_NODES:
                raise InvalidModelError(f"the tree of the model in it has more than {MAX_NODES:,} nodes")
        if node["__loader__"] == "TreeNode":
            self._check_tree(node)
        if number:
            self._sizes[number] = size
        return size

    def _check_reference(self, node: dict[str, Any], number: int) -> int:
        """Check a node that refers to an earlier one."""
        known = self._known[number]
        if any(known[name] != node[name] for name in ("__class__", "__module__", "__loader__")) or len(node) > 4:
            raise InvalidModelError("two parts of the model in it have the same number")
        if not self._sizes[number]:
            raise InvalidModelError("a part of the model in it is inside of itself")
        return self._sizes[number]

    def _value(self, node: dict[str, Any]) -> Any:
        """Return the value of a node that is written as JSON."""
        return json.loads(self._known.get(node.get("__id__", 0), node)["content"])

    def _array(self, node: dict[str, Any]) -> Header:
        return self.arrays[self._known.get(node.get("__id__", 0), node)["file"]]

    @staticmethod
    def _check_type(node: dict[str, Any]) -> None:
        loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if loader not in LOADERS:
            raise InvalidModelError(f"the model in it has a part that is built by {loader[:60]!r}, which no model has")
        allowed = LOADERS[loader]
        if allowed is not None and name not in allowed:
            raise InvalidModelError(f"the model in it has a {loader} of {name[:80]!r}, which no model has")
        if node["__module__"].partition(".")[0] == "ordinalq":
            own = aliases.FUNCTIONS if loader == "FunctionNode" else aliases.ALIASES
            known = node["__module__"] == OWN and node["__class__"] in own
            if not known or loader not in ("FunctionNode", "ObjectNode"):
                raise InvalidModelError(f"the model in it has a part {name[:80]!r}, which ordinalq does not know")
        if loader == "NdArrayNode" and name in STRANGE_SCALARS:
            raise InvalidModelError(f"the model in it has a number of type {name!r}, which no model has")
        if name == "sklearn.tree._tree.Tree" and loader != "TreeNode":
            raise InvalidModelError("a decision tree in it is not built like all others")

    def _check_tree(self, node: dict[str, Any]) -> None:
        """Check that a decision tree has the stated number of nodes.

        There must be at least one, and outputs for all its classes. scikit-learn copies and follows the nodes without
        checks.
        """
        try:
            features, classes, outputs = self._first(node["__reduce__"]["args"])["content"]
            state = self._first(node["content"])["content"]
            n_features, n_outputs = self._value(features), self._value(outputs)
            n_nodes, depth = self._value(state["node_count"]), self._value(state["max_depth"])
            if any(type(number) is not int for number in (n_features, n_outputs, n_nodes, depth)):
                raise InvalidModelError("a decision tree in it has a size that is not a number")
            n_classes, nodes, values = (self._array(part) for part in (classes, state["nodes"], state["values"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidModelError("a decision tree in it is incomplete") from error
        fits = (
            n_nodes >= 1
            and n_features >= 1
            and n_outputs >= 1
            and nodes.shape == (n_nodes,)
            and values.shape[:2] == (n_nodes, n_outputs)
            and len(values.shape) == 3
            and n_classes.dtype.kind == "i"
            and n_classes.shape == (n_outputs,)
        )
        if not fits:
            raise InvalidModelError("a decision tree in it does not have the nodes that it says")

    def _first(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return the node that skops takes for a node."""
        return self._known.get(node.get("__id__", 0), node)


def children(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes directly below a node, in the order in which skops reads them."""
    waiting: list[Any] = [node.get("key_types"), node.get("content"), node.get("shape"), node.get("attrs")]
    waiting.append(node["__reduce__"].get("args") if isinstance(node.get("__reduce__"), dict) else None)
    for part in waiting:
        if isinstance(part, dict) and "__loader__" in part:
            yield part
        elif isinstance(part, dict | list):
            for inner in part.values() if isinstance(part, dict) else part:
                if isinstance(inner, dict):
                    yield inner


def make_canonical(schema: dict[str, Any]) -> dict[str, str]:
    """Make the tree of a model independent of memory addresses.

    The result has the new name of each array file in use. Nodes and files are numbered in the order in which they are
    first read. A node that two others refer to is written once.
    """
    numbers: dict[int, int] = {}
    files: dict[str, str] = {}
    waiting, last = [schema], 0
    while waiting:
        node = waiting.pop()
        # Whether Python has one object for two equal constants is by chance.
        number = None if node["__loader__"] in CONSTANTS else node.get("__id__")
        if number in numbers:
            for name in [name for name in node if name not in ("__class__", "__module__", "__loader__")]:
                del node[name]
            node["__id__"] = numbers[number]
            continue
        last += 1
        node["__id__"] = last
        if number is not None:
            numbers[number] = last
        if node["__loader__"] == "SetNode":
            node["content"].sort(key=lambda part: json.dumps({**part, "__id__": 0}, sort_keys=True))
        content = node.get("content")
        if isinstance(content, dict) and "__loader__" in content.get("_stop_words_id", {}):
            content["_stop_words_id"]["content"] = "null"  # an address that scikit-learn stores
        if "file" in node:
            name = node["file"]
            node["file"] = files.setdefault(name, f"{len(files)}.{name.rpartition('.')[2]}")
        waiting += reversed(list(children(node)))
    return files


def types_of(schema: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each node that names a type or a function, and the name."""
    waiting = [schema]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, list):
            waiting += thing
        elif isinstance(thing, dict):
            waiting += thing.values()
            if "__loader__" in thing:
                yield thing, f"{thing['__module__']}.{thing['__class__']}"


# A look at a model that was loaded, before it is used: what compiled code would follow without looking.


# More processes or threads than this are those of a forged file.
MAX_JOBS = 1024


def check_contents(model: Any) -> None:
    """Raise an error if trees, sparse matrices or generators are inconsistent.

    Their indices must not point outside of their arrays.
    """
    # Thing, features that its estimator checks items for, and whether it is inside of an ensemble.
    waiting: list[tuple[Any, Any, bool]] = [(model, None, False)]
    seen: set[int] = set()
    while waiting:
        thing, n_features, in_ensemble = waiting.pop()
        if isinstance(thing, Tree):
            _check_tree(thing, n_features)
            continue
        if isinstance(thing, TreePredictor):
            _check_boosted_tree(thing, n_features)
            continue
        if id(thing) in seen and not isinstance(thing, BaseEstimator):
            continue
        seen.add(id(thing))
        parts: Iterable[Any] = ()
        if isinstance(thing, BaseEstimator):
            n_features, in_ensemble = (
                _check_estimator(thing, n_features, in_ensemble),
                _passes_items_on_unchecked(thing),
            )
            parts = vars(thing).values()
        elif isinstance(thing, dict):
            parts = thing.values()
        elif isinstance(thing, list | tuple | set):
            parts = thing
        elif isinstance(thing, np.ndarray):
            parts = thing.ravel() if thing.dtype == object else ()
        elif sparse.issparse(thing):
            _check_sparse(thing)
        elif isinstance(thing, np.random.RandomState):
            _check_generator(thing.get_state(legacy=False))
        elif isinstance(thing, np.random.Generator):
            _check_generator(thing.bit_generator.state)
        elif hasattr(thing, "__dict__") and type(thing).__module__.partition(".")[0] == "ordinalq":
            parts = vars(thing).values()
        waiting += [(part, n_features, in_ensemble) for part in parts]


def _passes_items_on_unchecked(estimator: Any) -> bool:
    """Return whether an estimator passes its items on to others unchecked."""
    # Bagging may give a tree some of the features, and has it look at them.
    return isinstance(estimator, BaseEnsemble) and not isinstance(estimator, BaggingClassifier | BaggingRegressor)


def _check_estimator(estimator: Any, n_features: Any, in_ensemble: bool) -> Any:
    """Return the number of features that an estimator checks items for."""
    number = vars(estimator).get("n_features_in_")
    if isinstance(estimator, BaseDecisionTree) and "tree_" in vars(estimator):
        if in_ensemble and number != n_features:
            raise ValueError(f"a decision tree in it is for {number} features, its model for {n_features}")
        _check_outputs(estimator)
    if isinstance(estimator, OneHotEncoder):
        _check_encoder(estimator)
    jobs = vars(estimator).get("n_jobs")
    if isinstance(jobs, int) and abs(jobs) > MAX_JOBS:
        raise ValueError(f"a part of it asks for {jobs:,} jobs at the same time")
    return number


def _check_outputs(estimator: Any) -> None:
    """Raise an error for a tree whose leaves know other classes than its estimator."""
    tree = estimator.tree_
    n_classes = vars(estimator).get("n_classes_")
    if isinstance(n_classes, int | np.integer) and tree.n_outputs == 1 and tree.max_n_classes != n_classes:
        raise ValueError(f"a decision tree in it is for {tree.max_n_classes} classes, its model for {n_classes}")


def _check_tree(tree: Any, n_features: Any) -> None:
    """Raise an error if a tree node has an invalid child or feature.

    Children must be descendants. scikit-learn follows the nodes without checks, so that those of a forged file could
    point anywhere in memory. It compares new items with the `n_features_in_` of the given estimator, and not of those
    inside an ensemble. The number of the given estimator counts, not that of the tree.
    """
    if tree.node_count < 1:
        raise ValueError("a decision tree in it has no nodes")
    inner = tree.children_left != -1
    own = np.arange(tree.node_count)[inner]
    for children in (tree.children_left[inner], tree.children_right[inner]):
        if not ((children > own) & (children < tree.node_count)).all():
            raise ValueError("a decision tree in it is not a tree")
    if not ((tree.feature[inner] >= 0) & (tree.feature[inner] < tree.n_features)).all():
        raise ValueError("a decision tree in it asks for features that do not exist")
    if not isinstance(n_features, int | np.integer) or tree.n_features != n_features:
        raise ValueError(f"a decision tree in it is for {tree.n_features} features, its model for {n_features}")


def _check_boosted_tree(tree: Any, n_features: Any) -> None:
    """Raise an error if a tree of gradient boosting is invalid.

    The checks are those of `_check_tree`. Splits by category use further tables. None of our models has any.
    """
    nodes = tree.nodes
    inner = nodes["is_leaf"] == 0
    own = np.arange(len(nodes))[inner]
    if len(nodes) < 1 or not all(
        ((nodes[side][inner] > own) & (nodes[side][inner] < len(nodes))).all() for side in ("left", "right")
    ):
        raise ValueError("a boosted tree in it is not a tree")
    features = nodes["feature_idx"][inner]
    if not isinstance(n_features, int | np.integer) or not ((features >= 0) & (features < n_features)).all():
        raise ValueError("a boosted tree in it asks for features that do not exist")
    if nodes["is_categorical"][inner].any():
        raise ValueError("a boosted tree in it splits by categories: give it numbers instead")


def check_held_out(quantifier: Quantifier) -> None:
    """Raise ValueError if held-out scores and classes do not match.

    Each item has one score row and one class. Codes become array sizes.
    """
    n_classes, held_out = len(quantifier.classes_), getattr(quantifier, "held_out_", None)
    if np.shape(quantifier.p_train_) != (n_classes,):
        raise ValueError(f"p_train_ must have {n_classes} entries, got shape {np.shape(quantifier.p_train_)}")
    if held_out is None:
        return
    _check_training_groups(getattr(quantifier, "predictor_", None) or quantifier, n_classes)
    codes = held_out.codes
    if not isinstance(codes, np.ndarray) or codes.dtype.kind not in "iu" or codes.shape != held_out.S.shape[:1]:
        raise ValueError("held-out codes must be one integer per row of scores")
    if len(codes) and not (codes.min() >= 0 and codes.max() < n_classes):
        raise ValueError(f"held-out codes must be between 0 and {n_classes - 1}, got {codes.min()} to {codes.max()}")


def _check_training_groups(quantifier: Quantifier, n_classes: int) -> None:
    """Raise ValueError if stored training groups are invalid.

    They must be sorted, and have one count for each class.
    """
    hashes, counts = (vars(quantifier).get(name) for name in ("training_hashes_", "training_counts_"))
    if hashes is None and counts is None:
        return
    if not isinstance(hashes, np.ndarray) or hashes.dtype != np.uint64 or hashes.ndim != 1 or len(hashes) == 0:
        raise ValueError("hashes of training groups must be 64-bit numbers")
    if not (hashes[1:] > hashes[:-1]).all():
        raise ValueError("hashes of training groups must be in ascending order")
    if not isinstance(counts, np.ndarray) or counts.dtype.kind != "f" or counts.shape != (len(hashes), n_classes):
        raise ValueError(f"counts of training groups must have the shape ({len(hashes)}, {n_classes})")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise ValueError("counts of training groups must be finite and not negative")


def _check_encoder(encoder: Any) -> None:
    """Raise ValueError if a category encoder has more columns than categories."""
    sizes = vars(encoder).get("_n_features_outs", [])
    for size, words in zip(sizes, vars(encoder).get("categories_", sizes), strict=True):
        if not isinstance(size, int | np.integer) or not 0 <= size <= len(words):
            raise ValueError(f"an encoder in it has {size} columns for {len(words)} categories")


def _check_sparse(matrix: Any) -> None:
    """Raise an error for a sparse matrix with positions outside of it."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    elif matrix.format == "coo":
        for positions, length in zip(matrix.coords, matrix.shape, strict=True):
            if len(positions) and not (positions.min() >= 0 and positions.max() < length):
                raise ValueError("a sparse matrix in it has positions outside of it")


def _check_generator(state: Any) -> None:
    """Raise an error for a generator of random numbers that reads beyond its state."""
    inner = state.get("state", {})
    if isinstance(inner, dict) and "pos" in inner and not 0 <= int(inner["pos"]) <= len(inner.get("key", ())):
        raise ValueError("a generator of random numbers in it reads beyond its state")


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
        Replace any existing file.

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
    with require_extra("tables", "loading a model"):
        import skops.io

    path = Path(path)
    if isinstance(trusted, str):
        raise TypeError(f"trusted must be a list of names of types, got the text {trusted!r}.")
    meta, payload = _read(path)
    info = check_meta(meta, payload, path)
    schema = _check(payload, path)
    try:
        types = _refuse_untrusted(payload, schema, trusted, path)
        with warnings.catch_warnings():
            # check_meta has judged the versions already.
            warnings.filterwarnings("ignore", category=UserWarning, message="Trying to unpickle")
            model = skops.io.loads(payload, trusted=types)
        check_contents(model)
        quantifier = fitted_quantifier(model)
        for name in meta["pairs"]:
            setattr(quantifier, name, dict(getattr(quantifier, name)))
        check_description(info, model, quantifier)
        check_held_out(quantifier)
    except UntrustedTypesError:
        raise
    except Exception as error:  # any error of skops on a forged file
        reason = plain(" ".join(str(error).split())) or type(error).__name__
        raise ValueError(f"{path}: the model in it cannot be read: {reason[:200]}") from error
    return model, info


def read_info(path: str | Path) -> ModelInfo:
    """Return the description in a model file.

    The model is compared with its checksum, but not loaded.

    Parameters
    ----------
    path : str or Path
        Model file.

    Returns
    -------
    info : ModelInfo
        Description of the model; nothing else is read.
    """
    path = Path(path)
    meta, payload = _read(path)
    info = check_meta(meta, payload, path)
    _check(payload, path)
    return info


def is_model(path: Path) -> bool:
    """Return whether a file looks like one of `save_model`, of any version.

    Parameters
    ----------
    path : str or Path
        File.

    Returns
    -------
    found : bool
        True for a model file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {META, PAYLOAD} <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False


class UntrustedTypesError(ValueError):
    """A model file asks for types that are not known to be harmless."""


def own_types() -> list[str]:
    """Return the names of the types that a model may consist of.

    They are types and functions in addition to those of skops, one by one.
    """
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
        members = {new: archive.read(name) for name, new in make_canonical(schema).items()}
    members[SCHEMA] = json.dumps(schema).encode()
    payload = _packed(members, zipfile.ZIP_DEFLATED)
    try:
        check_payload(payload)
    except InvalidModelError:
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
    """Return a copy of a model with dictionaries stored as lists of pairs.

    These are dictionaries of the quantifier whose keys JSON does not support. Their names are returned, too.
    """
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


def _check(payload: bytes, path: Path) -> dict[str, Any]:
    """Return the tree of a payload; refuse one that is not safe to walk."""
    try:
        return check_payload(payload)
    except InvalidModelError as error:
        raise ValueError(f"{path}: {plain(str(error))}.") from error
    except Exception as error:  # any error of zipfile and zlib
        raise ValueError(f"{path}: {PAYLOAD} in it is damaged ({plain(str(error))[:200]}).") from error


def _refuse_untrusted(payload: bytes, schema: dict[str, Any], trusted: Sequence[str], path: Path) -> list[str]:
    """Return the types in a payload that skops does not trust.

    Each must be a type of ordinalq or listed by the caller.
    """
    import skops.io

    unchecked = {name for _, name in types_of(schema)} & set(UNCHECKED)
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
