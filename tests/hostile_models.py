"""Forged model files: hundreds at random, sixty by hand.

Each has a right checksum, because a forger computes it. Used by test_model_file_hostile.py; as a script it
writes them into a folder:

    python tests/hostile_models.py FOLDER [--mutated 1000]
"""

import argparse
import copy
import io
import json
import os
import pickle
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from seeds import generator
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import ordinalq as oq
from ordinalq.tables.fit import build_quantifier
from ordinalq.tables.model_file import META, PAYLOAD, checksum

SCHEMA = "schema.json"
LONG = "x" * 10_000
ESCAPE = "\x1b]0;owned\x07\x1b[31m\x9b2J"
CSR = "scipy.sparse._csr.csr_matrix"


def table(n=120):
    """A table that all models take; what is done to their files follows the seed."""
    rng = np.random.default_rng(0)
    stars = np.arange(n) % 5 + 1
    words = np.array(["awful", "poor", "fair", "good", "great"])
    return pd.DataFrame(
        {
            "price": stars + rng.normal(size=n),
            "size": np.array(["S", "M", "L"])[rng.integers(3, size=n)],
            "day": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "review": [f"{words[s - 1]} thing number {i % 40} it is, {words[s - 1]}" for i, s in enumerate(stars)],
            "stars": stars,
        }
    )


def base_models(folder):
    """Write honest models of several kinds; return their paths."""
    frame = table()
    forest = oq.PACC(RandomForestClassifier(10, oob_score=True, random_state=0, max_depth=3))
    models = {
        "table": oq.TableModel(build_quantifier("OPACC"), text=["review"], features=["price", "size", "day"]),
        "bayes": oq.TableModel(oq.PACC(oq.classifiers.CrossFitted(GaussianNB(), cv=2)), features=["price", "size"]),
        "forest": oq.TableModel(forest, features=["price", "size"]),
        "sld": oq.TableModel(oq.SLD(oq.classifiers.CrossFitted(GaussianNB(), cv=2)), features=["price"]),
        "arc": oq.TableModel(oq.ARC(GaussianNB()), features=["price"]),
    }
    paths = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models.items():
            paths[name] = Path(folder) / f"{name}.oq"
            model.fit(frame, target="stars").save(paths[name])
    return paths


class Forgery:
    """The parts of a model file, to be changed."""

    def __init__(self, content):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            self.meta = json.loads(archive.read(META))
            payload = archive.read(PAYLOAD)
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.schema = json.loads(self.members.pop(SCHEMA))
        self.compression = zipfile.ZIP_DEFLATED
        self.more = []  # further members, by name, which may be there already

    def nodes(self, **wanted):
        """Return all nodes with some values, such as __loader__="TreeNode"."""
        found, waiting = [], [self.schema]
        while waiting:
            thing = waiting.pop()
            if isinstance(thing, dict):
                if all(thing.get(name) == value for name, value in wanted.items()):
                    found.append(thing)
                waiting += reversed(list(thing.values()))
            elif isinstance(thing, list):
                waiting += reversed(thing)
        return found

    def bytes(self, *, schema=None, payload=None, checked=True):
        """Return the file."""
        if payload is None:
            text = json.dumps(self.schema) if schema is None else schema
            stream = io.BytesIO()
            with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", self.compression) as archive:
                warnings.simplefilter("ignore")  # of two members of one name
                for name, content in [*self.members.items(), *self.more]:
                    archive.writestr(name, content)
                archive.writestr(SCHEMA, text)
            payload = stream.getvalue()
        meta = {**self.meta}
        if checked:
            meta["sha256"] = checksum(meta, payload)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(META, json.dumps(meta))
            archive.writestr(PAYLOAD, payload)
        return stream.getvalue()


# By chance

VALUES = (
    None,
    True,
    -1,
    0,
    1,
    10**6,
    2**63,
    -(2**70),
    1e308,
    "",
    "x",
    "²",
    LONG,
    [],
    {},
    [[]],
    ESCAPE,
    "builtins",
    "eval",
)


