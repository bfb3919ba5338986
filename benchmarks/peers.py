"""Other quantification packages behind one call, for the benchmark.

Every :class:`Peer` is one method of one package in one variant, under *our* name of the method. All peers get
the same held-out scores V and the same pool scores T: no classifier is fitted, and only the calls that turn
one sample into one estimate are timed. The work that a package does once (its ``fit``), the selection of the
sample's rows and conversions that depend on the pool alone (hard votes, cumulated scores) are outside the
clock. This favours the peers.

How the packages are fed:

* QuaPy: a classifier that hands its input through (:class:`_GivenScores`, ``fit_classifier=False``,
  ``val_split=None``), then ``aggregate`` on scores or votes.
* quantificationlib: ``fit(..., predictions_train=V)`` and ``predict(None, predictions_test=S)``, its own
  entrance for given predictions. It imports ``six`` without declaring it: install that too.
* mlquantify: the same pass-through classifier with ``estimator_fitted=True``, then ``predict``; CC and PCC by
  ``aggregate``.

Left out: methods that are binary and reach several classes by one-versus-rest (mlquantify's ACC, HDy and HDx,
QuaPy's HDy), and those that must train their own classifiers (ordinal trees).

What the peers solve
--------------------
"The definition" is the problem that ordinalq solves. Whether a peer solves it was found out on 100 samples of
the workload *fried* (n = 10 classes, samples of 1000 items, forest of 100 trees) with SLSQP (PDF: a linear
program) as the reference. The comments at :data:`PEERS` give the largest *excess* over the samples,

    excess = (L(p) - L*) / (L(uniform) - L*),

the part of the possible descent that the peer missed, L being the loss of the definition and L* its minimum.
A plain ratio L / L* would say nothing: least squares often reach L* = 0. The *own excess* is the same with the
loss that the peer minimizes. In that trial two classes were never voted for, so that M of ACC had rank 8 and
many p attained the same minimum. The forest of the benchmark votes for all classes: its M is regular, and AC of
quantificationlib, which solved the singular problem exactly, is far from the minimum there. Hence what
bench_methods.py measures decides, not these comments.

The versions were QuaPy 0.2.3, quantificationlib 0.1.2, mlquantify 0.5.1.
"""

import contextlib
import importlib
import importlib.metadata
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

__all__ = ["N_BINS", "PDF_BINS", "PEERS", "SLD_TAU", "TAU", "Peer", "available", "peer_versions"]

# Parameters that ordinalq must be given too, for a fair comparison.
N_BINS = 8  # bins per class (HDy) or feature (HDx): the default of QuaPy and quantificationlib
PDF_BINS = 5  # bins of PDF per step between classes, PDF_BINS (n - 1) in total
TAU = 1e-3  # OACC and OPACC: weight of (1/2) ||C_1 p||^2 next to the squares
SLD_TAU = 1e-2  # regularized SLD: weight of (1/2) ||C_1 p||^2 next to the mean negative log-likelihood


@dataclass(frozen=True)
class Peer:
    """One method of another package in one variant.

    Parameters
    ----------
    package : str
        Name of the distribution, as in ``importlib.metadata``.
    method : str
        ordinalq's name of the method.
    run : callable
        ``run(V, y, T, index, X_train=None, X_test=None) -> (P_hat, seconds)`` with held-out scores V (N, n),
        their labels y (N,) in 0..n-1, pool scores T (M, n) and samples index (B, m). HDx needs the features
        X_train (N, d) and X_test (M, d). P_hat is (B, n), with a row of NaN where the peer failed; seconds is
        (B,), the time of each sample alone.
    note : str
        The variant, and how its problem relates to the definition.
    """

    package: str
    method: str
    run: Callable[..., tuple[np.ndarray, np.ndarray]]
    note: str


# --- what the peers are given -------------------------------------------------------------------------------


def _posteriors(V, T):
    """The scores as they are."""
    return V, T


