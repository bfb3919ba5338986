"""Lookups that hide differences between versions of the library from the scripts in this folder.

`side_by_side.py` compares two versions, whose modules, names and keywords may differ. It writes the new names; the
functions here translate them if the imported version has the old ones.
"""

import contextlib
import copy
import functools
import importlib
import inspect
import io
import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

BOUNDS = ("lower", "upper", "cumulative_lower", "cumulative_upper", "mean_lower", "mean_upper")
# Modules with public names below the top level.
NAMESPACES = (
    *("metrics", "protocols", "classifiers", "model_selection", "datasets", "unfolding", "solvers", "inference"),
    "plot",
)
# Keywords of functions with the same meaning in different versions.
KEYWORDS = (
    ("estimand", "of"),
    ("weight_type", "weights"),
    ("sample_weight", "weight"),
    ("labels", "labelled"),
    ("groups", "by"),
    ("options", "plan", "interval_options"),
)
# Keywords that are left out if a function has none of this meaning.
DISPENSABLE = ("checks",)
# Options of the command line with the same meaning in different versions.
OPTIONS = (("--estimand", "--interval-of"), ("--weight-type", "--weights"), ("--level", "--interval"))
# Names that differ between versions: classes, columns, keys of JSON. New ones, and the old ones they are reported as.
OLD_NAMES = {
    "AutoQuantifier": "Default",
    "AdjustedML": "AML",
    "GroupBLP": "BLP",
    "IntervalOptions": "Plan",
    "AutoStrength": "Auto",
    "ShiftedModel": "Alternative",
    "estimand": "of",
    "weight_type": "weights",
}


# --- names, keywords and options of the imported version ------------------------------------------------------


@functools.cache
def find(*names: str, taking: str = "") -> Any:
    """Return the first class or function that the imported version has under one of some names.

    Parameters
    ----------
    *names : str
        Names in the order of preference, the new one first. Each is looked up at the top level, in the public
        namespaces, and in the sources of all modules.
    taking : str, default=""
        Name of a parameter that a function must have.

    Returns
    -------
    object

    Raises
    ------
    LookupError
        If there is none, or if several modules define the name.
    """
    for name in names:
        for module in ("ordinalq", *(f"ordinalq.{namespace}" for namespace in NAMESPACES)):
            value = _public(module, name)
            if value is not None and _takes(value, taking):
                return value
        defined = [getattr(importlib.import_module(module), name) for module in _defining(name)]
        usable = [value for value in defined if _takes(value, taking)]
        if len(usable) > 1:
            modules = ", ".join(value.__module__ for value in usable)
            raise LookupError(f"{name} must be defined once, got {modules}. Use taking=... to tell them apart.")
        if usable:
            return usable[0]
    raise LookupError(f"this version has none of {', '.join(names)}.")


def _public(module: str, name: str) -> Any:
    """Return a public object of a module, or None; modules do not count."""
    try:
        value = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
    return None if inspect.ismodule(value) else value


def _defining(name: str) -> list[str]:
    """Return the names of the modules whose source defines a class or function."""
    pattern = re.compile(rf"^(?:class|def) {re.escape(name)}\b", re.MULTILINE)
    return [module for module, text in _sources().items() if pattern.search(text)]


@functools.cache
def _sources() -> dict[str, str]:
    """Return the source of each module of the package by the name of the module."""
    import ordinalq

    root = Path(ordinalq.__file__).parent
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def _takes(value: Any, parameter: str) -> bool:
    return not parameter or parameter in inspect.signature(value).parameters


def call(function: Any, *arguments: Any, intervals: dict[str, Any] | None = None, **given: Any) -> Any:
    """Call a function with keywords in their new names, which are translated if it has the old ones.

    Options of intervals (estimand, n_replicates, random_state, basis) are passed as one record, or one by one if the
    function takes no record.
    """
    if intervals:
        names = next(names for names in KEYWORDS if "options" in names)
        if any(_takes(function, name) for name in names):
            given["options"] = call(find("IntervalOptions", "Plan"), **intervals)
        else:
            given |= intervals
    return function(*arguments, **_translated(function, given))