def mutated(contents, rng, n):
    """Yield `n` names and files: honest ones in which something was changed."""
    for i in range(n):
        content = contents[int(rng.integers(len(contents)))]
        forgery = Forgery(content)
        kind = ("bytes", "array", "header", "leaf", "leaf", "delete", "swap", "meta", "json")[int(rng.integers(9))]
        if kind == "bytes":
            changed = bytearray(content)
            for at in rng.integers(len(changed), size=int(rng.integers(1, 8))):
                changed[at] = int(rng.integers(256))
            yield f"{i} {kind}", bytes(changed)
            continue
        if kind == "meta":
            name = list(forgery.meta)[int(rng.integers(len(forgery.meta)))]
            forgery.meta[name] = VALUES[int(rng.integers(len(VALUES)))]
        elif kind in ("array", "header"):
            name = list(forgery.members)[int(rng.integers(len(forgery.members)))]
            array = bytearray(forgery.members[name])
            low, high = (128, len(array)) if kind == "array" and len(array) > 128 else (0, min(128, len(array)))
            for at in rng.integers(low, max(high, low + 1), size=int(rng.integers(1, 20))):
                if at < len(array):
                    array[at] = int(rng.integers(256))
            forgery.members[name] = bytes(array)
        else:
            _change(forgery, kind, rng)
        yield f"{i} {kind}", forgery.bytes()


def _change(forgery, kind, rng):
    """Change a place of the tree."""
    nodes = [node for node in forgery.nodes() if node]
    node = nodes[int(rng.integers(len(nodes)))]
    name = list(node)[int(rng.integers(len(node)))]
    if kind == "delete":
        del node[name]
    elif kind == "swap":
        other = nodes[int(rng.integers(len(nodes)))]
        node[name] = copy.deepcopy(other)
    elif kind == "json":
        leaves = [n for n in nodes if n.get("__loader__") == "JsonNode" and "content" in n]
        leaf = leaves[int(rng.integers(len(leaves)))]
        leaf["content"] = json.dumps(VALUES[int(rng.integers(len(VALUES)))])
    else:
        node[name] = VALUES[int(rng.integers(len(VALUES)))]


def with_each_integer(content, number):
    """Yield names and files: in each, one integer of the tree or of an array is another number."""
    forgery = Forgery(content)
    for name, member in forgery.members.items():
        array = np.load(io.BytesIO(member))
        if array.dtype.kind == "i" and array.size:
            array.flat[-1] = number
            forgery.members[name] = npy(array)
            yield name, forgery.bytes()
            forgery.members[name] = member
    for leaf in forgery.nodes(__loader__="JsonNode"):
        before = leaf.get("content", "null")
        if type(json.loads(before)) is int:
            leaf["content"] = str(number)
            yield f"node {leaf['__id__']}", forgery.bytes()
            leaf["content"] = before


# By hand


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def node(loader, name, number=None, **more):
    module, _, cls = name.rpartition(".")
    return {"__class__": cls, "__module__": module, "__loader__": loader, "__id__": number, **more}


def value(thing, number=None):
    return node("JsonNode", "builtins.str", number, content=json.dumps(thing), is_json=True)


def listed(parts, number=None):
    return node("ListNode", "builtins.list", number, content=parts)


def dict_of(parts, number=None):
    kinds = listed([node("TypeNode", "builtins.str") for _ in parts])
    return node("DictNode", "builtins.dict", number, content=parts, key_types=kinds)


def made(paths):
    """Yield names and files that were made by hand; at least sixty."""
    honest = {name: path.read_bytes() for name, path in paths.items()}

    def forged(base, change):
        forgery = Forgery(honest[base])
        found = change(forgery)
        return found if isinstance(found, bytes) else forgery.bytes()

    for attacks in (_trees_that_never_end, _bombs, _types, _compiled_code, _descriptions, _archives, _sizes):
        for name, base, change in attacks():
            yield name, forged(base, change)


def attribute(forgery, name, part):
    """Put a part into the model as one of its attributes."""
    forgery.schema["content"]["content"][name] = part
    forgery.schema["content"]["key_types"]["content"].append(node("TypeNode", "builtins.str"))


