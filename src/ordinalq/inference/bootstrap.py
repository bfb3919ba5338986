"""Bootstrap replicates of estimates, over the sample and the held-out items V.

Given composition p, the mean representation q of a sample of N items has covariance sum_i p_i Sigma_i / N, with Sigma_i
the covariance of f within class i. A sample replicate therefore is q plus the deviation of N items of V, drawn class by
class, from the means of their classes; it needs q, N and V, not the items of the sample. A replicate of M comes from
items of V that are drawn with replacement within each class. Each replicate is solved as the estimate was.

A model that was trained with groups has D, the covariance between groups of the mean of f within a class. Then q has
covariance D (1 - 1/N) besides, the same for few items and for many.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ordinalq._utils.validation import Counts, Floats, Index
from ordinalq.inference.model import FittedQuantifier, Replicates, has_held_out
from ordinalq.inference.options import PER_MODEL, Draws
from ordinalq.samples.samples import Samples
from ordinalq.samples.summary import Summary
from ordinalq.samples.weights import Weights, class_shares, effective_items
from ordinalq.simplex import clean

# Items of V that a sample replicate draws at most: the mean of more is normal, and its deviation can be scaled.
MAX_DRAWN = 1000
# Each item of a tilted sample is chosen from this many candidates, and directions of f with less than this part of the
# largest variance are rounding errors.
CANDIDATES = 8
REDUNDANT = 1e-8
# Numbers in the replicates that are in memory at once, 128 megabytes.
CHUNK = 2**24


class ClassPools:
    """V, its items class by class.

    ``classes`` are n samples of V, one per class; ``counts`` (n,) what they are worth; ``shares`` (N_V,) those of
    the items in the means of their classes.
    """

    def __init__(self, S: Floats, codes: Index, n_classes: int, weights: Weights | None = None) -> None:
        self.S = S
        self.codes = codes
        self.weights = weights
        self.counts = effective_items(codes, n_classes, weights)
        self.shares = class_shares(codes, n_classes, weights)
        self.order = np.argsort(codes, kind="stable")
        numbers = np.bincount(codes, minlength=n_classes)
        self.starts = np.cumsum(numbers) - numbers
        self.numbers = numbers
        classes = Samples(self.order, np.append(self.starts, len(codes)), len(codes))
        self.classes = classes.weighted(weights)

    @classmethod
    def of(cls, quantifier: FittedQuantifier) -> "ClassPools":
        """Return the held-out items of a fitted quantifier."""
        if not has_held_out(quantifier):
            raise ValueError(
                f"this {type(quantifier).__name__} has no held-out items, which intervals need. Fit it again."
            )
        V = quantifier.held_out_
        return cls(V.S, V.codes, len(quantifier.classes_), V.weights)

    def resample(self, rng: np.random.Generator) -> Samples:
        """Draw as many items of each class as they are worth, with replacement."""
        return self.draw(np.diag(np.maximum(np.rint(self.counts), 1).astype(np.int64)), rng)

    def draw(self, counts: Counts, rng: np.random.Generator) -> Samples:
        """Draw counts[b, i] items of class i for sample b, by weight, with replacement."""
        codes = np.repeat(np.tile(np.arange(len(self.counts)), len(counts)), counts.ravel())
        u = rng.random(len(codes))
        if self.weights is None:
            items = self.order[self.starts[codes] + (u * self.numbers[codes]).astype(np.intp)]
        else:
            # Classes one after the other on a line, each as long as its weight.
            ends = np.cumsum(self.weights.values[self.order])
            edges = np.append(0, ends[self.starts + self.numbers - 1])
            at = np.searchsorted(ends, edges[codes] + u * np.diff(edges)[codes], side="right")
            items = self.order[np.clip(at, self.starts[codes], self.starts[codes] + self.numbers[codes] - 1)]
        return Samples(items, np.append(0, np.cumsum(counts.sum(axis=1))), len(self.codes))


def of_means(quantifier: FittedQuantifier, summary: Summary, P: Floats, draws: Draws) -> Iterator[Replicates]:
    """Yield replicates of methods on means.

    q* = q + the deviation of drawn items, and M* comes from drawn items.
    """
    V = ClassPools.of(quantifier)
    F = quantifier.embed(V.S)
    M = V.classes.average(F).T
    models = [quantifier.resample(F, V.resample(draws.rng)) for _ in range(draws.n_models)]
    draws = draws.for_samples()
    width = quantifier.frequency_width(F)
    D = quantifier.held_out_.group_covariance
    root = None if D is None else root_of(D)
    for rows in chunks(len(P), draws.n_replicates * P.shape[1]):
        part = summary[rows]
        Q = np.tile(part.means, (PER_MODEL, 1))
        centre = np.tile(composition(P[rows], part.sizes), (PER_MODEL, 1))
        n_items = np.tile(part.drawn_sizes, PER_MODEL)
        found = []
        for model, moved in models:
            samples, counts, shrink = replicate_samples(V, centre, n_items, draws)
            # Within the composition that was drawn, or next to the one that was estimated.
            means = counts / samples.sizes[:, None] if draws.estimand == "sample" else centre
            noise = (samples.average(F) - means @ M.T) * shrink
            if moved is not None:
                noise += centre @ moved.T
            if root is not None:
                noise += group_noise(root, n_items, draws)
            noisy = Q + noise if width is None else frequencies(Q + noise, width)
            found.append(clean(model.solve(part.with_means(noisy, PER_MODEL)).p))
        yield Replicates(rows, np.reshape(found, (draws.n_replicates, len(part), P.shape[1])), draws.n_models)


def root_of(D: Floats) -> Floats:
    """Return L (d, d) with L L' = D."""
    size, axes = np.linalg.eigh(D)
    return np.asarray(axes * np.sqrt(np.maximum(size, 0)))


