"""Configuration of an experiment, read from TOML.

It has the data set, the methods, the classifier grid and the samples. The experiments of the paper are files in
`configs/`, one per data set. User experiments are files of the same form. A table ``[quick]`` contains the changes of
the profile "quick". A file can name custom methods, classifiers, measures and loaders in modules next to it. Reading it
imports them: treat an experiment file like a script.
"""

import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordinalq._utils.text import nearest
from ordinalq._utils.validation import check_choice
from ordinalq.classifiers.registry import FAMILIES, classifier_class
from ordinalq.datasets import CATALOG as DATASETS
from ordinalq.metrics import MEASURES
from ordinalq.quantifiers.catalog import BEYOND, import_method, known_methods

# Methods of the comparison of ordinal classifiers: pairs such as "OLR-AT-PACC"

# Classifier -> the parameter that sets the strength of its penalty.
CLASSIFIERS = {"LR": "C", "OLR-AT": "alpha", "OLR-IT": "alpha", "ORidge": "alpha", "LAD": "C"}
QUANTIFIERS = ("CC", "PCC", "ACC", "PACC", "SLD")
# They give no posteriors and serve only the quantifiers that count votes.
VOTERS = ("ORidge", "LAD")
COUNTING = ("CC", "ACC")
ADJUSTED = ("ACC", "PACC")
METHODS = tuple(
    f"{classifier}-{quantifier}"
    for classifier in CLASSIFIERS
    for quantifier in QUANTIFIERS
    if classifier not in VOTERS or quantifier in COUNTING
)
STRENGTHS = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


def split_pair(method: str) -> tuple[str, str]:
    """Return classifier and quantifier of a method.

    The classifier is "" for a method that is not a pair.

    >>> split_pair("OLR-AT-PACC"), split_pair("PACC")
    (('OLR-AT', 'PACC'), ('', 'PACC'))
    """
    classifier, _, quantifier = method.rpartition("-")
    return classifier, quantifier


def classifier_grid(name: str) -> dict[str, list[Any]]:
    """Return the paper's values of each parameter of a classifier.

    The text "none" represents None.

    >>> classifier_grid("ORidge")["normalize"]
    [False, True]
    """
    check_choice("name", name, tuple(CLASSIFIERS))
    grid: dict[str, list[Any]] = {CLASSIFIERS[name]: list(STRENGTHS), "class_weight": ["none", "balanced"]}
    return grid | ({"normalize": [False, True]} if name == "ORidge" else {})


# Configurations

PROFILES = ("full", "quick")
KINDS = ("quantifiers", "classifiers", "collection")

# What each key of each table must be; a key that is not here is a mistake.
TABLES: dict[str, dict[str, type]] = {
    "": {"kind": str, "title": str, "seed": int, "measures": list, "methods": list, "in_sample": list, "members": list,
         "protocols": list},
    "dataset": {"name": str, "table": str, "loader": str, "target": str, "n_bins": int, "classes": list,
                "features": list, "text": str, "min_count": int, "paper": str},
    "samples": {"n_validation": int, "n_test": int, "sample_size": int, "min_per_class": int, "rounding": str,
                "small_pool": str},
    "classifier": {"family": str, "n_estimators": int, "parameters": dict, "grid": dict},
    "grid": {},
    "quick": {},
}  # fmt: skip
# Kinds of protocols, and the parameters that each has besides its name and the keys of [samples].
PROTOCOLS: dict[str, tuple[str, ...]] = {
    "APP": (),
    "APP-OQ": ("fraction",),
    "NPP": (),
    "real": ("vectors", "poisson"),
    "Dirichlet": ("alpha",),
    "given": (),
}
REQUIRED = {"APP-OQ": "fraction", "real": "vectors", "Dirichlet": "alpha"}
# How a type is called in a message.
A = {str: "text", int: "a whole number", list: "a list", dict: "a table"}


