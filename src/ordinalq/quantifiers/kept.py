"""What a fitted quantifier keeps of its training items, for intervals and the fit test."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np

from ordinalq._utils.validation import Array, Codes, Floats
from ordinalq.inference.group_model import effect_on_looks, logits_pay, with_logits
from ordinalq.inference.model import Facts, ScoreChecks
from ordinalq.samples.samples import OneHot
from ordinalq.samples.weights import Weights

T = TypeVar("T")


class Kept(Facts):
    """Held-out items and, of their groups, a covariance.

    Attributes
    ----------
    held_out_ : tuple (S, codes)
        V: out-of-sample scores (N_V, n) of the training items, or their features, and their codes 0..n-1 (N_V,).
    held_out_weights_ : Weights or None
        Weights of these items.
    group_covariance_ : ndarray (d, d) or None
        D: covariance of the mean representation of the items of a class between groups; None without training groups.
    check_covariance_ : ndarray (g, g) or None
        The same of the functions of the fit test.
    width_correction_ : ndarray (2, 2, 2n + 1) or None
        What intervals had to be corrected by on the training groups, see `ordinalq.inference.intervals`.
    """

    classes_: Array
    held_out_: tuple[Floats, Codes]
    group_covariance_: Floats | None
    check_covariance_: Floats | None
    held_out_weights_: Weights | None = None
    width_correction_: Floats | None

    def embed(self, S: Floats) -> Floats | OneHot:
        """Return the representation f of items with valid scores S (N, n), (N, d)."""
        return S

    def keep(self, S: Floats, codes: Codes, groups: Codes | None = None, weights: Weights | None = None) -> None:
        """Keep V, the items (N, ...) with an out-of-sample score, for intervals and the fit test.

        From their groups (N,) only the covariance of the effect on the mean representation is kept, and how far
        intervals were off.
        """
        self.forget()
        self.held_out_, self.held_out_weights_ = (S, codes), weights
        self.group_covariance_ = self.check_covariance_ = self.width_correction_ = None
        if groups is not None:
            functions = self.checks()
            self.group_covariance_ = effect_on_looks(self.group_features(S), codes, groups, weights)
            if functions is not None:
                self.check_covariance_ = effect_on_looks(functions.values(S), codes, groups, weights)

    def once(self, derive: Callable[[Self], T]) -> T:
        """Return derive(self), computed at the first call: for what follows from V and the representation alone."""
        found = self.__dict__.setdefault("_derived", {})
        if derive not in found:
            found[derive] = derive(self)
        derived: T = found[derive]
        return derived

    def forget(self) -> None:
        """Forget what was derived from other held-out items."""
        self.__dict__.pop("_derived", None)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of copies and files what can be derived again."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_derived"}

    @property
    def knows_groups(self) -> bool:
        """Whether it has learned how groups differ."""
        return getattr(self, "group_covariance_", None) is not None

    def group_features(self, S: Floats) -> Floats:
        """Return the function of items (N, d) whose group effect the replicates need: the representation."""
        return np.asarray(self.embed(S), dtype=np.float64)

    def class_predictions(self, S: Floats) -> Floats:
        """Return g (N, n), the best linear prediction of the one-hot class of items from what V tells of their looks.

        g = beta' f, with beta by least squares on V; f are the scores, with logits where V can carry them, or the
        representation of features. The entries sum to one and may be negative.
        """
        V, codes = self.held_out_
        if self.on == "features":
            known, new = (np.asarray(self.embed(X), dtype=np.float64) for X in (V, S))
        else:
            size = len(codes) if self.held_out_weights_ is None else self.held_out_weights_.size
            features = with_logits if logits_pay(len(self.classes_), size) else np.asarray
            known, new = features(V), features(S)
        E = np.eye(len(self.classes_))[codes]
        if self.held_out_weights_ is not None:
            root = np.sqrt(self.held_out_weights_.values)[:, None]
            known, E = known * root, E * root
        beta = np.linalg.lstsq(known, E, rcond=None)[0]
        return np.asarray(new @ beta)

    def checks(self) -> ScoreChecks | None:
        """Return the functions of the fit test; None for methods on features, whose representation serves as such."""
        return self.once(_score_checks) if self.on == "scores" else None


def _score_checks(kept: Kept) -> ScoreChecks:
    return ScoreChecks.of(*kept.held_out_, kept.held_out_weights_)