def _votes(V, T):
    """Hard predictions, ties to the lowest class."""
    return V.argmax(axis=1), T.argmax(axis=1)


def _cumulated(V, T):
    """Cumulated scores: the L1 distance of two of them is the match distance of the scores."""
    return V.cumsum(axis=1), T.cumsum(axis=1)


def _stretched(V, T):
    """Scores such that min..max over V is 0..1 per class: bins on [0, 1] are then those of the definition."""
    low, high = V.min(axis=0), V.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return (V - low) / width, np.clip((T - low) / width, 0.0, 1.0)


class _GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose input is its output: rows of scores."""

    def __init__(self, n_classes=2):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X, y):
        """Do nothing: the scores are given."""
        return self

    def predict_proba(self, X):
        """Return X (m, n) itself."""
        return np.asarray(X)

    def predict(self, X):
        """Votes of the rows of X (m, n)."""
        return np.asarray(X).argmax(axis=1)


# --- running and timing -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _quiet():
    """Keep warnings and output of a peer away from the benchmark's own."""
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def _per_sample(quantify, pool, index, n):
    """Estimate and time every sample; a failure is a row of NaN, unless all samples fail."""
    P_hat = np.full((len(index), n), np.nan)
    seconds = np.zeros(len(index))
    error = None
    for b, rows in enumerate(index):
        sample, p = pool[rows], None
        start = time.process_time()
        try:
            p = quantify(sample)
        except Exception as e:  # peers raise all sorts of errors on hard samples
            error = e
        seconds[b] = time.process_time() - start
        if p is not None:  # some peers answer None instead of raising
            P_hat[b] = np.asarray(p, float).reshape(n)
    if len(index) > 0 and np.isnan(P_hat).all():
        raise RuntimeError(f"The peer failed on all {len(index)} samples.") from error
    return P_hat, seconds


def _on_scores(prepare, feed=_posteriors):
    """``run`` of a peer on scores; ``prepare(V, y, n)`` fits it and returns its function of one sample."""

    def run(V, y, T, index, X_train=None, X_test=None):  # one signature for all peers
        n = V.shape[1]
        train, pool = feed(np.asarray(V, float), np.asarray(T, float))
        with _quiet():
            return _per_sample(prepare(train, np.asarray(y), n), pool, np.asarray(index), n)

    return run


def _on_features(prepare):
    """``run`` of a peer on raw features; ``prepare(X_train, y, n)`` as in :func:`_on_scores`."""

    def run(V, y, T, index, X_train=None, X_test=None):  # one signature for all peers
        if X_train is None or X_test is None:
            raise ValueError("HDx needs the features: pass X_train and X_test.")
        n = V.shape[1]
        with _quiet():
            quantify = prepare(np.asarray(X_train, float), np.asarray(y), n)
            return _per_sample(quantify, np.asarray(X_test, float), np.asarray(index), n)

    return run


# --- QuaPy --------------------------------------------------------------------------------------------------


def _quapy(name, feed=_posteriors, **options):
    """``run`` of an aggregative quantifier of QuaPy."""

    def prepare(train, y, n):
        quantifier = getattr(importlib.import_module("quapy.method.aggregative"), name)
        held_out = {} if name == "CC" else {"val_split": None}  # CC learns nothing
        q = quantifier(_GivenScores(n), fit_classifier=False, **held_out, **options)
        q.fit(np.eye(n)[train] if feed is _votes else train, y)
        return q.aggregate

    return _on_scores(prepare, feed)


def _limited(run, max_iter):
    """The same ``run`` under another limit of QuaPy's EM, which is an attribute of its class."""

    def limited(*args, **kwargs):
        with _quiet():
            EMQ = importlib.import_module("quapy.method.aggregative").EMQ
        with mock.patch.object(EMQ, "MAX_ITER", max_iter):
            return run(*args, **kwargs)

    return limited