@dataclass(frozen=True)
class Config:
    """Experiment configuration.

    It is the paper's main experiment, its comparison of ordinal classifiers, or several together.
    """

    name: str  # of the file
    source: str  # the name or the path by which it was asked for
    kind: str  # one of `KINDS`
    title: str
    dataset: dict[str, Any]  # for `load_dataset` or, with a ``table``, `make_dataset`; ``paper`` is its name there
    methods: tuple[str, ...]  # names of the catalog, in its order, and of classes outside of it
    measures: tuple[str, ...]
    seed: int
    samples: dict[str, Any]  # keys of [samples] that differ from those of the data set
    classifier: dict[str, Any]  # ``family``, a name or "module:Class"; ``n_estimators``, ``parameters``, ``grid``
    grids: dict[str, dict[str, list[Any]]] = field(default_factory=dict)  # in place of those of the catalog
    in_sample: tuple[str, ...] = ()  # methods on scores of a classifier's own training items
    members: tuple[str, ...] = ()  # the experiments of a collection
    outside: dict[str, str] = field(default_factory=dict)  # name of a method or measure -> path "module:object"
    protocols: tuple[dict[str, Any], ...] = ()  # ``kind``, ``name`` and parameters; those of the data set if empty
    folder: str = ""  # the folder of a file that names own modules, which are imported from there
    profile: str = "full"
    settings: str = "reference"

    @property
    def dataset_name(self) -> str:
        """Name of the data set, or of the table without its folder."""
        return str(self.dataset.get("name") or self.dataset.get("loader") or Path(self.dataset["table"]).stem)

    def measure(self, name: str) -> Any:
        """Return an error measure: its name, or the function of an own one."""
        return import_object(self.outside[name]) if name in self.outside else name


def import_object(path: str) -> Any:
    """Return the object "package.module:name".

    >>> import_object("math:sqrt")(4.0)
    2.0
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # a module of the user can raise any error
        raise ValueError(f"{path!r} cannot be imported: {type(error).__name__}: {error}") from error


def make_importable(folder: str) -> None:
    """Let modules of a folder be imported, as Python does for the folder of a script."""
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)


def config_folder() -> Path:
    """Return the folder with the paper's experiments.

    It is inside an installed package, or at the top of a checkout.
    """
    here = Path(__file__).parent
    installed = here / "configs"
    return installed if installed.is_dir() else here.parents[3] / "configs"


def config_names() -> list[str]:
    """Return the names of the paper's experiments."""
    return sorted(path.stem for path in config_folder().glob("*.toml"))


def load_config(name: str | Path, profile: str = "full", settings: str = "reference") -> Config:
    """Read an experiment of the paper or a TOML file.

    Parameters
    ----------
    name : str or path
        Name of an experiment, such as "fried", or path of a TOML file.
    profile : {"full", "quick"}, default="full"
        "quick" applies the changes of the table ``[quick]``.
    settings : {"reference", "paper"}, default="reference"
        Follow the authors' program or the text of the paper.

    Returns
    -------
    Config
    """
    for what, value, known in (("profile", profile, PROFILES), ("settings", settings, ("reference", "paper"))):
        if value not in known:
            raise ValueError(
                _sentence(f"{what} must be one of {', '.join(known)}, got {value!r}{nearest(value, known)}")
            )
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in config_names():
            names = config_names()
            what = f"{str(name)!r} must be the path of a .toml file or one of {', '.join(names)}"
            raise ValueError(_sentence(what + nearest(str(name), names)))
        path = config_folder() / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    return _Reader(path, text, str(name)).config(profile, settings)


def _sentence(text: str) -> str:
    """End a sentence, unless it is a question."""
    return text if text.endswith("?") else f"{text}."


def _names_own_parts(content: Mapping[str, Any]) -> bool:
    """Return whether a configuration names objects "module:name"."""
    one = (content.get("dataset", {}).get("loader"), content.get("classifier", {}).get("family"))
    named = (*content.get("methods", ()), *content.get("measures", ()), *one)
    return any(isinstance(name, str) and ":" in name for name in named)