def group_noise(root: Floats, n_items: Counts, draws: Draws) -> Floats:
    """Draw the deviations (B, d) of groups of N items, with covariance D (1 - 1/N)."""
    z = draws.rng.normal(size=(len(n_items), root.shape[1]))
    return np.asarray(z @ root.T * np.sqrt(1 - 1 / n_items)[:, None])


class Tilt:
    r"""Items of groups whose items look different, drawn from V.

    The items of a group follow other distributions than V: of all that have a given effect on the mean of f, the one
    nearest to V, in the sense of Kullback and Leibler, has densities proportional to exp(lambda' f(x)) within each
    class. With lambda = W^-1 delta and W the covariance of f within a class the mean over classes moves by delta, to
    first order; delta is normal with covariance D (1 - 1/N), as for methods on means.
    """

    def __init__(self, F: Floats, V: ClassPools, D: Floats) -> None:
        residuals = F - V.classes.average(F)[V.codes]
        w = None if V.weights is None else V.weights.values / V.weights.values.sum()
        W = residuals.T @ residuals / len(F) if w is None else (residuals.T * w) @ residuals
        self.values = residuals @ np.linalg.pinv(W, rcond=REDUNDANT, hermitian=True) @ root_of(D)

    @classmethod
    def of(cls, quantifier: FittedQuantifier, V: ClassPools) -> "Tilt | None":
        """Return the tilt of a quantifier fitted with groups, else None."""
        D = quantifier.held_out_.group_covariance
        return None if D is None else cls(quantifier.group_features(V.S), V, D)

    def draw(self, V: ClassPools, counts: Counts, n_items: Counts, rng: np.random.Generator) -> Samples:
        """Draw counts[b, i] items of class i for group b of n_items[b] items."""
        z = rng.normal(size=(len(counts), self.values.shape[1])) * np.sqrt(1 - 1 / n_items)[:, None]
        # Of some candidates for each place one is taken, with odds exp(lambda' f). A candidate is compared with a mean
        # that it is part of, which takes 1 / CANDIDATES of the effect.
        z *= CANDIDATES / (CANDIDATES - 1)
        drawn = [V.draw(counts, rng) for _ in range(CANDIDATES)]
        z = np.repeat(z, drawn[0].sizes, axis=0)
        odds = [np.einsum("ij,ij->i", self.values[d.items], z) + rng.gumbel(size=len(z)) for d in drawn]
        taken = np.argmax(odds, axis=0)
        items = np.stack([d.items for d in drawn])[taken, np.arange(len(z))]
        return Samples(items, drawn[0].offsets, drawn[0].n_items)