def _quapy_em(epsilon=1e-4):
    """``run`` of QuaPy's EMQ."""

    def prepare(train, y, n):
        EMQ = importlib.import_module("quapy.method.aggregative").EMQ
        q = EMQ(_GivenScores(n), fit_classifier=False).fit(train, y)
        return lambda S: q.aggregate(S, epsilon=epsilon)

    return _on_scores(prepare)


def _quapy_ibu():
    """``run`` of IBU without smoothing, written as QuaPy's EM routine on the posteriors of the votes.

    With a uniform prior the posterior of class i given the vote j is M_ji / sum_l M_jl; EM on these
    posteriors is the update of IBU, item by item instead of count by count.
    """

    def prepare(train, y, n):
        EMQ = importlib.import_module("quapy.method.aggregative").EMQ
        M = np.stack([np.bincount(train[y == i], minlength=n) / (y == i).sum() for i in range(n)], axis=1)
        mass = M.sum(axis=1, keepdims=True)
        posteriors = np.divide(M, mass, out=np.full((n, n), 1 / n), where=mass > 0)  # (votes, classes)
        uniform = np.full(n, 1 / n)
        return lambda votes: EMQ.EM(uniform, posteriors[votes], epsilon=0.0)[0]

    return _on_scores(prepare, _votes)


def _quapy_features(**options):
    """``run`` of QuaPy's distribution matching on features."""

    def prepare(X_train, y, n):
        DMx = importlib.import_module("quapy.method.non_aggregative").DMx
        return DMx(**options).fit(X_train, y).predict

    return _on_features(prepare)


# --- quantificationlib --------------------------------------------------------------------------------------


def _quantificationlib(path, feed=_posteriors, **options):
    """``run`` of a quantifier of quantificationlib that takes given predictions; path is "module.Class"."""

    def prepare(train, y, n):
        module, name = path.rsplit(".", 1)
        q = getattr(importlib.import_module(f"quantificationlib.{module}"), name)(**options)
        q.fit(train, y, predictions_train=train)
        return lambda S: q.predict(None, predictions_test=S)

    return _on_scores(prepare, feed)


def _quantificationlib_features(path, **options):
    """``run`` of a quantifier of quantificationlib on features."""

    def prepare(X_train, y, n):
        module, name = path.rsplit(".", 1)
        q = getattr(importlib.import_module(f"quantificationlib.{module}"), name)(**options)
        q.fit(X_train, y)
        return q.predict

    return _on_features(prepare)


def _quantificationlib_l2(feed, tau=0.0):
    """``run`` of least squares by the package's public quadratic program, ``solve_l2``.

    The package has no class for this: its PAC answers with the clipped inverse. Stacking sqrt(tau/2) C_1
    under M and zeros under q adds (tau/2) ||C_1 p||^2. The averages q are within the clock.
    """

    def prepare(train, y, n):
        optimization = importlib.import_module("quantificationlib.optimization")
        F = np.eye(n)[train] if feed is _votes else train
        M = np.stack([F[y == i].mean(axis=0) for i in range(n)], axis=1)
        penalty = np.sqrt(tau / 2) * np.diff(np.eye(n), n=2, axis=0) if tau > 0 else np.empty((0, n))
        A = np.vstack([M, penalty])
        program = optimization.compute_l2_param_train(A, np.arange(n))
        zeros = np.zeros(len(penalty))

        def quantify(S):
            q = np.bincount(S, minlength=n) / len(S) if feed is _votes else S.mean(axis=0)
            return optimization.solve_l2(A, np.concatenate([q, zeros])[:, None], *program)

        return quantify

    return _on_scores(prepare, feed)


# --- mlquantify ---------------------------------------------------------------------------------------------


def _as_array(p, n):
    """Prevalences (n,): by its configuration mlquantify returns arrays or dictionaries."""
    return [p[i] for i in range(n)] if isinstance(p, dict) else p


