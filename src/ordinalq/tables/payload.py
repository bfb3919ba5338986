"""The inside of a model file, judged before anything of it is built.

skops writes an object as a tree of nodes in ``schema.json``, with arrays beside it. Whoever forges a file can write any
tree: nodes that refer to one another so that walking them never ends, arrays that unpack to gigabytes or are counted a
hundred times, decision trees without nodes. What is checked here holds for every file that `save_model` writes.
"""

import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ordinalq import aliases

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
# Scalars whose constructor takes a number for a size, or that hold anything.
STRANGE_SCALARS = ("numpy.void", "numpy.object_", "numpy.record")
# scikit-learn hands what they hold to C code that looks at no size.
UNCHECKED = tuple(f"sklearn.svm._classes.{name}" for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"))


class Array(NamedTuple):
    """What an array in a file is."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    n_bytes: int


class Refused(ValueError):
    """A model file that no honest program has written."""


def check_payload(payload: bytes) -> dict[str, Any]:
    """Return the tree of a payload of skops that is safe to walk; refuse any other."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        members = {member.filename: member for member in archive.infolist()}
        if len(members) != len(archive.infolist()) or SCHEMA not in members:
            raise Refused("the model in it has no tree, or two members of one name")
        size = unpacked_size(archive)
        if size > FREE_BYTES + MAX_RATIO * len(payload):
            raise Refused(f"the model in it would grow to {size:,} bytes, which no model does; it is not loaded")
        tree = members[SCHEMA]
        if tree.file_size > FREE_SCHEMA + SCHEMA_RATIO * tree.compress_size:
            raise Refused(f"the tree of the model in it would grow to {tree.file_size:,} bytes; it is not loaded")
        try:
            schema = json.loads(archive.read(SCHEMA))
        except (ValueError, RecursionError) as error:
            raise Refused(f"the tree of the model in it cannot be read: {error}") from error
        if not isinstance(schema, dict):
            raise Refused("the model in it has no valid tree")
        arrays = {name: _check_member(archive, member) for name, member in members.items() if name != SCHEMA}
    nodes = _Nodes(arrays)
    nodes.visit(schema)
    if nodes.n_bytes > FREE_BYTES + MAX_RATIO * len(payload):
        raise Refused(f"the model in it would grow to {nodes.n_bytes:,} bytes, which no model does; it is not loaded")
    return schema


def unpacked_size(archive: zipfile.ZipFile) -> int:
    """Return how many bytes the members have, and what is packed inside of them once more."""
    size = 0
    for member in archive.infolist():
        size += member.file_size
        if member.filename.endswith(".npz") and member.file_size <= FREE_BYTES:
            with archive.open(member) as stream, zipfile.ZipFile(io.BytesIO(stream.read())) as inner:
                size += sum(part.file_size for part in inner.infolist())
    return size


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """Return shape, type and bytes of an array; of other members only the bytes."""
    if member.filename.endswith(".npz"):
        with archive.open(member) as stream, zipfile.ZipFile(io.BytesIO(stream.read())) as inner:
            parts = [_check_member(inner, part) for part in inner.infolist()]
            return Array((), np.dtype(np.void), member.file_size + sum(part.n_bytes for part in parts))
    if not member.filename.endswith(".npy"):
        return Array((), np.dtype(np.void), member.file_size)
    with archive.open(member) as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
        except Exception as error:  # whatever the parser of headers makes of rubbish
            raise Refused(f"an array in it cannot be read: {type(error).__name__}") from error
        n_bytes = math.prod(shape) * dtype.itemsize
        if dtype.hasobject or min(shape, default=0) < 0 or stream.tell() + n_bytes != member.file_size:
            raise Refused(f"an array in it is not {dtype} of shape {shape}, as it says")
    return Array(shape, dtype, n_bytes)


class _Nodes:
    """Walks the tree as skops will: a node whose number was seen before is that earlier node, whatever it holds.

    `n_bytes` are those of all arrays, each as often as it is read.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self.n_bytes = 0
        self._known: dict[int, dict[str, Any]] = {}
        # Nodes below each one, those that are referred to being counted each time; 0 while it is not finished.
        self._sizes: dict[int, int] = {}

    def visit(self, node: Any, depth: int = 0) -> int:
        """Check a node and all below it; return their number."""
        if depth > MAX_DEPTH:
            raise Refused(f"the tree of the model in it is deeper than {MAX_DEPTH}")
        if not isinstance(node, dict):
            raise Refused("the model in it has a node that is not valid")
        for name in ("__class__", "__module__", "__loader__"):
            if not isinstance(node.get(name), str):
                raise Refused(f"a node of the model in it has no {name.strip('_')}")
        number = node.get("__id__")
        if number is not None and type(number) is not int:
            raise Refused("the model in it has a node without a valid number")
        if number in self._known:
            return self._again(node, number)
        if number:
            self._known[number] = node
            self._sizes[number] = 0
        self._check_type(node)
        if "file" in node:
            if not isinstance(node["file"], str) or node["file"] not in self.arrays:
                raise Refused("a part of the model in it is missing")
            self.n_bytes += self.arrays[node["file"]].n_bytes
        size = 1
        for child in children(node):
            size += self.visit(child, depth + 1)
            if size > MAX_NODES:
                raise Refused(f"the tree of the model in it has more than {MAX_NODES:,} nodes")
        if node["__loader__"] == "TreeNode":
            self._check_tree(node)
        if number:
            self._sizes[number] = size
        return size

    def _again(self, node: dict[str, Any], number: int) -> int:
        """Check a node that refers to an earlier one."""
        known = self._known[number]
        if any(known[name] != node[name] for name in ("__class__", "__module__", "__loader__")) or len(node) > 4:
            raise Refused("two parts of the model in it have the same number")
        if not self._sizes[number]:
            raise Refused("a part of the model in it is inside of itself")
        return self._sizes[number]

    def _value(self, node: dict[str, Any]) -> Any:
        """Return the value of a node that is written as JSON."""
        return json.loads(self._known.get(node.get("__id__", 0), node)["content"])

    def _array(self, node: dict[str, Any]) -> Array:
        return self.arrays[self._known.get(node.get("__id__", 0), node)["file"]]

    @staticmethod
    def _check_type(node: dict[str, Any]) -> None:
        loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if loader not in LOADERS:
            raise Refused(f"the model in it has a part that is built by {loader[:60]!r}, which no model has")
        allowed = LOADERS[loader]
        if allowed is not None and name not in allowed:
            raise Refused(f"the model in it has a {loader} of {name[:80]!r}, which no model has")
        if node["__module__"].partition(".")[0] == "ordinalq":
            own = aliases.FUNCTIONS if loader == "FunctionNode" else aliases.ALIASES
            known = node["__module__"] == OWN and node["__class__"] in own
            if not known or loader not in ("FunctionNode", "ObjectNode"):
                raise Refused(f"the model in it has a part {name[:80]!r}, which ordinalq does not know")
        if loader == "NdArrayNode" and name in STRANGE_SCALARS:
            raise Refused(f"the model in it has a number of type {name!r}, which no model has")
        if name == "sklearn.tree._tree.Tree" and loader != "TreeNode":
            raise Refused("a decision tree in it is not built like all others")

    def _check_tree(self, node: dict[str, Any]) -> None:
        """Check that a decision tree has as many nodes as it says, at least one, and outputs for all its classes.

        scikit-learn copies and follows them without looking.
        """
        try:
            features, classes, outputs = self._first(node["__reduce__"]["args"])["content"]
            state = self._first(node["content"])["content"]
            n_features, n_outputs = self._value(features), self._value(outputs)
            n_nodes, depth = self._value(state["node_count"]), self._value(state["max_depth"])
            if any(type(number) is not int for number in (n_features, n_outputs, n_nodes, depth)):
                raise Refused("a decision tree in it has a size that is not a number")
            n_classes, nodes, values = (self._array(part) for part in (classes, state["nodes"], state["values"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Refused("a decision tree in it is incomplete") from error
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
            raise Refused("a decision tree in it does not have the nodes that it says")

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


def shared_once(schema: dict[str, Any]) -> set[str]:
    """Make of nodes that were written twice, because two others hold them, references; return the files in use."""
    known: set[int] = set()
    files: set[str] = set()
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        number = node.get("__id__")
        if number in known:
            for name in [name for name in node if name not in ("__class__", "__module__", "__loader__", "__id__")]:
                del node[name]
            continue
        known.add(number or 0)
        if "file" in node:
            files.add(node["file"])
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