class _Reader:
    """A file and its text; every error message names the key and its line."""

    def __init__(self, path: Path, text: str, source: str) -> None:
        self.path = path
        self.text = text
        self.source = source
        self.quick: Mapping[str, Any] = {}
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path} is not valid TOML: {error}.") from error

    def config(self, profile: str, settings: str) -> Config:
        self._check(self.content)
        content = self.content
        if profile == "quick":
            self.quick = content.get("quick", {})
            content = _merged(content, self.quick)
        # Otherwise modules of the folder could be imported in place of those that the program needs.
        has_own = self.path.parent != config_folder() and _names_own_parts(content)
        folder = str(self.path.parent.resolve()) if has_own else ""
        make_importable(folder)
        kind = content.get("kind", "quantifiers")
        if kind not in KINDS:
            raise self._error("kind", f"must be one of {', '.join(KINDS)}, got {kind!r}{nearest(str(kind), KINDS)}")
        members = tuple(self._names("members", content.get("members", []), config_names()))
        if kind == "collection" and not members:
            raise self._error("members", "must name the experiments of the collection")
        for member in members:
            if load_config(member).kind == "collection":
                raise self._error("members", f"must be single experiments, but {member!r} is a collection")
        classes, chosen, outside = self._methods(kind, content)
        seed = content.get("seed", 876)
        if seed < 0:
            raise self._error("seed", f"must be at least 0, got {seed}")
        for key, value in content.get("samples", {}).items():
            if isinstance(value, int) and value < (least := int(key != "min_per_class")):
                raise self._error(key, f"must be at least {least}, got {value}", "samples")
        # Only methods on the scores of a classifier can have in-sample ones.
        scored = [name for name, cls in classes.items() if cls and cls().traits.learns_from == "scores"]
        gridded = dict.fromkeys(CLASSIFIERS) if kind == "classifiers" else classes
        measures, own = self._measures(content.get("measures", ["nmd", "rnod"]))
        return Config(
            name=self.path.stem,
            source=self.source,
            kind=kind,
            title=content.get("title", self.path.stem),
            dataset={} if kind == "collection" else self._dataset(content),
            methods=tuple(name for name in classes if name in chosen),
            measures=measures,
            seed=seed,
            samples=dict(content.get("samples", {})),
            classifier={} if kind != "quantifiers" else self._classifier(content),
            grids=self._grids(content.get("grid", {}), kind, gridded),
            outside=outside | own,
            protocols=self._protocols(content),
            folder=folder,
            in_sample=tuple(self._names("in_sample", content.get("in_sample", []), scored, empty=True)),
            members=members,
            profile=profile,
            settings=settings,
        )

    def _methods(self, kind: str, content: Mapping[str, Any]) -> tuple[dict[str, Any], list[str], dict[str, str]]:
        """Return the classes of all methods, the chosen names, and external paths.

        The paths are those of methods outside the package. Pairs of a classifier and a quantifier have no class.
        """
        if kind == "classifiers":
            names = list(METHODS)
            return dict.fromkeys(names), self._names("methods", content.get("methods", names), names), {}
        known = known_methods()
        classes: dict[str, Any] = {name: entry.cls for name, entry in known.items()}
        in_paper = [name for name, entry in known.items() if entry.group != BEYOND]
        outside: dict[str, str] = {}
        named = []
        shorthands = {"catalog": in_paper, "beyond": [name for name in known if name not in in_paper]}
        given = content.get("methods", in_paper)
        for value in (
            name for one in given for name in (shorthands.get(one, [one]) if isinstance(one, str) else [one])
        ):
            if isinstance(value, str) and ":" in value:
                try:
                    entry = import_method(value)
                except ValueError as error:
                    raise self._error("methods", f"must be of the catalog or importable: {error}") from error
                if entry.name in classes:
                    raise self._error("methods", f"must differ in name, but there is another {entry.name!r}")
                classes[entry.name] = entry.cls
                outside[entry.name] = value
                value = entry.name
            named.append(value)
        return classes, self._names("methods", named, list(classes)), outside

    def _measures(self, given: list[Any]) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the names of the measures, and the paths of own ones by their names."""
        own: dict[str, str] = {}
        names = []
        for value in given:
            if isinstance(value, str) and ":" in value:
                self._own("measures", value)
                value = own.setdefault(value.partition(":")[2], value).partition(":")[2]
            names.append(value)
        return tuple(self._names("measures", names, [*MEASURES, *(set(own) - set(MEASURES))])), own

    def _protocols(self, content: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Return the protocols, each with its kind, its name and its parameters."""
        found: list[dict[str, Any]] = []
        for value in content.get("protocols", []):
            one = {"kind": value} if isinstance(value, str) else value
            if not isinstance(one, dict) or one.get("kind") not in PROTOCOLS:
                known = ", ".join(PROTOCOLS)
                raise self._error("protocols", f"must have a kind among {known}, got {value!r}")
            kind = one["kind"]
            allowed = ("kind", "name", *PROTOCOLS[kind], *(TABLES["samples"] if kind != "given" else ()))
            for key in one:
                if key not in allowed:
                    raise self._error("protocols", f"of kind {kind} have no {key}{nearest(key, allowed)}")
            if REQUIRED.get(kind, "kind") not in one:
                raise self._error("protocols", f"of kind {kind} must have {REQUIRED[kind]}")
            one = {"name": kind} | one
            if isinstance(one.get("vectors"), str):
                one["vectors"] = str(self.path.parent / one["vectors"])
            found.append(one)
        names = [one["name"] for one in found]
        if len(set(names)) < len(names):
            raise self._error("protocols", f"must differ in name, got {names!r}; give them a name each")
        if "protocols" in content and not found:
            raise self._error("protocols", "must have at least one")
        return tuple(found)

    def _own(self, key: str, path: str, table: str = "") -> Any:
        """Return an object that is named by its path."""
        try:
            return import_object(path)
        except ValueError as error:
            raise self._error(key, f"must be importable: {error}", table) from error

    def _dataset(self, content: Mapping[str, Any]) -> dict[str, Any]:
        dataset = dict(content.get("dataset", {}))
        if sum(key in dataset for key in ("name", "table", "loader")) != 1:
            raise self._error("dataset", "must have one of name, table and loader")
        if "loader" in dataset:
            self._own("loader", dataset["loader"], "dataset")
        elif "table" in dataset:
            if "target" not in dataset:
                raise self._error("dataset", "must have the target column of its table")
            dataset["table"] = str(self.path.parent / dataset["table"])
        else:
            self._names("name", [dataset["name"]], [entry.name for entry in DATASETS], "dataset")
        return dataset

    def _classifier(self, content: Mapping[str, Any]) -> dict[str, Any]:
        classifier: dict[str, Any] = {"family": "forest", "grid": {}, "parameters": {}} | dict(
            content.get("classifier", {})
        )
        family = classifier["family"]
        if ":" in family:
            owner = self._own("family", family, "classifier")
        else:
            self._names("family", [family], list(FAMILIES), "classifier")
            owner = classifier_class(family)
        if family != "forest" and "n_estimators" in classifier:
            raise self._error("n_estimators", "is for the family forest only; use parameters", "classifier")
        if classifier.get("n_estimators", 1) < 1:
            raise self._error("n_estimators", f"must be at least 1, got {classifier['n_estimators']}", "classifier")
        self._grid("classifier.grid", classifier["grid"], owner)
        self._grid("classifier.parameters", {key: [one] for key, one in classifier["parameters"].items()}, owner)
        return classifier

    def _grids(self, grids: Mapping[str, Any], kind: str, known: Mapping[str, Any]) -> dict[str, Any]:
        what = "classifiers" if kind == "classifiers" else "methods"
        for name, grid in grids.items():
            if name not in known:
                meant = nearest(name, known)
                raise self._error(name, f"is unknown: [grid] must have names of {what} as keys{meant}", "grid")
            self._grid(f"grid.{name}", grid, known[name])
        return dict(grids)

    def _grid(self, where: str, grid: Any, owner: Any) -> None:
        """Raise an error if a value is not a parameter grid of the given class.

        Parameter names are checked if the class is available.
        """
        if not isinstance(grid, dict):
            table, _, key = where.rpartition(".")
            raise self._error(key, f"must be a table of lists of values, got {grid!r}", table)
        parameters = None if owner is None else inspect.signature(owner).parameters
        for key, values in grid.items():
            if parameters is not None and key not in parameters:
                meant = nearest(key, parameters)
                raise self._error(key, f"of [{where}] is not a parameter of {owner.__name__}{meant}", where)
            if not isinstance(values, list) or not values:
                raise self._error(key, f"of [{where}] must be a list of values, got {values!r}", where)

    def _check(self, content: Mapping[str, Any], prefix: str = "") -> None:
        """Raise an error for keys that are unknown and values of a wrong type."""
        for key, value in content.items():
            if key not in TABLES:
                self._check_key("", key, value, prefix)
            elif not isinstance(value, dict):
                raise self._error(key, f"must be a table [{key}], got {value!r}", prefix)
            elif key == "quick":
                self._check(value, "quick")
            elif key != "grid":  # whose keys are methods
                for inner, one in value.items():
                    self._check_key(key, inner, one, _path(prefix, key))

    def _check_key(self, table: str, key: str, value: Any, where: str) -> None:
        known = TABLES[table]
        if key not in known:
            inside = f" in [{where}]" if where else ""
            raise self._error(key, f"is an unknown key{inside}{nearest(key, [*known, *filter(None, TABLES)])}", where)
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise self._error(key, f"must be {A[known[key]]}, got {value!r}", where)

    def _names(self, key: str, values: Any, known: list[str], table: str = "", *, empty: bool = False) -> list[str]:
        for value in values:
            if value not in known:
                among = ", ".join(known) or "nothing, for this kind of experiment"
                raise self._error(key, f"must be among {among}, got {value!r}{nearest(str(value), known)}", table)
        if len(set(values)) < len(values):
            raise self._error(key, f"must not name one twice, got {values!r}", table)
        if not values and key in self.content and not empty:
            raise self._error(key, "must name at least one", table)
        return list(values)

    def _error(self, key: str, what: str, table: str = "") -> ValueError:
        changed: Any = self.quick
        for part in filter(None, _path(table, key).split(".")):
            changed = changed.get(part) if isinstance(changed, dict) else None
        line = self._line(_path("quick" if changed is not None else "", table, key)) or self._line(_path(table, key))
        return ValueError(_sentence(f"{self.path}{f', line {line}' if line else ''}: {key} {what}"))

    def _line(self, wanted: str) -> int | None:
        """Return the number of the line with a key, or None.

        The key is given by its path, such as "quick.samples.n_test".
        """
        header = ""
        for number, line in enumerate(self.text.splitlines(), 1):
            if found := re.match(r"\s*\[+([^\]]+)\]", line):
                header = re.sub(r"[\s\"']", "", found[1])
                if header == wanted:
                    return number
            elif found := re.match(r"\s*([\w.\"'-]+)\s*=(.*)", line):
                path = _path(header, re.sub(r"[\"']", "", found[1]))
                inner = wanted.removeprefix(f"{path}.")
                if path == wanted or (inner != wanted and _inline(inner, found[2])):
                    return number
        return None


def _path(*parts: str) -> str:
    """Join the parts of a path of keys.

    >>> _path("quick", "", "samples")
    'quick.samples'
    """
    return ".".join(filter(None, parts))


def _inline(path: str, text: str) -> bool:
    """Return whether an inline table has a key, by its path inside of it.

    >>> _inline("grid.tau", "{ n = 1, grid = { tau = [1] } }")
    True
    """
    return all(re.search(rf"[{{,\s\"']{re.escape(part)}[\"']?\s*=", text) for part in path.split("."))


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the changes, table by table.

    Each parameter of a grid is replaced as a whole.
    """
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(value, dict) and isinstance(old, dict) else value
    return result