def _mlquantify(path, feed=_posteriors, **options):
    """``run`` of a multi-class quantifier of mlquantify; path is "module.Class"."""

    def prepare(train, y, n):
        module, name = path.rsplit(".", 1)
        quantifier = getattr(importlib.import_module(f"mlquantify.{module}"), name)
        q = quantifier(_GivenScores(n), **options).fit(train, y, estimator_fitted=True)
        return lambda S: _as_array(q.predict(S), n)

    return _on_scores(prepare, feed)


def _mlquantify_counting(name, feed):
    """``run`` of CC or PCC of mlquantify, which need no training."""

    def prepare(train, y, n):
        q = getattr(importlib.import_module("mlquantify.counting"), name)()
        classes = np.arange(n)
        return lambda S: _as_array(q.aggregate(S, classes=classes), n)

    return _on_scores(prepare, feed)


def _mlquantify_em(**options):
    """``run`` of mlquantify's EMQ."""

    def prepare(train, y, n):
        EMQ = importlib.import_module("mlquantify.likelihood").EMQ
        q = EMQ(_GivenScores(n), **options).fit(train, y)
        return lambda S: _as_array(q.predict(S), n)

    return _on_scores(prepare)


def _mlquantify_likelihood(**options):
    """``run`` of mlquantify's maximum likelihood on posteriors, with its penalties tau_0 and tau_1."""

    def prepare(train, y, n):
        compose = importlib.import_module("mlquantify.compose")
        # Not "aggregative": then its predict takes its input for posteriors; with True it asks for a
        # representation of predictions and refuses the plain likelihood.
        q = compose.LikelihoodComposeQuantifier(estimator=_GivenScores(n), aggregative=False, **options)
        q.fit(train, y, estimator_fitted=True)
        return lambda S: _as_array(q.predict(S), n)

    return _on_scores(prepare)


def _mlquantify_features(path, **options):
    """``run`` of a quantifier of mlquantify on features."""

    def prepare(X_train, y, n):
        module, name = path.rsplit(".", 1)
        q = getattr(importlib.import_module(f"mlquantify.{module}"), name)(**options).fit(X_train, y)
        return lambda X: _as_array(q.predict(X), n)

    return _on_features(prepare)


# --- the list -----------------------------------------------------------------------------------------------