def _translated(function: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return keywords by the names that a function has for them."""
    found = {}
    for name, value in given.items():
        others = next((names for names in KEYWORDS if name in names), ())
        known = [one for one in (name, *others) if _takes(function, one)]
        if known or name not in DISPENSABLE:
            found[known[0] if known else name] = value
    return found


def command(*arguments: Any) -> str:
    """Run the command line in this process and return what it prints; an error is a RuntimeError."""
    name = str(arguments[0])
    words = [_option(name, str(word)) if str(word).startswith("--") else str(word) for word in arguments]
    status, printed, complaint = _run(words)
    if status:
        raise RuntimeError(f"ordinalq {name} ended with status {status}: {complaint.strip()[-300:]}")
    return printed


def _option(name: str, option: str) -> str:
    """Return an option by the name that a subcommand has for it."""
    others = next((names for names in OPTIONS if option in names), (option,))
    return next((one for one in others if one in _options(name)), option)


@functools.cache
def _options(name: str) -> frozenset[str]:
    """Return the options that the help of a subcommand lists."""
    return frozenset(re.findall(r"--[a-z][a-z-]*", _run([name, "--help"])[1]))


def _run(words: list[str]) -> tuple[int, str, str]:
    """Run the command line; return its status, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    # A wide terminal, so that the help does not cut the names of options.
    wide = mock.patch.dict(os.environ, {"COLUMNS": "500", "TERMINAL_WIDTH": "500"})
    arguments = mock.patch.object(sys, "argv", ["ordinalq", *words])
    with wide, arguments, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module("ordinalq", run_name="__main__")
            status: Any = 0
        except SystemExit as end:
            status = end.code or 0
    return (status if isinstance(status, int) else 1), out.getvalue(), err.getvalue()


def old_name(text: str) -> str:
    """Return a text with new names replaced by those of earlier versions, by which both are compared."""
    return re.sub(r"[A-Za-z_]+", lambda word: OLD_NAMES.get(word[0], word[0]), text)


# --- services of a fitted quantifier --------------------------------------------------------------------------


class Before:
    """Services with `_scores` twins: `predict_interval_scores` gives Intervals, `predict_groups_scores` a frame."""

    def intervals(
        self, q: Any, S: Any, samples: Any, level: float, of: str, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return estimates and bounds of samples of items with scores S (N, n): name -> array; there is no `fit`."""
        found = q.predict_interval_scores(S, level, samples, target=of, **options)
        parts = {name: getattr(found, name) for name in (*BOUNDS, "covariance", "n_items")}
        return parts | {"prevalences": found.estimate}

    def groups(
        self, q: Any, S: Any, groups: Any, level: float | None = None, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return the table of groups of items with scores S (N, n): name of a column -> array; there is no `fit`."""
        return columns(q.predict_groups_scores(S, groups, level=level, **options))

    def chunks(self, q: Any, S: Any, groups: Any, parts: Any, level: float | None = None, **options: Any) -> Any:
        """Return the table of groups whose items were added in chunks, index arrays `parts`."""
        from ordinalq.methods.streaming import GroupTotals

        totals = GroupTotals(q)
        for part in parts:
            totals.add(S[part], groups[part])
        return columns(totals.table(level=level, **options))

    def diagnosis(self, q: Any, S: Any) -> dict[str, Any]:
        """Return the numbers of a diagnosis by name."""
        record: dict[str, Any] = q.diagnose_scores(S).to_dict()
        return record


class GivenScores:
    """Classifier whose items are class scores already."""

    def predict_proba(self, S: Any) -> Any:
        """Return the scores (N, n)."""
        return S


class Now:
    """Services of a Summary: functions in `ordinalq.inference` that give Estimates.

    A version without such functions estimates groups of items, where the items are scores.
    """

    def intervals(
        self, q: Any, S: Any, samples: Any, level: float, of: str, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return estimates and bounds of samples of items with scores S (N, n): name -> array."""
        found = self._estimates(q, S, samples, level, fit=fit, estimand=of, **options)
        parts = {name: getattr(found.bounds, name) for name in BOUNDS}
        return parts | {"covariance": found.covariance, "n_items": found.n_items, "prevalences": found.prevalences}

    def groups(
        self, q: Any, S: Any, groups: Any, level: float | None = None, *, fit: bool = True, **options: Any
    ) -> dict[str, Any]:
        """Return the table of groups of items with scores S (N, n): name of a column -> array."""
        return columns(self._estimates(q, S, self._samples(groups), level, fit=fit, **options).frame())

    def chunks(self, q: Any, S: Any, groups: Any, parts: Any, level: float | None = None, **options: Any) -> Any:
        """Return the table of groups whose items were summarized in chunks, index arrays `parts`, and merged."""
        merged = None
        for part in parts:
            summary = self._summary(q, S[part], self._samples(groups[part]))
            merged = summary if merged is None else merged.merge(summary)
        return columns(call(find("estimate", taking="summary"), q, merged, level, intervals=options).frame())

    def diagnosis(self, q: Any, S: Any) -> dict[str, Any]:
        """Return the numbers of a diagnosis by name."""
        try:
            found = find("diagnose", taking="summary")(q, self._summary(q, S, None))
        except LookupError:
            found = self._scoring(q).diagnose(S)
        record: dict[str, Any] = found.to_dict()
        return record

    def _samples(self, groups: Any) -> Any:
        import ordinalq as oq

        return oq.Samples.from_groups(groups)

    def _summary(self, q: Any, S: Any, samples: Any, *, checks: bool = True) -> Any:
        return call(q.summarize, S, samples, checks=checks)

    def _estimates(self, q: Any, S: Any, samples: Any, level: float | None, *, fit: bool = True, **options: Any) -> Any:
        try:
            estimate = find("estimate", taking="summary")
        except LookupError:
            return call(self._scoring(q).predict_groups, S, samples, level=level, intervals=options)
        return call(estimate, q, self._summary(q, S, samples, checks=fit), level, intervals=options)

    def _scoring(self, q: Any) -> Any:
        """Return a copy of a quantifier, fitted on scores, that takes scores for items."""
        twin = copy.copy(q)
        if not hasattr(twin, "classifier_"):
            twin.classifier_ = GivenScores()
        return twin


def adapter() -> Before | Now:
    """Return the adapter for the version of the library that is imported."""
    try:
        import ordinalq.inference  # noqa: F401
    except ImportError:
        return Before()
    return Now()


def paper_methods() -> list[Any]:
    """Return the methods of the paper in the catalog, which had no others once."""
    import ordinalq as oq

    takes = inspect.signature(oq.catalog).parameters
    return list(oq.catalog(**({"beyond": False} if "beyond" in takes else {})))


def solution(q: Any, S: Any, samples: Any) -> dict[str, Any]:
    """Return value and convergence of the solver for samples of items with scores S (N, n); empty if not available."""
    solve = getattr(q, "solve_scores", None)
    if solve is None and not hasattr(q, "solve"):
        return {}
    found = q.solve(call(q.summarize, S, samples, checks=False)) if solve is None else solve(S, samples)
    return {name: getattr(found, name) for name in ("value", "converged") if hasattr(found, name)}


def errors(p_true: Any, p_hat: Any, measure: str = "nmd") -> Any:
    """Return the error of each estimate (B,); the order of the two arguments differs between versions."""
    function = find("errors", taking="measure")
    hat_first = "hat" in next(iter(inspect.signature(function).parameters))
    return function(p_hat, p_true, measure) if hat_first else function(p_true, p_hat, measure)


def columns(frame: Any) -> dict[str, Any]:
    """Return the columns of a frame as arrays."""
    return {str(name): np.asarray(frame[name]) for name in frame.columns}


def centred(cls: Any, centre: Any, **parameters: Any) -> Any:
    """Return a method whose penalty pulls towards a centre, which was once called target."""
    name = "centre" if "centre" in inspect.signature(cls).parameters else "target"
    return make_method(cls, **parameters, **{name: centre})


def make_method(cls: Any, **parameters: Any) -> Any:
    """Return a method with parameters that mean the same in all versions.

    o-PDF had bins over the span of the data, which is a choice now; RUN took the reciprocal of the acceptance.
    """
    if "span" in inspect.signature(cls).parameters:
        parameters = {"span": "data"} | parameters
    if "acceptance" in parameters and isinstance(adapter(), Before):
        parameters["acceptance"] = 1 / parameters["acceptance"]
    return cls(**parameters)


def linear_objective(q: Any, Q: Any, sizes: Any) -> Any:
    """Objective of the fitted linear quantifier q for means Q (B, d) of samples of the given sizes (B,).

    None where q minimizes none: it counts, or it iterates.
    """
    objective = find("LinearObjective")
    regularizer = getattr(q, "smoother_", None) or getattr(q, "regularizer_", None)
    if not hasattr(q, "loss_") or not isinstance(regularizer, find("Regularizer")):
        return None
    blocks = q.representation_.n_blocks_
    try:
        data = find("Data")
    except LookupError:
        return objective(q.loss_, regularizer, Q, q.M_, sizes, blocks)
    return objective(q.loss_, regularizer, data(Q, q.M_, sizes, n_blocks=blocks))
