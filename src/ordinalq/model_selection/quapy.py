"""Methods of QuaPy as quantifiers of ordinalq.

They can be used in comparisons, searches and experiments. The other direction needs no code: `fit`, `predict`,
`get_params` and `set_params` are those that QuaPy expects. QuaPy is not imported here. A method with ``aggregate``
learns from the scores of a classifier, any other from features.
"""

from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from ordinalq._utils.validation import Codes, Floats
from ordinalq.inference.model import HeldOut, Traits
from ordinalq.quantifiers.base import Quantifier, check_every_class
from ordinalq.samples.summary import Summary
from ordinalq.solvers.solution import Solution


class QuapyQuantifier(Quantifier):
    """Method of QuaPy that learns from the same held-out scores as all others.

    An aggregative method is given the posteriors of the cross-fitted classifier; its own classifier is not used. Other
    methods are given the features of the items. Each sample is estimated by one call of QuaPy.

    Parameters
    ----------
    method : quapy.method.base.BaseQuantifier
        Unfitted method of QuaPy, such as ``KDEyML(bandwidth=0.1)``. It is copied.
    classifier : classifier, default=None
        Gives the scores, see :class:`ordinalq.CC`.

    Attributes
    ----------
    method_ : quapy.method.base.BaseQuantifier
        The fitted method, with classes 0..n-1.

    Examples
    --------
    ::

        from quapy.method.aggregative import EMQ, KDEyML

        methods = {"SLD": oq.SLD(), "EMQ": QuapyQuantifier(EMQ()), "KDEyML": QuapyQuantifier(KDEyML())}
        print(oq.model_selection.compare_methods(methods, X, y))
    """

    method_: Any

    def __init__(self, method: Any, classifier: Any = None) -> None:
        self.method = method
        self.classifier = classifier

    @property
    def traits(self) -> Traits:
        """Traits of a method that needs the scores, or the features, of all items."""
        kind = "scores" if hasattr(self.method, "aggregate") else "features"
        return Traits(input_kind=kind, uses_sample_means=False)

    def check_parameters(self, n_classes: int) -> None:
        """Raise TypeError if the method is not one of QuaPy."""
        if not all(hasattr(self.method, name) for name in ("fit", "predict", "get_params")):
            raise TypeError(f"method must be a quantifier of QuaPy, for example EMQ(), got {self.method!r}.")

    def learn(self, held_out: HeldOut) -> None:
        """Fit a copy of the method on the held-out scores or features."""
        check_every_class(held_out.codes, self.classes_)
        method = deepcopy(self.method)
        if self.traits.input_kind == "scores":
            given = {"classifier": GivenScores().fit(held_out.S, held_out.codes), "fit_classifier": False}
            known = method.get_params(deep=False)
            method.set_params(**{name: value for name, value in (given | {"val_split": None}).items() if name in known})
        self.method_ = method.fit(held_out.S, held_out.codes)

    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""
        S, samples = summary.scored()
        return Solution.closed_form(np.array([self.method_.predict(S[samples.index(b)]) for b in range(len(samples))]))


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose items are their own posteriors, for methods of QuaPy."""

    def fit(self, S: Any, y: Codes) -> Self:
        """Store the classes of y (N,)."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, S: Any) -> Floats:
        """Return S (N, n)."""
        return np.asarray(S, dtype=np.float64)

    def decision_function(self, S: Any) -> Floats:
        """Return S (N, n)."""
        return self.predict_proba(S)

    def predict(self, S: Any) -> Any:
        """Return the most probable classes (N,)."""
        return self.classes_[np.argmax(S, axis=1)]