def _trees_that_never_end():
    def doubled(levels):
        def change(forgery):
            part = listed([value(1, 901)], 902)
            for level in range(levels):
                number = 1000 + level
                again = {name: part[name] for name in ("__class__", "__module__", "__loader__", "__id__")}
                part = listed([part, again], number)
            attribute(forgery, "extra", part)

        return change

    def in_itself(forgery):
        inner = node("ListNode", "builtins.list", 950)
        attribute(forgery, "extra", listed([inner], 950))

    def at_the_root(forgery):
        forgery.schema["__id__"] = 77
        attribute(forgery, "extra", {n: forgery.schema[n] for n in ("__class__", "__module__", "__loader__", "__id__")})

    def other_content(forgery):
        attribute(forgery, "first", listed([value(1)], 960))
        attribute(forgery, "second", listed([value(2)] * 3, 960))

    def cached(forgery):
        attribute(forgery, "extra", node("CachedNode", "builtins.list", 970))

    def deep(forgery):
        part = value(1)
        for _ in range(400):
            part = listed([part])
        attribute(forgery, "extra", part)

    def very_deep(forgery):
        return forgery.bytes(schema='{"content":' * 50_000)

    def wide(forgery):
        attribute(forgery, "extra", listed([value(1) for _ in range(700_000)]))

    yield "nested lists that refer to one another", "bayes", doubled(60)
    yield "the same, twenty deep", "bayes", doubled(20)
    yield "a list in itself", "bayes", in_itself
    yield "the model in itself", "bayes", at_the_root
    yield "two parts of one number", "bayes", other_content
    yield "a cached node", "bayes", cached
    yield "four hundred lists in one another", "bayes", deep
    yield "fifty thousand objects in one another", "bayes", very_deep
    yield "seven hundred thousand nodes", "bayes", wide


def _bombs():
    zeros = np.zeros(60_000_000, dtype=np.uint8)

    def sparse(forgery):
        n = 40_000_000
        forgery.members["9.npz"] = npz(
            indices=zeros[:n].view(np.int32),
            indptr=np.zeros(2, np.int32),
            data=np.zeros(n // 4),
            format=b"csr",
            shape=[1, 9],
        )
        attribute(
            forgery, "extra", node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="9.npz")
        )

    def sparse_in_sparse(forgery):
        inner = npz(a=zeros)
        forgery.members["9.npz"] = npz(a=np.frombuffer(inner, np.uint8), b=zeros)
        attribute(
            forgery, "extra", node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="9.npz")
        )

    def repeated(n):
        def change(forgery):
            forgery.members["9.npy"] = npy(zeros[:30_000_000])
            parts = [node("NdArrayNode", "numpy.ndarray", 5000 + i, type="numpy", file="9.npy") for i in range(n)]
            attribute(forgery, "extra", listed(parts))

        return change

    def deflated(forgery):
        forgery.members["9.npy"] = npy(np.zeros(300_000_000, dtype=np.uint8))
        attribute(forgery, "extra", node("NdArrayNode", "numpy.ndarray", type="numpy", file="9.npy"))

    def unused(forgery):
        forgery.members["9.npy"] = npy(np.zeros(300_000_000, dtype=np.uint8))

    def large_tree(forgery):
        return forgery.bytes(schema='{"a": [' + "[]," * 30_000_000 + "[]]}")

    def claimed(forgery):
        head = npy(np.zeros(3)).replace(b"(3,)", b"(3000000000,)")
        forgery.members["9.npy"] = head
        attribute(forgery, "extra", node("NdArrayNode", "numpy.ndarray", type="numpy", file="9.npy"))

    def void(forgery):
        forgery.members["9.npy"] = npy(np.array(1_500_000_000))
        attribute(forgery, "extra", node("NdArrayNode", "numpy.void", type="numpy", file="9.npy"))

    def large_meta(forgery):
        forgery.meta["parameters"] = {"tau": "1" * 20_000_000}

    yield "zeros in an archive in the archive", "bayes", sparse
    yield "an archive in an archive in the archive", "bayes", sparse_in_sparse
    for n in (8, 40, 400):
        yield f"one array {n} times", "bayes", repeated(n)
    yield "an array of zeros", "bayes", deflated
    yield "an unused array of zeros", "bayes", unused
    yield "a tree of empty lists", "bayes", large_tree
    yield "an array with a false large size", "bayes", claimed
    yield "a number that is a size", "bayes", void
    yield "a long description", "bayes", large_meta