def of_items(
    models: Sequence[FittedQuantifier],
    V: ClassPools,
    summary: Summary,
    P: Floats,
    draws: Draws,
    tilt: Tilt | None = None,
) -> Iterator[Replicates]:
    """Yield replicates of methods on items: estimates of samples drawn from V.

    Their mean is moved to the estimate.

    `models` are replicates of the quantifier by other held-out items, as many as the draws have; with a `tilt` the
    samples are drawn as groups are whose items look different.
    """
    draws = draws.for_samples()
    for rows in chunks(len(P), draws.n_replicates * P.shape[1]):
        n_items = np.tile(summary.drawn_sizes[rows], PER_MODEL)
        centre = np.tile(composition(P[rows], summary.sizes[rows]), (PER_MODEL, 1))
        found, shrink = [], np.ones((len(centre), 1))
        for model in models:
            samples, _, shrink = replicate_samples(V, centre, n_items, draws, tilt)
            found.append(clean(model.solve_scores(V.S, samples).p))
        R = np.reshape(found, (draws.n_replicates, -1, P.shape[1]))
        yield Replicates(rows, P[rows] + (R - R.mean(axis=0)) * shrink[: R.shape[1]], draws.n_models)


def replicate_samples(
    V: ClassPools, centre: Floats, n_items: Counts, draws: Draws, tilt: Tilt | None = None
) -> tuple[Samples, Counts, Floats]:
    """Draw one sample of V for each composition (B, n), with a `tilt` of groups.

    Return the samples, their counts (B, n), and by how much their deviations are to be shrunk (B, 1), since a large
    sample is represented by a smaller one.
    """
    drawn = np.minimum(n_items, MAX_DRAWN)
    counts = (
        draws.rng.multinomial(drawn, centre) if draws.estimand == "population" else rounded(centre, drawn, draws.rng)
    )
    shrink = np.sqrt(drawn / n_items)[:, None]
    if tilt is None:
        return V.draw(counts, draws.rng), counts, shrink
    # Nothing is to be shrunk: most of the deviation is an effect that does not depend on the number of items.
    return tilt.draw(V, counts, n_items, draws.rng), counts, np.ones_like(shrink)


def rounded(P: Floats, n_items: Counts, rng: np.random.Generator) -> Counts:
    """Return integer counts (B, n) with sum `n_items` (B,), near n_items * P.

    Their expectation is n_items * P, and each differs from it by less than one.
    """
    edges = np.cumsum(P * n_items[:, None], axis=1)
    edges[:, -1] = n_items
    # One number for all edges: the last one stays an integer.
    steps = np.floor(edges + rng.random((len(P), 1))).astype(np.int64)
    steps[:, -1] = n_items
    return np.diff(np.minimum(steps, n_items[:, None]), axis=1, prepend=0)


def composition(P: Floats, n_items: Counts | Floats) -> Floats:
    """Return (N p + 1/2) / (N + n/2), (B, n): estimates plus half an item per class.

    Where the estimate is zero the class may still be there, and its items would scatter too.
    """
    N = n_items[:, None]
    return np.asarray((N * P + 0.5) / (N + P.shape[1] / 2))


def frequencies(Q: Floats, width: int) -> Floats:
    """Return Q (B, k * width) without negative entries, each block with sum one."""
    blocks = np.maximum(Q, 0).reshape(len(Q), -1, width)
    return np.asarray((blocks / blocks.sum(axis=2, keepdims=True)).reshape(Q.shape))


def chunks(B: int, numbers: int) -> Iterator[slice]:
    """Yield slices of B samples, each with this many numbers in its replicates."""
    step = max(1, CHUNK // numbers)
    for start in range(0, B, step):
        yield slice(start, min(start + step, B))