_QUAPY = (
    # Exact.
    Peer("quapy", "CC", _quapy("CC", _votes), "exact"),
    Peer("quapy", "PCC", _quapy("PCC"), "exact"),
    # The definition on the simplex, solved loosely: excess 4e-5. Its norm changes nothing then: the answer is on
    # the simplex already.
    Peer("quapy", "ACC", _quapy("ACC", _votes), "solver=minimize: the definition, loosely"),
    # Not the definition: the plain inverse, and CC where M is singular.
    Peer("quapy", "ACC", _quapy("ACC", _votes, solver="exact-cc"), "solver=exact-cc: inverse, else CC"),
    # As ACC, but M is ill-conditioned: excess 1e-4 means up to 0.14 in a component of p.
    Peer("quapy", "PACC", _quapy("PACC"), "solver=minimize: the definition, loosely"),
    # Another problem: the last equation of q = M p is replaced by sum p = 1. Gap 6e-4.
    Peer(
        "quapy",
        "PACC",
        _quapy("PACC", method="invariant-ratio"),
        "solver=minimize, method=invariant-ratio: another problem",
    ),
    # Not the definition: M^-1 q without constraints, brought to the simplex afterwards in three ways. The
    # loss may end above that of the uniform p (excess up to 33, median 0.1 to 0.8).
    Peer("quapy", "PACC", _quapy("PACC", solver="exact-raise"), "solver=exact-raise: inverse, clipped"),
    Peer(
        "quapy",
        "PACC",
        _quapy("PACC", solver="exact-raise", norm="mapsimplex"),
        "solver=exact-raise, norm=mapsimplex: inverse, projected",
    ),
    Peer(
        "quapy",
        "PACC",
        _quapy("PACC", solver="exact-raise", norm="condsoftmax"),
        "solver=exact-raise, norm=condsoftmax: inverse, soft-max",
    ),
    # The loss of the definition (mean of the distances, not of their squares), but bins on [0, 1] instead of
    # min..max over V. One start: on some samples it stops far from the minimum (own excess 0.46, median 4e-6).
    Peer("quapy", "HDy", _quapy("DMy", nbins=N_BINS), "DMy, bins on [0, 1]: other bins, one start"),
    # Stretched scores give the bins of the definition. Gap 0.43, median 2e-6; above 1e-3 in 8 samples of 100.
    Peer(
        "quapy",
        "HDy",
        _quapy("DMy", _stretched, nbins=N_BINS),
        "DMy, stretched scores: the definition, one start",
    ),
    # The definition from one start: excess 2e-3, median 1e-4.
    Peer("quapy", "HDx", _quapy_features(nbins=N_BINS), "DMx: the definition, one start"),
    # The iteration of the definition; stops at a mean change of 1e-4, at most 1000 times.
    Peer("quapy", "SLD", _quapy_em(), "EMQ, default stop (epsilon 1e-4)"),
    # Equal to the definition to rounding.
    Peer(
        "quapy",
        "SLD",
        _limited(_quapy_em(epsilon=0.0), 100),
        "EMQ, exactly 100 iterations: the definition",
    ),
    # Equal to IBU with interpolation=0 to rounding. Built from the package's EM, which has no IBU.
    Peer(
        "quapy",
        "IBU",
        _limited(_quapy_ibu(), 100),
        "EMQ.EM on the votes, exactly 100 iterations: interpolation=0",
    ),
    # The energy distance with the L1 distance of the scores, not the match distance: another problem (excess
    # 0.01), whose minimum is attained exactly. The time is that of the distances of m times N pairs.
    Peer("quapy", "EDy", _quapy("EDy"), "distance=manhattan: another distance"),
    # Cumulated scores make the L1 distance the match distance: the definition, excess 1e-13.
    Peer("quapy", "EDy", _quapy("EDy", _cumulated), "cumulated scores: the definition"),
)