def _types():
    def extra(part):
        return lambda forgery: attribute(forgery, "extra", part)

    arguments = node("TupleNode", "builtins.tuple", content=[value("touch owned")])
    yield "os.system", "bayes", extra(node("FunctionNode", "os.system"))
    yield "eval", "bayes", extra(node("FunctionNode", "builtins.eval"))
    yield (
        "a type that is called",
        "bayes",
        extra(node("ConstructorFromReduceNode", "subprocess.Popen", content=arguments)),
    )
    yield (
        "a part of ours that is called",
        "bayes",
        extra(node("ConstructorFromReduceNode", "ordinalq.aliases.TypedColumns", content=arguments)),
    )
    call = {"func": node("FunctionNode", "os.system"), "args": arguments, "kwds": dict_of({}), "namespace": value(None)}
    yield "a partial call", "bayes", extra(node("PartialNode", "functools.partial", content=call))
    yield "a method caller", "bayes", extra(node("OperatorFuncNode", "operator.methodcaller", attrs=arguments))
    method = {"func": "tofile", "obj": value("x")}
    yield "a method", "bayes", extra(node("MethodNode", "builtins.str", content=method))
    yield "a type of another module", "bayes", extra(node("TypeNode", "antigravity.fly"))
    yield "a path instead of an alias", "bayes", extra(node("ObjectNode", "ordinalq.quantifiers.adjusted.PACC"))
    yield "an alias that there is not", "bayes", extra(node("ObjectNode", "ordinalq.aliases.Evil"))
    yield "a function that is not a function", "bayes", extra(node("FunctionNode", "ordinalq.aliases.alias_of"))
    yield "a module as a part", "bayes", extra(node("FunctionNode", "ordinalq.aliases.import_module"))
    yield "a way of building that there is not", "bayes", extra(node("EvalNode", "builtins.list"))
    yield "a list of another type", "bayes", extra(node("ListNode", "builtins.map", content=[]))
    yield "escape sequences in a type", "bayes", extra(node("ObjectNode", f"evil.{ESCAPE}"))
    yield "escape sequences in a loader", "bayes", extra(node(ESCAPE, "builtins.list"))
    yield "a type that is not a name", "bayes", extra({**node("ObjectNode", "a.b"), "__class__": 7})
    yield "a number that is none", "bayes", extra({**value(1), "__id__": [1]})


