"""Mistakes of the caller of a method: one clear error with the value and the expected values."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from seeds import generator
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import ordinalq as oq
from ordinalq.losses import Energy, Hellinger, LeastSquares, MatchDistance, Poisson
from ordinalq.regularizers import Entropy, LogTikhonov, Tikhonov
from ordinalq.representations import HardVotes, Histograms, MeanDistances, Partition, RankHistogram
from ordinalq.solvers.l1 import L1Solver
from ordinalq.solvers.newton import NewtonSolver

RNG = generator()
X = RNG.random((200, 3))
Y = np.digitize(X[:, 0] + 0.1 * RNG.normal(size=200), [0.2, 0.4, 0.6, 0.8])
S = RNG.dirichlet(np.ones(5), 200) * 0.6 + 0.4 * np.eye(5)[Y]
M = np.array([[0.8, 0.1, 0.0], [0.2, 0.8, 0.3], [0.0, 0.1, 0.7]])
Q = M @ [0.2, 0.3, 0.5]
NB = oq.classifiers.CrossFitted(GaussianNB(), cv=2)


def composed(*parts):
    return oq.ComposedQuantifier(*parts, classifier=NB)


def fitted(method=oq.ACC):
    return method(NB).fit(X, Y)


def scores(row, values):
    """Return the scores with other values in some rows."""
    changed = S.copy()
    changed[row] = values
    return changed


def check(cases):
    """Parametrize a test with (call, message) or (call, message, mark)."""
    return pytest.mark.parametrize(
        ("call", "message"),
        [pytest.param(call, message, id=message, marks=mark) for call, message, *mark in cases],
    )


PARAMETERS = [
    (lambda: oq.OACC(NB, tau=-1).fit(X, Y), "tau must be a finite number >= 0, got -1"),
    (lambda: oq.OPACC(NB, tau=np.nan).fit(X, Y), "tau must be a finite number >= 0, got nan"),
    (lambda: oq.RUN(NB, tau=np.inf).fit(X, Y), "tau must be a finite number >= 0, got inf"),
    (lambda: oq.OEDy().set_params(tau=-0.5).fit_scores(S, Y), "tau must be a finite number >= 0, got -0.5"),
    (lambda: composed(HardVotes(), Poisson(), Tikhonov(-2)).fit(X, Y), "tau must be a finite number >= 0, got -2"),
    (lambda: oq.OHDx(order=-1).fit(X, Y), "order must be an integer >= 0, got -1"),
    (lambda: oq.OPDF(NB, order=4).fit(X, Y), "order must be at most n - 2 = 3 for 5 classes, got 4"),
    (lambda: oq.OACC(NB, centre=[0.2, 0.3, 0.5]).fit(X, Y), r"centre must be a vector of 5 numbers, got \[0.2"),
    (lambda: oq.OACC(NB, centre=[1, 2, np.nan, 4, 5]).fit(X, Y), r"centre must be finite, got \[1.0, 2.0, nan"),
    (lambda: oq.RUN(NB, centre=np.eye(5)).fit(X, Y), "centre must be a vector of 5 numbers"),
    (lambda: composed(RankHistogram(), MatchDistance(), Entropy(0.1)).fit(X, Y), "has kinks and needs Tikhonov"),
    (lambda: composed(HardVotes(), Poisson(), Entropy(1.0, centre=[1, 0, 1, 1, 1])).fit(X, Y), "5 positive numbers"),
    (lambda: composed(HardVotes(), Poisson(), Entropy(-1.0)).fit(X, Y), "tau must be"),
    (lambda: oq.RUN(NB, acceptance=[1, 2]).fit(X, Y), r"acceptance must be 5 numbers in .* got \[1, 2\]"),
    (lambda: oq.RUN(NB, acceptance=[1, 1, 1, 1, -1]).fit(X, Y), r"acceptance must be 5 numbers in .*-1\]"),
    (lambda: oq.RUN(NB, acceptance=[1, 1, 0, 1, 1]).fit(X, Y), "acceptance must be 5 numbers in"),
    (lambda: oq.RUN(NB, acceptance=[1] * 5, centre=[0.2] * 5).fit(X, Y), "centre must be None with acceptance"),
    (lambda: composed(HardVotes(), Poisson(), LogTikhonov(1.0, acceptance=[1])).fit(X, Y), "acceptance must have at"),
    (lambda: oq.HDx(n_bins=1).fit(X, Y), "n_bins must be an integer >= 2, got 1"),
    (lambda: oq.HDy(NB, n_bins=0).fit(X, Y), "n_bins must be an integer >= 2, got 0"),
    (lambda: oq.PDF(NB, n_bins=-3).fit(X, Y), "n_bins must be an integer >= 2, got -3"),
    (lambda: oq.EDy(NB, distance="cosine").fit(X, Y), "distance must be one of 'md', 'euclidean', got 'cosine'"),
    (lambda: oq.EDy(NB, distance="l1").fit(X, Y), "must be one of 'md', 'euclidean', got 'l1'"),
    (lambda: composed(MeanDistances(on="features"), Energy()).fit(X, Y), "metric must be 'euclidean' with on='feature"),
    (lambda: composed(Histograms(on="pixels"), Hellinger()).fit(X, Y), "on must be one of 'scores', 'features', got"),
    (lambda: composed(RankHistogram(span="all"), MatchDistance()).fit(X, Y), "span must be one of 'classes', 'data'"),
    (lambda: composed(HardVotes(), LeastSquares("huber")).fit(X, Y), "weights must be .*'poisson', got 'huber'"),
    (lambda: composed(Histograms(), Hellinger(0.0)).fit(X, Y), "smoothing must be a finite number > 0, got 0.0"),
    (lambda: composed(Partition(1), Poisson()).fit(X, Y), "max_leaf_nodes must be an integer >= 2, got 1"),
    (lambda: composed(Partition(fit_fraction=0), Poisson()).fit(X, Y), r"fit_fraction must be a number in \(0, 1"),
    (lambda: composed(Partition(fit_fraction=1.0), Poisson()).fit(X, Y), "fit_fraction must be .*got 1.0"),
    (
        lambda: composed(Partition(), Poisson()).fit(X, np.where(np.arange(200) == 0, 9, Y)),
        "class number 6 has a single item, but Partition needs two of every class",
    ),
    (lambda: composed(Histograms(), Energy()).fit(X, Y), "Energy works only with MeanDistances"),
    (lambda: oq.ACC(NB, solver="fast").fit(X, Y).predict(X), "solver must be one of 'quadratic', .* got 'fast'"),
    (lambda: oq.ACC(NB, solver="fast").fit(X, Y), "solver must be one of 'quadratic', .* got 'fast'"),
    (lambda: oq.RUN(NB, solver=NewtonSolver(max_iter=0)).fit(X, Y).predict(X), "max_iter must be an integer >= 1"),
    (lambda: oq.RUN(NB, solver=NewtonSolver(tol=-1.0)).fit(X, Y).predict(X), "tol must be a finite number >= 0"),
    (lambda: oq.PDF(NB, solver=L1Solver(max_iter=0)).fit(X, Y).predict(X), "max_iter must be an integer >= 1, got 0"),
    (lambda: oq.PACC(oq.classifiers.CrossFitted(GaussianNB(), cv=1)).fit(X, Y), "cv must be an integer >= 2, got 1"),
    (lambda: oq.classifiers.CrossFitted(GaussianNB(), cv="ten").fit(X, Y), "(?i)`?cv`? .*got ten"),
    (
        lambda: oq.classifiers.CrossFitted(GaussianNB()).fit(X[:1], [1]),
        "at least two items, so that one can be held out, got 1",
    ),
    (lambda: oq.classifiers.CrossFitted(GaussianNB()).fit(X, Y[:10]), r"inconsistent numbers of samples: \[200, 10\]"),
    (lambda: oq.classifiers.CrossFitted(GaussianNB()).fit(X[:0], Y[:0]), "y must"),
    (
        lambda: oq.PACC(RandomForestClassifier(1, oob_score=True, random_state=0)).fit(X, Y),
        "has no out-of-bag score for .* of its items, more than 10%",
    ),
]
PARAMETER_TYPES = [
    (lambda: oq.OACC(NB, tau="1").fit(X, Y), "tau must be a finite number >= 0, got '1'"),
    (lambda: oq.OACC(NB, tau=None).fit(X, Y), "tau must be a finite number >= 0, got None"),
    (lambda: oq.OACC(NB, tau=True).fit(X, Y), "tau must be a finite number >= 0, got True"),
    (lambda: oq.OACC(NB, order=1.0).fit(X, Y), "order must be an integer >= 0, got 1.0"),
    (lambda: oq.OACC(NB, centre="flat").fit(X, Y), "centre must be a vector .* of numbers, got 'flat'"),
    (lambda: oq.RUN(NB, acceptance="high").fit(X, Y), "acceptance must be a vector .* of numbers, got 'high'"),
    (lambda: oq.HDy(NB, n_bins=4.0).fit(X, Y), "n_bins must be an integer >= 2, got 4.0"),
    (lambda: oq.HDx(n_bins=None).fit(X, Y), "n_bins must be an integer >= 2, got None"),
    (lambda: oq.PDF(NB, n_bins="10").fit(X, Y), "n_bins must be an integer >= 2, got '10'"),
    (lambda: oq.ACC(NB, solver=3).fit(X, Y).predict(X), "solver must be None, a name or an object .* got 3"),
    (lambda: oq.RUN(NB, solver="quadratic").fit(X, Y).predict(X), "'quadratic' needs a quadratic obj.*got Poisson"),
    (lambda: oq.HDx(solver="quadratic").fit(X, Y).predict(X), "'quadratic' needs a quadratic obj.*got Hellinger"),
    (lambda: oq.PDF(NB, solver="newton").fit(X, Y).predict(X), "'newton' needs a smooth objective, got MatchDistance"),
    (lambda: oq.ACC(NB, solver="l1").fit(X, Y).predict(X), "'l1' needs a sum of absolute residuals, got LeastSquares"),
    (lambda: oq.classifiers.CrossFitted(GaussianNB(), cv=True).fit(X, Y), "cv must be an integer >= 2, got True"),
    (lambda: oq.ACC("logistic").fit(X, Y), "classifier must be a scikit-learn classifier .*, got 'logistic'"),
    (lambda: oq.ACC(LinearRegression()).fit(X, Y), "classifier must be .* classifier.*, got LinearRegression"),
    (lambda: oq.ACC(StandardScaler()).fit(X, Y), "classifier must be .* classifier.*, got StandardScaler"),
    (lambda: oq.ACC(LogisticRegression).fit(X, Y), "classifier must be .* got <class .*LogisticRegression"),
    (lambda: oq.PACC(LinearSVC()).fit(X, Y), "PACC needs class probabilities, but LinearSVC.* has no predict_proba"),
    (lambda: composed("votes", Poisson()).fit(X, Y), "representation must be .*, got 'votes'"),
    (lambda: composed(HardVotes(), "poisson").fit(X, Y), "loss must be .*, got 'poisson'"),
    (lambda: composed(HardVotes(), Poisson(), 3.0).fit(X, Y), "regularizer must be .*, got 3.0"),
]
DATA = [
    (lambda: oq.ACC(NB).fit(X, Y[:100]), r"inconsistent numbers of samples: \[200, 100\]"),
    (lambda: oq.HDx().fit(X[:100], Y), r"inconsistent numbers of samples: \[100, 200\]"),
    (lambda: oq.ACC(NB).fit(X[:0], Y), "X must have at least one item, got none"),
    (lambda: oq.HDx().fit(X[:0], Y), r"0 sample\(s\) .* while a minimum of 1 is required by HDx"),
    (lambda: fitted().predict(X[:0]), "X must have at least one item, got none"),
    (lambda: fitted().predict(X[:, :2]), "X has 2 features, but ACC is expecting 3 features"),
    (lambda: oq.HDx().fit(X, Y).predict(X[:, :2]), "X has 2 features, but HDx is expecting 3 features"),
    (lambda: oq.HDx().fit(X, Y).predict_scores(X[:, :2], [[0]]), "S must have 3 features, got 2"),
    (lambda: oq.HDx().fit_scores(X, Y).predict_scores(X[:, :2], [[0]]), "S must have 3 features, got 2"),
    (lambda: oq.HDx().fit_scores(X, Y).predict(np.ones((9, 4))), "4 features, .*3 features"),
    (
        lambda: oq.ACC(NB).fit(pd.DataFrame(X, columns=list("abc")), Y).predict(pd.DataFrame(X, columns=list("abd"))),
        "(?s)feature names should match.*Feature names unseen at fit time:.*d.*seen at fit time, yet now missing:.*c",
    ),
    (lambda: oq.HDx().fit(np.where(X < 0.1, np.nan, X), Y), "Input X contains NaN"),
    (lambda: oq.HDx().fit(np.where(X < 0.1, np.inf, X), Y), "Input X contains infinity"),
    (lambda: oq.HDx().fit(X, Y).predict(np.where(X < 0.1, np.nan, X)), "Input X contains NaN"),
    (lambda: oq.HDx().fit([["red", "low", "old"]] * 200, Y), "could not convert string to float: 'red'"),
    (lambda: oq.HDx().fit(X[:, 0], Y), "(?s)Expected 2D array, got 1D array instead.*Reshape"),
    (lambda: oq.ACC(NB).fit(X[:, 0], Y), "(?s)Expected 2D array, got 1D array instead.*Reshape"),
    (lambda: oq.ACC(NB).fit(np.where(X < 0.1, np.nan, X), Y), "Input X contains NaN"),
]
LABELS = [
    (lambda: oq.ACC(NB).fit(X, np.array(list("abcde"))[Y]), r"y has labels without an order \('a', .*give classes="),
    (lambda: oq.ACC().fit_scores(S, np.array(list("abcde"))[Y]), "y has labels without an order"),
    (lambda: oq.ACC(NB).fit(X, pd.Categorical(np.array(list("abcde"))[Y])), "y has labels without an order"),
    (lambda: oq.ACC(NB).fit(X, Y > 9), r"y must have at least 2 ordered classes, got 1 class: \[False\]"),
    (lambda: oq.ACC(NB).fit(X, np.zeros(200)), r"y must have at least 2 ordered classes, got .*\[0.0\]"),
    (lambda: oq.ACC(NB).fit(X, Y, classes=[0]), r"classes must name at least 2 classes, got \[0\]"),
    (lambda: oq.ACC(NB).fit(X, Y, classes=range(6)), r"at least one item of every class, but has none of \[5\]"),
    (lambda: oq.ACC(NB).fit(X, Y, classes=[0, 1, 2, 3]), r"not in classes \[0, 1, 2, 3\]: \[4\]"),
    (lambda: oq.ACC(NB).fit(X, Y, classes=[0, 1, 2, 3, 4, 4]), "classes must be distinct, got"),
    (
        lambda: oq.ACC(NB).fit(X, np.where(np.arange(200) == 7, np.nan, Y)),
        "no missing labels, got 1, the first at item 7",
    ),
    (lambda: oq.ACC(NB).fit(X, np.where(np.arange(200) == 7, np.inf, Y)), "finite labels, got"),
    (lambda: oq.ACC(NB).fit(X, None), "y must be a one-dimensional array of labels, got None"),
    (lambda: oq.ACC(NB).fit(X, np.eye(5)[Y]), r"y must be a one-dimensional array of labels, got shape \(200, 5\)"),
    (lambda: oq.ACC(NB).fit(X[:0], []), "y must hold at least one label, got an empty array"),
]
SCORES = [
    (lambda: oq.ACC().fit_scores(scores(Y == 2, np.nan), Y), "class 2 has no training item with an out-of-sample"),
    (lambda: oq.RUN().fit_scores(scores(Y == 4, 0.0), Y + 1), "class 5 has no training item .* 5 classes"),
    (lambda: oq.ACC().fit_scores(S[:, :4], Y), "S must have one column per class, 5, got 4"),
    (lambda: oq.CC().fit_scores(S[:, :4], Y), "S must have one column per class, 5, got 4"),
    (lambda: oq.ACC().fit_scores(scores(3, [-0.5, 0.5, 0.5, 0.5, 0]), Y), r"must not be negative, got row 3: \[-0.5"),
    (lambda: oq.ACC().fit_scores(scores(3, [0.5, 0.5, 0.5, 0.5, 0]), Y), r"must sum to 1, got row 3: \[0.5 0.5"),
    (lambda: oq.ACC().fit_scores(scores(3, [np.nan, 0.5, 0.5, 0, 0]), Y), r"must be finite, got row 3: \[nan"),
    (lambda: oq.ACC().fit_scores(scores(3, [np.inf, 0.5, 0.5, 0, 0]), Y), r"must be finite, got row 3: \[inf"),
    (lambda: oq.ACC().fit_scores(scores(3, [np.inf, -np.inf, 0, 0, 0]), Y), "must be finite, got row 3"),
    (lambda: oq.ACC().fit_scores(S[:, 0], Y), r"S must have shape \(N, n\) with at least one row, got \(200,\)"),
    (lambda: oq.ACC().fit_scores(S[:0], Y), r"S must have shape \(N, n\) with at least one row, got \(0, 5\)"),
    (lambda: oq.ACC().fit_scores(S[:150], Y), r"inconsistent numbers of samples: \[150, 200\]"),
    (lambda: fitted().predict_scores(scores(4, np.nan), [[0]]), "rows of S must be finite, got row 4"),
    (lambda: fitted(oq.PCC).predict_scores(scores(4, np.nan), [[0]]), "rows of S must be finite, got row 4"),
    (lambda: fitted().predict_scores(scores(4, 0.0), [[0]]), "rows of S must sum to 1, got row 4"),
    (lambda: fitted().predict_scores(S[:, 1:], [[0]]), "S must have one column per class, 5, got 4"),
    (
        lambda: oq.HDx().fit(X, Y).predict_scores(np.where(np.arange(200)[:, None] == 6, np.nan, X), [[0]]),
        "must be finite, got row 6",
    ),
]
SAMPLES = [
    (lambda: fitted().predict_samples(X, oq.Samples.whole(10)), "drawn from the 200 given items, got a pool of 10"),
    (lambda: fitted().predict_samples(X, [[0], []]), "no empty sample, but sample 1 is empty"),
    (lambda: fitted().predict_samples(X, []), "index must hold at least one sample, got none"),
    (lambda: fitted().predict_samples(X, [[0, 1], [2, 200]]), "index must lie in 0..199 .* got 200 in sample 1"),
    (lambda: fitted().predict_samples(X, [[-1]]), "index must lie in 0..199 .* got -1 in sample 0"),
    (lambda: fitted().predict_samples(X, np.zeros((2, 2, 2), dtype=int)), "sample 0 has shape"),
]
SOLVE = [
    (lambda: oq.solve(Q, 2 * M, oq.ACC()), r"columns of M must be distributions .* got column sums \[2. 2. 2.\]"),
    (lambda: oq.solve(Q, M - [[0.2], [0.0], [-0.2]], oq.ACC()), "columns of M must be distributions .*>= 0"),
    (lambda: oq.solve([1.0], [[1.0]], oq.ACC()), r"M must have at least 2 columns, one per class, got shape \(1, 1\)"),
    (lambda: oq.solve(Q, M[0], oq.ACC()), r"M must be a finite array .* with rows and columns, got shape \(3,\)"),
    (lambda: oq.solve(Q, M * np.nan, oq.ACC()), "M must be a finite array"),
    (lambda: oq.solve(-Q, M, oq.ACC()), "q must be counts or fractions >= 0 with a positive sum in every row"),
    (lambda: oq.solve([Q, 0 * Q], M, oq.ACC()), "q must be counts or fractions >= 0 with a positive sum"),
    (lambda: oq.solve(Q[:2], M, oq.ACC()), "q must have one entry per row of M, 3, got 2"),
    (lambda: oq.solve(Q * np.nan, M, oq.ACC()), "q must be a finite array of numbers"),
    (lambda: oq.solve(1.0, M, oq.ACC()), "q must be a finite array of numbers"),
    (lambda: oq.solve(Q, M, oq.RUN()), "N must be given if q are fractions"),
    (lambda: oq.solve(Q, M), "N must be given if q are fractions"),
    (lambda: oq.solve(Q, M, composed(HardVotes(), Poisson(), Tikhonov(1.0))), "N must be given .* fractions"),
    (lambda: oq.solve(Q, M, composed(HardVotes(), LeastSquares("poisson"))), "N must be given .* fractions"),
    (lambda: oq.solve(Q, M, oq.RUN(), N=0), r"N must be a number in \(0, 1e\+150\], got 0"),
    (lambda: oq.solve(Q, M, oq.RUN(), N=-5), r"N must be a number in \(0, 1e\+150\], got -5"),
    (lambda: oq.solve(Q, M, oq.RUN(), N=np.nan), r"N must be a number in \(0, 1e\+150\], got nan"),
    (lambda: oq.solve([Q] * 3, M, oq.RUN(), N=[1, 0, 2]), r"N must be a number in \(0, 1e\+150\], got 0"),
    (lambda: oq.solve([Q] * 3, M, oq.RUN(), N=[1, 2]), "N must be one number, or one per row of q, 3, got 2"),
    (lambda: oq.solve(99 * Q, M, oq.RUN(tau=-1)), "tau must be a finite number >= 0, got -1"),
    (lambda: oq.solve(99 * Q, M, oq.RUN(order=2)), "order must be at most n - 2 = 1 for 3 classes, got 2"),
    (lambda: oq.solve(99 * Q, M, oq.RUN(acceptance=[1, 2])), r"acceptance must be 3 numbers in .* got \[1, 2\]"),
    (lambda: oq.solve(Q, M, oq.ACC(solver="best")), "solver must be one of .* got 'best'"),
]
TYPES = [
    (lambda: oq.ACC().fit_scores([["a"] * 5] * 200, Y), r"S must be an array of numbers \(N, n\), got list"),
    (lambda: oq.ACC().fit_scores(sparse.csr_array(S), Y), r"S must be an array of numbers \(N, n\), got csr_array"),
    (lambda: oq.HDx().fit(sparse.csr_array(X), Y), "Sparse data was passed for X, but dense data is required"),
    (lambda: oq.HDx().fit(X, Y).predict(sparse.csr_array(X)), "Sparse data was passed for X, but dense data"),
    (lambda: oq.ACC(NB).fit(None, Y), "X must be .*, got None"),
    (lambda: fitted().predict_samples(X, [[0.0, 1.0]]), "index must hold integers, got float64 in sample 0"),
    (lambda: fitted().predict_samples(X, [np.ones(200, dtype=bool)]), "index must hold integers, got bool in sample 0"),
    (lambda: fitted().predict_samples(X, None), r"samples must be Samples or an integer array \(B, m\), got None"),
    (lambda: oq.solve(Q, "M", oq.ACC()), "M must be an array of numbers, got 'M'"),
    (lambda: oq.solve(["a", "b", "c"], M, oq.ACC()), "q must be an array of numbers"),
    (lambda: oq.solve(Q, M, oq.EDy()), r"method must be one that solves q = M p .*, got EDy"),
    (lambda: oq.solve(Q, M, oq.OEDy()), r"method must be one that solves q = M p .*, got OEDy"),
    (lambda: oq.solve(Q, M, oq.CC()), r"method must be one that solves q = M p .*, got CC"),
    (lambda: oq.solve(Q, M, oq.PCC()), r"method must be one that solves q = M p .*, got PCC"),
    (lambda: oq.solve(Q, M, oq.SLD()), r"method must be one that solves q = M p .*, got SLD"),
    (lambda: oq.solve(Q, M, oq.OQT()), r"method must be one that solves q = M p .*, got OQT"),
    (lambda: oq.OQT(NB).fit_scores(S, Y), r"OQT fits its own classifiers .* Use fit\(X, y\)"),
    (lambda: oq.ARC(NB).fit_scores(S, Y), r"ARC fits its own classifiers .* Use fit\(X, y\)"),
    (lambda: oq.solve(Q, M, composed(MeanDistances(), Energy())), "method must be one that solves q = M p"),
    (lambda: oq.solve(Q, M, "RUN"), r"method must be a quantifier such as RUN\(tau=10.0\), got 'RUN'"),
    (lambda: oq.solve(99 * Q, M, oq.RUN), "method must be a quantifier such as RUN.*, got <class"),
    (lambda: oq.solve(Q, M, oq.RUN(), N="many"), r"N must be a number in \(0, 1e\+150\], got 'many'"),
    (lambda: oq.solve(Q, M, oq.ACC(solver="l1")), "solver 'l1' needs a sum of absolute residuals"),
]
NOT_FITTED = [
    (lambda: oq.ACC().predict(X), "This ACC instance is not fitted yet"),
    (lambda: oq.CC().predict_samples(X, [[0]]), "This CC instance is not fitted yet"),
    (lambda: oq.PDF().predict_scores(S, [[0]]), "This PDF instance is not fitted yet"),
    (lambda: oq.HDx().scores(X), "This HDx instance is not fitted yet"),
    (lambda: oq.RUN().solve_scores(S, [[0]]), "This RUN instance is not fitted yet"),
    (lambda: oq.ACC().fit_scores(S, Y).scores(X), "ACC was fitted on scores. Use predict_scores, or fit it on items"),
    (lambda: oq.OEDy().fit_scores(S, Y).predict(X), "OEDy was fitted on scores. Use predict_scores"),
    (lambda: fitted().fit_scores(S, Y).predict(X), "ACC was fitted on scores. Use predict_scores"),
    (lambda: oq.classifiers.CrossFitted().predict_proba(X), "This CrossFitted instance is not fitted yet"),
    (lambda: oq.classifiers.CrossFitted().predict(X), "This CrossFitted instance is not fitted yet"),
    (lambda: oq.classifiers.InSample().predict_proba(X), "This InSample instance is not fitted yet"),
]


@check([*PARAMETERS, *DATA, *LABELS, *SCORES, *SAMPLES, *SOLVE])
def test_wrong_values_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@check([*PARAMETER_TYPES, *TYPES])
def test_wrong_types_are_rejected(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@check(NOT_FITTED)
def test_unfitted_objects_raise_not_fitted_error(call, message):
    with pytest.raises(NotFittedError, match=message):
        call()


@pytest.mark.parametrize("entry", oq.catalog(beyond=False), ids=lambda entry: entry.name)
def test_constructors_store_and_only_fit_rejects(entry):
    """A bad value must survive the constructor, clone and set_params, so that searches can report it."""
    for name in set(entry.cls().get_params()) & {"tau", "n_bins", "order"}:
        quantifier = entry.cls().set_params(**{name: -1})
        assert entry.cls(**{name: -1}).get_params()[name] == -1
        with pytest.raises(ValueError, match=f"{name} must be .* got -1"):
            quantifier.fit(X, Y)


def test_parameters_are_rejected_before_the_classifier_is_fitted():
    class Expensive(GaussianNB):
        def fit(self, X, y):
            raise AssertionError("the classifier was fitted before the parameters were checked")

    for quantifier in (oq.OACC(Expensive(), tau=-1), oq.HDy(Expensive(), n_bins=1), oq.RUN(Expensive(), order=9)):
        with pytest.raises(ValueError, match="must be"):
            quantifier.fit(X, Y)