_QUANTIFICATIONLIB = (
    # Exact. Given votes the package fails with a recent NumPy (np.float), hence CC and ACC get scores, and
    # the votes are within the clock (about 30 us).
    Peer("quantificationlib", "CC", _quantificationlib("baselines.cc.CC"), "exact"),
    Peer("quantificationlib", "PCC", _quantificationlib("baselines.cc.PCC"), "exact"),
    # The definition by a quadratic program (excess 5e-12) where M is singular; not so on the benchmark's regular M.
    Peer(
        "quantificationlib",
        "ACC",
        _quantificationlib("baselines.ac.AC", distance="L2"),
        "AC, L2: the definition",
    ),
    # Other losses on the same M and q: Hellinger (the default) and L1, by conic solvers.
    Peer(
        "quantificationlib",
        "ACC",
        _quantificationlib("baselines.ac.AC", distance="HD"),
        "AC, HD: another loss",
    ),
    Peer(
        "quantificationlib",
        "ACC",
        _quantificationlib("baselines.ac.AC", distance="L1"),
        "AC, L1: another loss",
    ),
    # L1 between the cumulated M p and q: what PDF does, on votes.
    Peer(
        "quantificationlib",
        "ACC",
        _quantificationlib("ordinal.ac_ordinal.ACOrdinal"),
        "ACOrdinal, L1 of cumulated: another loss",
    ),
    # The package's program without its classes: the definition, excess 5e-12 and 5e-17, and with the penalty
    # excess 2e-17 and 3e-16.
    Peer(
        "quantificationlib",
        "ACC",
        _quantificationlib_l2(_votes),
        "solve_l2 on our M and q: the definition",
    ),
    Peer(
        "quantificationlib",
        "PACC",
        _quantificationlib_l2(_posteriors),
        "solve_l2 on our M and q: the definition",
    ),
    Peer(
        "quantificationlib",
        "OACC",
        _quantificationlib_l2(_votes, TAU),
        "solve_l2 on our stacked M and q: the definition",
    ),
    Peer(
        "quantificationlib",
        "OPACC",
        _quantificationlib_l2(_posteriors, TAU),
        "solve_l2 on our stacked M and q: the definition",
    ),
    # Not the definition, for any "distance": M^-1 q without constraints, clipped and normalized.
    Peer("quantificationlib", "PACC", _quantificationlib("baselines.ac.PAC"), "PAC: inverse, clipped"),
    # Bins on [0, 1], and the mean of the *squared* distances, which is convex. The conic solver (ECOS) is
    # inaccurate where bins of the sample are empty: own excess 0.03.
    Peer(
        "quantificationlib",
        "HDy",
        _quantificationlib("multiclass.df.HDy", n_bins=N_BINS),
        "bins on [0, 1]: other bins, squared distances",
    ),
    # The bins of the definition, squared distances: excess 0.01 (own excess 4e-3).
    Peer(
        "quantificationlib",
        "HDy",
        _quantificationlib("multiclass.df.HDy", _stretched, n_bins=N_BINS),
        "stretched scores: squared distances",
    ),
    # Squared distances, their minimum attained (own excess 1e-6); excess 0.10.
    Peer(
        "quantificationlib",
        "HDx",
        _quantificationlib_features("multiclass.df.HDX", n_bins=N_BINS),
        "HDX: squared distances",
    ),
    # The iteration of the definition; stops at a mean change of 1e-4, at most 1000 times.
    Peer(
        "quantificationlib",
        "SLD",
        _quantificationlib("multiclass.em.EM"),
        "EM, default stop (epsilon 1e-4)",
    ),
    # Equal to the definition to rounding.
    Peer(
        "quantificationlib",
        "SLD",
        _quantificationlib("multiclass.em.EM", epsilon=0.0, max_iter=100),
        "EM, exactly 100 iterations: the definition",
    ),
    # As QuaPy's EDy, which was adapted from it.
    Peer(
        "quantificationlib",
        "EDy",
        _quantificationlib("multiclass.energy.EDy"),
        "manhattan: another distance",
    ),
    Peer(
        "quantificationlib",
        "EDy",
        _quantificationlib("multiclass.energy.EDy", _cumulated),
        "cumulated scores: the definition",
    ),
    # The definition: excess 6e-9. "EMD" is not among the documented distances, and "L1" returns None.
    Peer(
        "quantificationlib",
        "PDF",
        _quantificationlib("ordinal.pdf.PDFOrdinaly", n_bins=PDF_BINS, distance="EMD"),
        "PDFOrdinaly, EMD: the definition",
    ),
    # Other losses, between the histograms themselves instead of the cumulated ones: squares (the default) and
    # squared Hellinger.
    Peer(
        "quantificationlib",
        "PDF",
        _quantificationlib("ordinal.pdf.PDFOrdinaly", n_bins=PDF_BINS, distance="L2"),
        "PDFOrdinaly, L2: another loss",
    ),
    Peer(
        "quantificationlib",
        "PDF",
        _quantificationlib("ordinal.pdf.PDFOrdinaly", n_bins=PDF_BINS, distance="HD"),
        "PDFOrdinaly, HD: another loss",
    ),
)

