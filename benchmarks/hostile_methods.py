"""Hostile items and samples for whole methods, and hostile histograms for `unfold`.

    python benchmarks/hostile.py --method all --problems 1000 --seed 1
    python benchmarks/hostile.py --method PACC AdjustedML unfold

Items of a method have constant, perfect, one-hot, tiny or repeated scores, classes with one item, samples of one item,
and survey weights of any unit. Histograms have singular responses, empty bins, tiny acceptances and backgrounds. A
problem fails if any of these is not true:

- a mistake of the caller is a ValueError or TypeError, and nothing else is raised; NumPy issues no warning;
- estimates are finite and sum to one; spectra are finite and not negative, and errors are not negative;
- the estimate does not depend on the level, and its interval contains it;
- a sample that is not flagged has the same estimate alone, in a batch and with its items in another order, up to 1e-5.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np

import ordinalq as oq
from ordinalq.inference.predict import estimate

UNFOLD = "unfold"
NAMES = [*(entry.name for entry in oq.catalog()), UNFOLD]
KINDS = ("any", "constant", "perfect", "one-hot", "tiny", "repeated", "rare class", "two values")
LEVEL, SAME = 0.95, 1e-5
# These take a second or more for each problem, so they get fewer.
SLOW = {"OQT": 20, "ARC": 20, "AutoQuantifier": 50, "HDx": 10, "HDy": 10, "OHDx": 20, "OHDy": 20}


class Outcome(NamedTuple):
    """The result of one problem: failures in words, none if all is well."""

    name: str
    kind: str
    failures: tuple[str, ...]
    raised: str
    flagged: bool
    seconds: float


def scores(rng, y, n, kind):
    """Return class scores (N, n) of items of the classes y (N,)."""
    S = rng.dirichlet(np.ones(n), len(y)) + rng.uniform(0, 2) * np.eye(n)[y]
    if kind == "constant":
        S = np.tile(rng.dirichlet(np.ones(n)), (len(y), 1))
    elif kind == "perfect":
        S = np.eye(n)[y] + 1e-12
    elif kind == "one-hot":
        S = np.eye(n)[np.where(rng.random(len(y)) < 0.7, y, rng.integers(0, n, len(y)))]
    elif kind == "tiny":
        S = np.where(rng.random(S.shape) < 0.3, S * 10.0 ** rng.uniform(-290, -5), S)
    elif kind == "repeated":
        S = S[rng.integers(0, min(3, len(y)), len(y))]
    elif kind == "two values":
        S = np.where(np.median(S) < S, 0.9, 0.1)
    return S / S.sum(axis=1, keepdims=True)


def method_problem(rng, name, kind, failures):
    """Fit a method to hostile items and compare its answers; return whether some sample was flagged."""
    n = int(rng.integers(2, 8))
    y = np.concatenate([np.repeat(np.arange(n), 2), rng.integers(0, n, int(rng.choice([0, 10, 200])))])
    if kind == "rare class":
        y = np.concatenate([[0], rng.integers(1, n, 100), np.arange(1, n)])
    S = scores(rng, y, n, kind)
    quantifier = next(entry.cls for entry in oq.catalog() if entry.name == name)()
    traits = quantifier.traits
    named = {"groups": rng.integers(0, 12, len(y))} if traits.has_group_model and rng.random() < 0.5 else {}
    if traits.input_kind == "scores" and traits.accepts_scores:
        quantifier.fit_scores(S, y, **named)
        represent = np.asarray
    else:
        quantifier.fit(S, y, **named)
        represent = quantifier.scores
    N = int(rng.choice([1, 3, 40, 300]))
    pool = represent(scores(rng, rng.integers(0, n, N), n, kind))
    index = [rng.integers(0, N, int(rng.choice([1, 2, 30]))) for _ in range(6)]
    how = {}
    if traits.accepts_weights and rng.random() < 0.3:
        how = {"sample_weight": rng.uniform(0.5, 2, N) * 10.0 ** rng.choice([-170, -3, 0, 3, 100])}
    samples = oq.Samples.from_index(index, N)
    solution = quantifier.solve_scores(pool, samples, **how)
    check(failures, "finite and on the simplex", is_on_simplex(solution.p))
    summary = quantifier.summarize(pool, samples, **how)
    options = oq.inference.IntervalOptions(n_replicates=20)
    plain, with_level = (estimate(quantifier, summary, level, options) for level in (None, LEVEL))
    check(failures, "the same with and without a level", np.array_equal(plain.prevalences, with_level.prevalences))
    low, high, P = with_level.lower, with_level.upper, with_level.prevalences
    check(failures, "in its interval", bool(np.isfinite(low + high).all() and (low <= P).all() and (high >= P).all()))
    turned = quantifier.solve_scores(pool, oq.Samples.from_index([rng.permutation(one) for one in index], N), **how)
    alone = [quantifier.solve_scores(pool, samples[[b]], **how) for b in range(len(index))]
    calm = solution.converged & turned.converged & np.array([one.converged[0] for one in alone])
    apart = np.abs(np.concatenate([one.p for one in alone]) - solution.p)[calm].max(initial=0)
    check(failures, f"the same alone and in a batch ({apart:.1e})", apart <= SAME)
    apart = np.abs(turned.p - solution.p)[calm].max(initial=0)
    check(failures, f"the same in another order ({apart:.1e})", apart <= SAME)
    return not calm.all()


def unfolding_problem(rng, kind, failures):
    """Unfold a hostile histogram; return whether it was flagged."""
    n = int(rng.integers(2, 9))
    d = n + int(rng.integers(0, 4))
    M = rng.dirichlet(np.ones(d), n).T
    if kind == "constant":
        M[:] = M[:, :1]
    elif kind == "perfect":
        M = np.eye(d, n)
    elif kind == "repeated":
        M[:, -1] = M[:, 0]
    elif kind == "tiny":
        M = np.where(rng.random(M.shape) < 0.3, M * 10.0 ** rng.uniform(-200, -5), M)
        M /= M.sum(axis=0)
    acceptance = 10.0 ** rng.uniform(-6, 0, n) if rng.random() < 0.3 else np.ones(n)
    truth = rng.dirichlet(np.full(n, 0.3)) * 10.0 ** rng.uniform(0, 7)
    background = rng.uniform(0, 5, d) if rng.random() < 0.3 else np.zeros(d)
    counts = rng.poisson(M @ (acceptance * truth) + background).astype(float)
    if counts.sum() == 0:
        counts[0] = 1
    how = {}
    if (acceptance < 1).any():
        how["acceptance"] = acceptance
    if background.any():
        how["background"] = background
    if rng.random() < 0.5:
        how["tau"] = float(rng.choice([0.0, 1e-6, 1.0, 1e6]))
    spectrum = oq.unfold(counts, M, **how)
    estimate_, error = np.asarray(spectrum.counts), np.asarray(spectrum.total_error)
    check(failures, "finite and not negative", bool(np.isfinite(estimate_).all() and (estimate_ >= 0).all()))
    check(failures, "with errors", bool((error >= 0).all() and np.isfinite(error).all()))
    low, high = np.asarray(spectrum.interval(LEVEL)).reshape(2, -1)
    slack = 1e-9 * max(1.0, float(estimate_.max()))
    check(failures, "in its interval", bool((low <= estimate_ + slack).all() and (estimate_ <= high + slack).all()))
    spectrum.to_json()
    return not spectrum.converged


def is_on_simplex(P):
    """Return whether P (B, n) is finite, not negative, and sums to one."""
    return bool(np.isfinite(P).all() and (P >= 0).all() and np.abs(P.sum(axis=1) - 1).max() < 1e-9)


def check(failures, promise, holds):
    """Add a promise that does not hold to the failures."""
    if not holds:
        failures.append(f"not {promise}")


def judge(name, index, seed):
    """Return the outcome of one problem."""
    rng = np.random.default_rng([seed, index, NAMES.index(name)])
    kind = str(rng.choice(KINDS))
    failures, raised, flagged, start = [], "", False, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if name == UNFOLD:
                flagged = unfolding_problem(rng, kind, failures)
            else:
                flagged = method_problem(rng, name, kind, failures)
        except np.linalg.LinAlgError as error:  # a ValueError, but not a mistake of the caller
            failures.append(f"LinAlgError: {error}")
        except (ValueError, TypeError) as error:
            raised = f"{type(error).__name__}: {error}"[:100]
        except Exception as error:  # any other exception is what is looked for
            failures.append(f"{type(error).__name__}: {error}"[:100])
    failures += sorted({f"RuntimeWarning: {one.message}" for one in caught if one.category is RuntimeWarning})
    return Outcome(name, kind, tuple(failures), raised, flagged, time.perf_counter() - start)


def run(names, n_problems, seed, show, executor_map):
    """Print a row for each method; return whether nothing failed."""
    good = True
    for name in names:
        numbers = range(max(2, n_problems // SLOW.get(name, 1)))
        outcomes = list(executor_map(judge, [name] * len(numbers), numbers, [seed] * len(numbers)))
        failed = [(number, one) for number, one in zip(numbers, outcomes, strict=True) if one.failures]
        raised = [one.raised for one in outcomes if one.raised]
        print(
            f"{name}: {len(outcomes)} problems, {len(failed)} failures, {len(raised)} refused with a message, "
            f"{sum(one.flagged for one in outcomes)} flagged, slowest {max(one.seconds for one in outcomes):.2f} s",
            flush=True,
        )
        for number, one in failed[:show]:
            print(f"  {number} {one.kind}: {'; '.join(one.failures)}")
        for message in sorted(set(raised))[:show]:
            print(f"  refused: {message}")
        good &= not failed
    return good