def _compiled_code():
    def empty_tree(forgery):
        forgery.nodes(__loader__="TreeNode")[0]["content"] = dict_of({})

    def no_nodes(forgery):
        tree = forgery.nodes(__loader__="TreeNode")[0]["content"]["content"]
        tree["node_count"] = value(0)

    def none_at_all(forgery):
        tree = forgery.nodes(__loader__="TreeNode")[0]["content"]["content"]
        tree["node_count"] = value(0)
        for name in ("nodes", "values"):
            array = np.load(io.BytesIO(forgery.members[tree[name]["file"]]))
            forgery.members[tree[name]["file"]] = npy(array[:0])

    def more_nodes(forgery):
        forgery.nodes(__loader__="TreeNode")[0]["content"]["content"]["node_count"] = value(10_000_000)

    def more_outputs(forgery):
        arguments = forgery.nodes(__loader__="TreeNode")[0]["__reduce__"]["args"]
        arguments["content"][2] = value(1_000_000)

    def changed_nodes(**changes):
        def change(forgery):
            tree = forgery.nodes(__loader__="TreeNode")[0]["content"]["content"]
            file = tree["nodes"]["file"]
            array = np.load(io.BytesIO(forgery.members[file]))
            for name, number in changes.items():
                array[name][0] = number
            forgery.members[file] = npy(array)

        return change

    def tree_as_object(forgery):
        tree = forgery.nodes(__loader__="TreeNode")[0]
        tree["__loader__"] = "ObjectNode"

    def fewer_classes(forgery):
        for forest in forgery.nodes(__class__="DecisionTreeClassifier"):
            if "content" in forest:
                forest["content"]["content"]["n_classes_"] = value(2)

    def more_classes(forgery):
        for forest in forgery.nodes(__class__="DecisionTreeClassifier"):
            if "content" in forest:
                forest["content"]["content"]["n_classes_"] = value(5_000_000)

    def support_vectors(forgery):
        frame = table()
        q = oq.CC(oq.classifiers.InSample(SVC())).fit(frame[["price"]], frame["stars"])
        machine = q.classifier_.estimator_
        machine._dual_coef_ = machine.dual_coef_ = np.ones((1, 1))
        return saved(q)

    def sparse_positions(forgery):
        positions = np.array([0, 2_000_000_000], dtype=np.int32)
        parts = {"indices": positions, "indptr": np.array([0, 2], dtype=np.int32), "data": np.ones(2)}
        forgery.members["9.npz"] = npz(**parts, format=b"csr", shape=[1, 9])
        attribute(forgery, "extra", node("SparseMatrixNode", CSR, type="scipy", file="9.npz"))

    def generator(forgery):
        state = np.random.RandomState(0).get_state(legacy=False)
        forgery.members["9.npy"] = npy(state["state"]["key"])
        key = node("NdArrayNode", "numpy.ndarray", type="numpy", file="9.npy")
        inner = dict_of({"key": key, "pos": value(2_000_000_000)})
        content = dict_of(
            {"bit_generator": value("MT19937"), "state": inner, "has_gauss": value(0), "gauss": value(0.0)}
        )
        attribute(forgery, "extra", node("RandomStateNode", "numpy.random.mtrand.RandomState", content=content))

    def seed_as_a_call(forgery):
        states = dict_of({"bit_generator": value("seed")})
        content = {"bit_generator": states, "seed_seq": dict_of({})}
        attribute(forgery, "extra", node("RandomGeneratorNode", "numpy.random._generator.Generator", content=content))

    def jobs(forgery):
        for part in forgery.nodes(__class__="RandomForestClassifier"):
            if "content" in part:
                part["content"]["content"]["n_jobs"] = value(10_000_000)

    yield "a decision tree without content", "forest", empty_tree
    yield "a decision tree with zero nodes in its header", "forest", no_nodes
    yield "a decision tree without nodes", "forest", none_at_all
    yield "a decision tree with many nodes in its header", "forest", more_nodes
    yield "a decision tree with many outputs in its header", "forest", more_outputs
    yield "a child far away", "forest", changed_nodes(left_child=10_000_000)
    yield "a child that is a parent", "forest", changed_nodes(right_child=0)
    yield "a feature far away", "forest", changed_nodes(feature=10_000_000)
    yield "a decision tree as an object", "forest", tree_as_object
    yield "fewer classes than leaves know", "forest", fewer_classes
    yield "more classes than leaves know", "forest", more_classes
    yield "a support vector machine with one coefficient", "bayes", support_vectors
    yield "a sparse matrix with positions far away", "bayes", sparse_positions
    yield "a generator that reads beyond its state", "bayes", generator
    yield "a generator that calls a function", "bayes", seed_as_a_call
    yield "millions of jobs", "forest", jobs


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        oq.save_model(model, f"{folder}/model.oq")
        return Path(f"{folder}/model.oq").read_bytes()


def _descriptions():
    def changed(**changes):
        return lambda forgery: forgery.meta.update(changes)

    versions = {"python": "3", "ordinalq": oq.__version__, "scikit-learn": "1.²", "numpy": "2", "skops": "1"}
    yield "a version in small figures", "bayes", changed(versions=versions)
    yield "a version that is a number", "bayes", changed(versions={**versions, "scikit-learn": 1.9})
    yield "a version with escape sequences", "bayes", changed(versions={**versions, "scikit-learn": f"99.1 {ESCAPE}"})
    yield "a format of a billion", "bayes", changed(format=10**9)
    yield "classes that are none", "bayes", changed(classes=None)
    yield "classes that are lists", "bayes", changed(classes=[[1], [2], [3]])
    yield "classes with escape sequences", "bayes", changed(classes=[ESCAPE] * 5)
    yield "shares that are words", "bayes", changed(p_train=["a"] * 5)
    yield "shares below zero", "bayes", changed(p_train=[-1, 1, 1, 0, 0])
    yield "columns that are a list", "bayes", changed(columns=["price"])
    yield "pairs that are methods", "bayes", changed(pairs=["predict", "__class__"])
    yield "pairs that are a word", "bayes", changed(pairs="classes_")
    yield "a target that is a number", "bayes", changed(target=7)
    yield "held-out items below zero", "bayes", changed(n_held_out=-5)


