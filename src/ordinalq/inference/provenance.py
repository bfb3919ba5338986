"""Origin of estimates: model, version and assumptions."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ordinalq.inference.drift import Drift
from ordinalq.inference.model import FittedQuantifier, has_held_out, learned_groups, scale_of
from ordinalq.inference.nested import groups_of_parts
from ordinalq.samples.keys import UNNAMED, Keys
from ordinalq.version import __version__

# Hexadecimal digits of a model's hash that are shown.
DIGITS, SHORT = 16, 8


@dataclass(frozen=True)
class Provenance:
    """Origin of estimates: model, version and assumptions.

    Attributes
    ----------
    method : str
        Name of the method.
    model : str
        Hash of the fitted model: the method, its parameters that are numbers or words, classes, training distribution,
        held-out items, and what was learned from groups. It is the same after saving and loading.
    version : str
        Version of ordinalq that made the estimates.
    estimand : {"sample", "population"}
        Whether estimates and intervals are for these items, or for the population behind them.
    level : float or None
        Level of the intervals.
    groups : str
        What is assumed of groups.
    labels : str
        How labels of the items were used.
    drift : str
        What is assumed of changes between the training items and these.
    """

    method: str
    model: str
    version: str
    estimand: str
    level: float | None
    groups: str
    labels: str = "none"
    drift: str = "none is assumed, or corrected for"

    def to_json(self) -> dict[str, Any]:
        """Return all fields as a plain dict."""
        return asdict(self)

    @property
    def short(self) -> str:
        """Method, beginning of the hash, and version, for plots."""
        return f"{self.method}, model {self.model[:SHORT]}, ordinalq {self.version}"

    def __str__(self) -> str:
        level = "no intervals" if self.level is None else f"{100 * self.level:g}% intervals"
        return (
            f"{self.short}; {level} of the {self.estimand}; groups: {self.groups}; labels: {self.labels}; "
            f"drift: {self.drift}"
        )


# Assumptions on groups that have other columns than the training groups.
PARTS, ASSUMED = "parts of groups by", "are assumed to differ like the training groups by"


def assumed_groups(trained: tuple[str, ...], keys: Keys | None, *, learned_parts: bool = False) -> str:
    """Return the assumption about groups with these keys for a group model.

    With `learned_parts`, the training groups had parts.
    """
    columns = () if keys is None else tuple(keys.names)
    if groups_of_parts(keys, trained) is not None:
        of = ", ".join(trained)
        if learned_parts:
            return f"{PARTS} {of}, which share the effect of their group and differ like the parts of training groups"
        return (
            f"{PARTS} {of}, which share the effect of their group; if they are compared, the items of a "
            f"class are assumed to have the same features in all parts of a {of}"
        )
    if not columns or not trained or set(columns) == set(trained) or UNNAMED in (*columns, *trained):
        return "drawn like the training groups, from which the model has learned how groups differ"
    return f"groups by {', '.join(columns)} {ASSUMED} {', '.join(trained)}"


def provenance_of(
    quantifier: FittedQuantifier, estimand: str, level: float | None, *, keys: Keys | None = None
) -> Provenance:
    """Return the provenance of estimates of samples or groups, before labels."""
    effect = getattr(quantifier, "group_effect", None) if quantifier.traits.has_group_model else None
    if learned_groups(quantifier):
        of_groups = _predictor(quantifier)
        model, trained = getattr(of_groups, "group_model_", None), getattr(quantifier, "group_columns_", ())
        groups = assumed_groups(trained, keys, learned_parts=model is not None and model.of_parts is not None)
        stored = getattr(of_groups, "training_hashes_", None)
        if stored is not None and keys is not None and set(trained) <= set(keys.names):
            groups += "; groups with labelled training rows also use these rows"
    elif effect is not None:
        groups = f"differ by a stated group effect of {effect:g}"
    else:
        groups = "differ in nothing but their prevalences" if keys is not None else "none"
    fitted = fitted_model(quantifier)
    V = getattr(fitted, "held_out_", None)
    model = model_hash(fitted) if V is None else V.once(model_hash, fitted, key=fitted)
    return Provenance(type(fitted).__name__, model, __version__, estimand, level, groups)


def assumed_drift(drift: Drift, *, is_earlier: bool = False) -> str:
    """Return the assumption about a common offset of all groups."""
    seen = f"found from {drift.n_groups:,} groups and {drift.n_labelled:,} labels, p = {drift.p_value:.2g}"
    offset = "the common offset of an earlier table" if is_earlier else "a common offset"
    if drift.is_stated:
        return f"{offset} of stated strength {drift.strengths[0]:g}, {seen}"
    return f"{offset}, {seen}"


def fitted_model(quantifier: FittedQuantifier) -> FittedQuantifier:
    """Return the fitted model behind one with a stated group effect."""
    found: FittedQuantifier = getattr(quantifier, "answers_for_", quantifier)
    return found


def _predictor(quantifier: FittedQuantifier) -> Any:
    """Return the quantifier that has the model of groups, if there is one."""
    return getattr(quantifier, "predictor_", None) or quantifier


def model_hash(quantifier: FittedQuantifier) -> str:
    """Return a hash of a fitted quantifier, in hexadecimal digits."""
    simple = {
        name: value
        for name, value in sorted(getattr(quantifier, "get_params", dict)().items())
        if value is None or isinstance(value, bool | int | float | str)
    }
    found = hashlib.sha256(repr((type(quantifier).__name__, simple, quantifier.classes_.tolist())).encode())
    arrays = [quantifier.p_train_, scale_of(quantifier).numbers]
    if has_held_out(quantifier):
        V = quantifier.held_out_
        arrays += [V.S, V.codes.astype(np.int64)]
        arrays += [one for one in (V.group_covariance, V.width_correction) if one is not None]
        arrays += [] if V.weights is None else [V.weights.values]
    groups = getattr(_predictor(quantifier), "group_model_", None)
    if groups is not None:
        arrays += [groups.mu, groups.A, groups.D, groups.K]
        arrays += [] if groups.of_parts is None else [groups.of_parts]
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:DIGITS].upper()
