"""`Solution`: the minima of a batch, and the optimality measure."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ordinalq._utils.validation import Array, Counts, Floats, Index, Mask
from ordinalq.simplex import centred_gradient, clean

# An answer is confirmed where the value exceeds the minimum by at most this part of itself, or by this much.
EXCESS, SMALL_EXCESS = 5e-10, 5e-13


@dataclass(frozen=True)
class Solution:
    """Minimizers of B objectives over the simplex, with convergence flags.

    Parameters
    ----------
    p : ndarray (B, n)
        Estimates, on the simplex.
    value : ndarray (B,)
        Objective at p, regularizer included.
    n_iter : ndarray (B,)
        Iterations spent.
    converged : ndarray (B,)
        Whether p is optimal up to the tolerance of the solver.
    kkt : ndarray (B,)
        Distance of p from the optimum, see :func:`kkt_residual` (for sums of absolute residuals the duality gap, by how
        much the value may exceed the minimum); 0 where nothing is minimised.

    Examples
    --------
    >>> import ordinalq as oq
    >>> S = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    >>> solution = oq.PACC().fit_scores(S, [1, 2, 3]).solve_scores(S, [[0, 1, 2]])
    >>> solution.p.round(3), solution.converged
    (array([[0.333, 0.333, 0.333]]), array([ True]))
    """

    p: Floats
    value: Floats
    n_iter: Counts
    converged: Mask
    kkt: Floats

    @classmethod
    def closed_form(cls, P: Floats) -> "Solution":
        """Return estimates P (B, n) that no solver was needed for.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.

        Returns
        -------
        Solution
            Converged solution with these distributions.
        """
        zeros = np.zeros(len(P))
        return cls(P, zeros, np.zeros(len(P), dtype=np.int64), np.ones(len(P), dtype=bool), zeros.copy())

    def take(self, rows: Array) -> "Solution":
        """Return the solution of some samples, chosen by a mask (B,) or by positions.

        Parameters
        ----------
        rows : ndarray
            Positions or mask of samples.

        Returns
        -------
        Solution
            Solutions of these samples.
        """
        return Solution(*(getattr(self, name)[rows] for name in self.__annotations__))

    def put(self, rows: Index, part: "Solution") -> None:
        """Write the solution of some samples into the rows (b,) of this one.

        Parameters
        ----------
        rows : ndarray of int
            Positions of samples.
        part : Solution
            New solutions of these samples.
        """
        for name in self.__annotations__:
            getattr(self, name)[rows] = getattr(part, name)

    @classmethod
    def concatenate(cls, parts: list["Solution"]) -> "Solution":
        """Join the solutions of successive parts of a batch.

        Parameters
        ----------
        parts : list of Solution
            Solutions of successive samples.

        Returns
        -------
        Solution
            Solutions of all samples.
        """
        fields: list[Any] = [[getattr(part, name) for part in parts] for name in cls.__annotations__]
        return cls(*(np.concatenate(field) for field in fields))


def optimality_gap(P: Floats, G: Floats) -> Floats:
    """Return p.g - min_i g_i, (B,), for P (B, n) and the gradient G (B, n).

    No point of the simplex has a smaller value than a convex function's at p less this duality gap.
    """
    return np.asarray((P * (G - G.min(axis=1, keepdims=True))).sum(axis=1))


def kkt_residual(P: Floats, G: Floats) -> Floats:
    """Return max_i max(-ghat_i, p_i |ghat_i|) with ghat = g - (p.g) 1.

    It is zero exactly at the KKT points of the simplex.

    The first part is zero if no class without mass should get some, the second if the classes with mass have equal
    gradients. P and G, the gradient, have shape (B, n); the result (B,).
    """
    ghat = centred_gradient(P, G)
    return np.asarray(np.maximum(-ghat, P * np.abs(ghat)).max(axis=1))


def distributions(solution: Solution) -> Floats:
    """Return the distributions (B, n) of a solution; warn if not converged."""
    warn_of_failed(int((~solution.converged).sum()), len(solution.p), stacklevel=4)
    return clean(solution.p)


def warn_of_failed(failed: int, total: int, stacklevel: int = 3) -> None:
    """Warn where some of all samples did not converge."""
    if failed:
        warnings.warn(
            f"{failed} of {total} samples did not converge to the tolerance of the solver. "
            "Pass a larger max_iter (of the method or its solver), or more regularization.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
