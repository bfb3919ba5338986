"""AML: adjusted maximum likelihood, with priors that say what is expected of a sample."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ordinalq._utils.validation import Codes, Floats, check_choice
from ordinalq.classifiers.calibration import Calibration
from ordinalq.classifiers.cross_fitting import unscored
from ordinalq.inference.group_model import multinomial
from ordinalq.inference.model import ClosedForm
from ordinalq.quantifiers.group_blp import BLP
from ordinalq.quantifiers.intervals import normal_bounds
from ordinalq.quantifiers.linear import Method, check_every_class, class_distribution
from ordinalq.quantifiers.moments import LabelledRatios, error_shares
from ordinalq.quantifiers.posterior import Observed, Posterior, first_shares, posterior, pull
from ordinalq.quantifiers.priors import Prior, check_prior
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights
from ordinalq.simplex import clean
from ordinalq.solvers.objectives import MixtureObjective
from ordinalq.solvers.solution import Solution

INSTRUMENTS = ("sample", "uniform", "training")
# Samples that are treated in one pass.
PASS = 512


class AML(Method):
    """Adjusted maximum likelihood: the score function of the likelihood, with class means measured on held-out items.

    Density ratios r(x) come from the posteriors, calibrated so that all classes count alike. Their likelihood has the
    gradient mean f with f(x) = r(x) / (r(x).p0), which is as precise a summary of the items as there is, for shares
    near p0. Its class means M and its covariance Omega are measured, so that errors of the posteriors do no harm; then
    p = argmin 1/2 (q - M p)' Omega^-1 (q - M p) - ln prior(p) over the simplex. Since M has errors, too, p0 is not the
    first estimate of p itself: it has as much of each class as that class contributes to Omega. See docs/methods.md.

    With training groups, ``fit(X, y, groups=...)``, Omega includes the group effect D and the prior is learned from the
    groups: that is :class:`BLP`, whose f, the posteriors, equals the instrument p0 = p_train up to units.

    Parameters
    ----------
    classifier : classifier, default=None
        Gives the posteriors, see :class:`CC`.
    prior : {"any", "uniform", "smooth", "training"} or array-like (n,), default="any"
        What is expected of the shares. "uniform": anything; "smooth": neighbouring classes have similar shares;
        "training": the shares of the training items; a distribution: these shares. "any" weighs the three by how well
        they predict the sample; intervals, and estimates of the population, then use "uniform".
    strength : float, default=None
        Number of items that the training distribution, or a given one, is worth as a prior. None means the number of
        training items with "training", and 1000 otherwise.
    instrument : {"sample", "uniform", "training"}, default="sample"
        p0: made for each sample from a first estimate, which needs the scores of all its items; or one p0 for all
        samples, which loses a few per cent but needs only means.
    group_effect : float, default=None
        Without training groups: a stated effect of groups that are known to differ, see :class:`BLP`.

    Attributes
    ----------
    calibration_ : Calibration
    strength_ : float or None
        Number of items that the expected distribution is worth, if not the usual 1000.
    counts_, trust_ : ndarray (n,)
        Held-out items of each class, and how far its mean rests on them alone.
    M_ : ndarray (n, n)
        Class means of f for the instrument of all samples (of their first estimate).
    covariances_ : ndarray (n, n, n)
        Covariances of f within the classes for that instrument.
    predictor_ : BLP or None
        What makes the estimates if there are training groups or a stated effect.
    """

    paper_name = ""

    def __init__(
        self,
        classifier: Any = None,
        *,
        prior: Any = "any",
        strength: float | None = None,
        instrument: str = "sample",
        group_effect: float | None = None,
    ) -> None:
        self.classifier = classifier
        self.prior = prior
        self.strength = strength
        self.instrument = instrument
        self.group_effect = group_effect

    @property
    def on_means(self) -> bool:  # type: ignore[override]
        """Whether means suffice: with an instrument that all samples share."""
        return self.instrument != "sample" or getattr(self, "predictor_", None) is not None

    @property
    def uses_labels(self) -> bool:  # type: ignore[override]
        """Whether labels of a sample enter: into the model of groups, if there is one."""
        return getattr(self, "predictor_", None) is not None

    def check_parameters(self, n_classes: int) -> None:
        """Refuse parameters out of range."""
        check_choice("instrument", self.instrument, INSTRUMENTS)
        check_prior(self.prior, self.strength, n_classes)
        BLP(group_effect=self.group_effect).check_parameters(n_classes)

    def learn(self, S: Floats, codes: Codes, weights: Weights | None = None) -> None:
        """Fit the calibration and the class means for a common instrument."""
        self.p_train_ = class_distribution(codes, len(self.classes_), weights)
        counted = self.strength is None and isinstance(self.prior, str) and self.prior == "training"
        n_items = float(len(codes)) if weights is None else weights.size
        self.strength_ = n_items if counted else self.strength
        scored = ~unscored(S)
        S, codes, weights = S[scored], codes[scored], None if weights is None else weights.take(scored)
        check_every_class(codes, self.classes_)
        self.calibration_ = Calibration("bcts", balanced=True).fit(S, codes, weights)
        labelled = LabelledRatios(self._ratios(S), codes, weights)
        self.counts_, self.trust_ = labelled.counts, labelled.trust
        self.M_, self.covariances_ = labelled.at(self._common())

    def _ratios(self, S: Floats) -> Floats:
        """Return density ratios r of items with scores S (N, n), (N, n)."""
        return self.calibration_.transform(S)

    def _common(self) -> Floats:
        """Return the instrument that all samples share, at first or for good."""
        n = len(self.classes_)
        return self.p_train_ if self.instrument == "training" else np.full(n, 1 / n)

    def embed(self, S: Floats) -> Floats:
        """Return f of items with scores S (N, n) for the common instrument, (N, n)."""
        if self.predictor_ is not None:
            return self.predictor_.embed(S)
        R = self._ratios(S)
        return np.asarray(R / (R @ self._common())[:, None])

    def keep(self, S: Floats, codes: Codes, groups: Codes | None = None, weights: Weights | None = None) -> None:
        """Keep V, and learn from its groups."""
        self.predictor_: BLP | None = None
        super().keep(S, codes, None, weights)
        if groups is not None or self.group_effect is not None:
            predictor = BLP(group_effect=self.group_effect)
            predictor.classes_ = self.classes_
            predictor.learn(S, codes, weights)
            predictor.keep(S, codes, groups, weights)
            del predictor.held_out_, predictor.held_out_weights_  # kept once, here
            self.predictor_ = predictor

    def solve(self, summary: Summary) -> Solution:
        """Return the estimates of B summarized samples."""
        if self.predictor_ is not None:
            return self.predictor_.solve(summary)
        return Solution.concatenate([found.solution for found in self._posteriors(summary, "sample", self.prior)])

    def closed_form(self, summary: Summary, level: float, of: str) -> ClosedForm:
        """Return bounds and covariances by the curvature of likelihood and prior, and the error by the common M.

        Bounds take nothing for granted that was not stated: with the prior "any" they are those of "uniform". A sample
        that looks like the training items is likely, not certain, to be like them. And if shares of populations were
        drawn to those of the training items, so would be the differences between them.
        """
        if self.predictor_ is not None:
            return self.predictor_.closed_form(summary, level, of)
        stated = "uniform" if isinstance(self.prior, str) and self.prior == "any" else self.prior
        found = list(self._posteriors(summary, of, stated))
        P, E = (np.concatenate(parts) for parts in zip(*((f.solution.p, f.covariances()) for f in found), strict=True))
        shared = np.concatenate(list(_shared(self, found, summary.sizes)))
        bounds = normal_bounds(P, E, summary.sizes, level, of)
        return ClosedForm(bounds, E, shared, None if of == "sample" else P)

    def response_matrix(self) -> Floats | None:
        """Return M for the common instrument."""
        return self.M_ if self.predictor_ is None else self.predictor_.response_matrix()

    def verdicts(self, summary: Summary) -> npt.NDArray[np.str_] | None:
        """Return which samples are unlike the training groups, if there were any."""
        return super().verdicts(summary) if self.predictor_ is None else self.predictor_.verdicts(summary)

    @property
    def knows_groups(self) -> bool:
        """Whether there were training groups."""
        return self.predictor_ is not None and self.predictor_.knows_groups

    def _posteriors(self, summary: Summary, of: str, prior: Any) -> Iterator[Posterior]:
        """Yield the posteriors of successive samples."""
        expected = Prior.of(prior, self.p_train_, self.strength_)
        for seen, P, sizes in self._observed(summary, expected):
            yield posterior(seen, expected, sizes, P, of=of)

    def _observed(self, summary: Summary, expected: Prior) -> Iterator[tuple[Observed, Floats, Floats]]:
        """Yield what is seen of successive samples, near which shares (B, n) they are, and their sizes (B,)."""
        if self.on_means:
            Q = summary.means
        else:
            S, samples = summary.scored()
            labelled = LabelledRatios(self._ratios(self.held_out_[0]), self.held_out_[1], self.held_out_weights_)
            mixture, Q = MixtureObjective(self._ratios(S), samples), samples.average(self.embed(S))
        for start in range(0, len(summary), PASS):
            rows = np.arange(start, min(start + PASS, len(summary)))
            sizes = summary.sizes[rows]
            P = self._first(Q[rows], sizes)
            seen = self._at_common(Q[rows], sizes, P)
            if not self.on_means:
                P = _positive(posterior(seen, expected, sizes, P).solution.p, sizes)
                shares = error_shares(P, sizes, self.counts_, self.trust_)
                P0, q = shares / shares.sum(axis=1, keepdims=True), np.empty_like(P)
                for block in mixture.blocks(rows):
                    q[block.rows] = block.weighted_ratios(P0[block.rows])
                seen = Observed(q, *labelled.at_each(P0, shares), P0)
            yield seen, P, sizes

    def _first(self, Q: Floats, sizes: Floats) -> Floats:
        """Return shares (B, n) for instruments and covariances, by means Q (B, n) of the common f alone."""
        P = np.empty_like(Q)
        # Samples of similar sizes are treated alike.
        exponents = np.log2(sizes).round()
        p0, A = self._common(), Prior.of("uniform", self.p_train_).covariances()[0]
        for exponent in np.unique(exponents):
            rows, size = exponents == exponent, np.array([2.0**exponent])
            a = error_shares(p0[None], size, self.counts_, self.trust_)[0]
            # The shares of the sample vary by its items, too.
            spread = A + multinomial(np.full(len(p0), 1 / len(p0))) / size
            P[rows] = first_shares(Q[rows], self.M_, np.tensordot(a, self.covariances_, 1), spread)
        return _positive(P, sizes)

    def _at_common(self, Q: Floats, sizes: Floats, P: Floats) -> Observed:
        """Return what is seen by means Q (B, n) of the common f; P (B, n) are the shares as far as known."""
        Omega = np.tensordot(error_shares(P, sizes, self.counts_, self.trust_), self.covariances_, 1)
        return Observed(Q, np.broadcast_to(self.M_, Omega.shape), Omega, np.broadcast_to(self._common(), Q.shape))


def _positive(P: Floats, sizes: Floats) -> Floats:
    """Return shares (B, n) that rule out no class of samples of N items (B,): each has half an item."""
    return clean(np.maximum(P, 0.5 / sizes[:, None]))


def _shared(method: AML, found: list[Posterior], sizes: Floats) -> Iterator[npt.NDArray[np.float32]]:
    """Yield what errors of M do to the shares of successive samples of N items (B,), as factors (b, n, n^2).

    Column i of M errs by delta_i with covariance lambda_i C_i / n_i, and q - M p by -sum_i p_i delta_i. The common
    instrument stands for that of each sample: both see the same labelled items, nearly alike.
    """
    values, vectors = np.linalg.eigh(method.covariances_ * (method.trust_ / method.counts_)[:, None, None])
    roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    for one, N in zip(found, np.split(sizes, np.cumsum([len(f.solution.p) for f in found])[:-1]), strict=True):
        P = clean(one.solution.p)
        D = np.einsum("bi,ijk->bjik", P, roots).reshape(*P.shape, -1)
        yield one.moved(pull(method._at_common(P, N, P), N, P, D)).astype(np.float32)