def _archives():
    def two_schemas(forgery):
        forgery.more.append((SCHEMA, json.dumps(forgery.schema)))

    def no_schema(forgery):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("other.json", "{}")
        return forgery.bytes(payload=stream.getvalue())

    def a_missing_file(forgery):
        del forgery.members[next(iter(forgery.members))]

    def a_pickle(forgery):
        name = next(iter(forgery.members))
        forgery.members[name] = pickle.dumps(os.system)

    def objects(forgery):
        name = next(iter(forgery.members))
        head = npy(np.zeros(3)).replace(b"'<f8'", b"'|O' ")
        forgery.members[name] = head

    def not_json(forgery):
        return forgery.bytes(schema="{")

    def a_list(forgery):
        return forgery.bytes(schema="[]")

    def another_protocol(forgery):
        forgery.schema["protocol"] = 10**6

    yield "two trees", "bayes", two_schemas
    yield "no tree", "bayes", no_schema
    yield "a missing array", "bayes", a_missing_file
    yield "a pickle as an array", "bayes", a_pickle
    yield "an array of objects", "bayes", objects
    yield "a tree that is not JSON", "bayes", not_json
    yield "a tree that is a list", "bayes", a_list
    yield "another protocol", "bayes", another_protocol


def _sizes():
    def emptied(forgery):
        forgery.schema["content"] = dict_of({})

    def another_class(forgery):
        forgery.schema["__class__"] = "Tikhonov"

    def huge_integer(forgery):
        attribute(forgery, "extra", node("JsonNode", "builtins.str", content="1" * 100_000))

    def long_vocabulary(forgery):
        for part in forgery.nodes(__class__="Words"):
            if "content" in part:
                part["content"]["content"]["vocabulary_"] = dict_of({"good": value(2_000_000_000)})

    def held_out_code(number):
        def change(forgery):
            for name, member in forgery.members.items():
                array = np.load(io.BytesIO(member))
                if array.dtype == np.int64 and array.shape == (120,):
                    array[7] = number
                    forgery.members[name] = npy(array)

        return change

    def columns_of_categories(forgery):
        for part in forgery.nodes(__class__="OneHotEncoder"):
            if "content" in part:
                part["content"]["content"]["_n_features_outs"] = listed([value(200_000_000)])

    def other_description(forgery):
        forgery.meta["p_train"] = [0.3, 0.1, 0.2, 0.2, 0.2]

    def other_method(forgery):
        forgery.meta["method"] = "OPACC"

    def other_columns(forgery):
        forgery.meta["columns"] = {"price": "number", "review": "text"}

    def other_parameter(forgery):
        forgery.meta["parameters"] = {**forgery.meta["parameters"], "solver": "'softmax'"}

    yield "a held-out code of 200 million", "bayes", held_out_code(200_000_000)
    yield "a held-out code below zero", "bayes", held_out_code(-1)
    yield "an encoder of 200 million columns", "bayes", columns_of_categories
    yield "the description of another training table", "bayes", other_description
    yield "the description of another method", "bayes", other_method
    yield "the description of other columns", "bayes", other_columns
    yield "the description of another parameter", "bayes", other_parameter
    yield "a model without attributes", "bayes", emptied
    yield "a penalty as a model", "bayes", another_class
    yield "a number of a hundred thousand figures", "bayes", huge_integer
    yield "a word with a large number", "table", long_vocabulary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutated", type=int, default=1000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    paths = base_models(options.folder)
    contents = [path.read_bytes() for path in paths.values()]
    rng = generator()
    files = [*made(paths), *mutated(contents, rng, options.mutated)]
    for i, (_, content) in enumerate(files):
        (options.folder / f"hostile-{i:04d}.oq").write_bytes(content)


if __name__ == "__main__":
    main()