_MLQUANTIFY = (
    # Exact.
    Peer("mlquantify", "CC", _mlquantify_counting("CC", _votes), "exact"),
    Peer("mlquantify", "PCC", _mlquantify_counting("PCC", _posteriors), "exact"),
    # The definition, solved loosely: excess 3e-6.
    Peer("mlquantify", "ACC", _mlquantify("counting.GACC"), "GACC: the definition, loosely"),
    # The same on an ill-conditioned M: excess 3e-4, up to 0.15 in a component of p.
    Peer("mlquantify", "PACC", _mlquantify("counting.GPACC"), "GPACC: the definition, loosely"),
    # The bins of the definition (min..max over V), but the mean of the squared distances; their minimum is
    # attained (own excess 2e-9), excess 0.01. The surrogate loss is the same problem.
    Peer("mlquantify", "HDy", _mlquantify("matching.GHDy", bins=N_BINS), "GHDy: squared distances"),
    Peer(
        "mlquantify",
        "HDy",
        _mlquantify("matching.GHDy", bins=N_BINS, loss="hellinger_surrogate"),
        "GHDy, loss=hellinger_surrogate: squared distances",
    ),
    # Likewise: own excess 7e-7, excess 0.10.
    Peer("mlquantify", "HDx", _mlquantify_features("matching.GHDx", bins=N_BINS), "GHDx: squared distances"),
    # The iteration of the definition; stops at a mean change of 1e-4 or after 100.
    Peer("mlquantify", "SLD", _mlquantify_em(), "EMQ, default stop (tol 1e-4)"),
    # Equal to the definition to rounding. tol=0 is refused.
    Peer(
        "mlquantify",
        "SLD",
        _mlquantify_em(tol=1e-300, max_iter=100),
        "EMQ, exactly 100 iterations: the definition",
    ),
    # The maximum of the likelihood itself, which 100 iterations approach (ordinalq: SLD(solver="newton")):
    # own excess 5e-9; with the penalty (ordinalq: SLD with tau) own excess 4e-9.
    Peer(
        "mlquantify",
        "SLD",
        _mlquantify_likelihood(),
        "LikelihoodComposeQuantifier: the maximum likelihood",
    ),
    Peer(
        "mlquantify",
        "SLD",
        _mlquantify_likelihood(tau_1=SLD_TAU),
        "LikelihoodComposeQuantifier, tau_1=SLD_TAU: regularized likelihood",
    ),
    # Another distance, as above; the own minimum is attained.
    Peer("mlquantify", "EDy", _mlquantify("matching.EDy", metric="cityblock"), "cityblock: another distance"),
    # The definition: excess 8e-9.
    Peer(
        "mlquantify",
        "EDy",
        _mlquantify("matching.EDy", _cumulated, metric="cityblock"),
        "cumulated scores: the definition",
    ),
)

PEERS = _QUAPY + _QUANTIFICATIONLIB + _MLQUANTIFY


# --- what is installed --------------------------------------------------------------------------------------

_NEEDS = {
    "quapy": ("quapy.method.aggregative", "quapy.method.non_aggregative"),
    "quantificationlib": ("quantificationlib.multiclass.df", "quantificationlib.ordinal.pdf"),
    "mlquantify": (
        "mlquantify.counting",
        "mlquantify.compose",
        "mlquantify.likelihood",
        "mlquantify.matching",
    ),
}
_NEEDS_TOO = {("quapy", "EDy"): ("quadprog",)}  # optional there


@cache
def _importable(module):
    """Whether the module can be imported with all that it imports itself."""
    with _quiet():
        try:
            importlib.import_module(module)
        except Exception:  # a broken installation is as good as none
            return False
    return True


def available():
    """Peers whose package can be imported here.

    Returns
    -------
    peers : tuple of Peer
        In the order of :data:`PEERS`.
    """
    return tuple(
        peer
        for peer in PEERS
        if all(map(_importable, _NEEDS[peer.package] + _NEEDS_TOO.get((peer.package, peer.method), ())))
    )


def peer_versions():
    """Versions of the packages that can be imported here.

    Returns
    -------
    versions : dict of str to str
        From the name of the package to its version.
    """
    packages = dict.fromkeys(peer.package for peer in available())
    return {package: importlib.metadata.version(package) for package in packages}
