"""Regularizers: what an estimate should look like, apart from the data.

`Tikhonov` prefers smooth distributions and makes the o-methods ordinal; `LogTikhonov` is its original form in
unfolding, on the logarithm of acceptance-corrected counts. `Entropy` pulls towards a distribution, and ignores the
order.
"""

import warnings
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

from ordinalq._utils.validation import (
    Floats,
    check_choice,
    check_distributions,
    check_integer,
    check_real,
    check_vectors,
)
from ordinalq.simplex import Derivatives, clean, existing_differences, grid_difference_matrix, row_product

# How much to smooth: what regularizers and the smoothing of an EM have in common.


# The strength that is chosen in `fit`.
AUTO = "auto"
WEIGHTS = ("groups", "items")


class AutoStrength(BaseEstimator):
    """Strength that is chosen in `fit`; "auto" is ``AutoStrength()``.

    It is chosen on samples that look like those to come. These are, in this order: samples of the given `prevalences`,
    drawn from the training items; the training groups of ``fit(..., groups=)``; smooth samples of the training items
    (APP-OQ).

    Parameters
    ----------
    prevalences : array-like (k, n), default=None
        Expected distributions, such as those of earlier groups; all are equally likely.
    weight : {"groups", "items"}, default="groups"
        With training groups: whether errors of all groups have equal weight, or weights by their number of items.
    min_items : int, default=20
        With training groups: smaller ones are left out; what is best for them smooths large ones too much.

    Examples
    --------
    >>> import ordinalq as oq
    >>> oq.OPACC(tau=oq.regularizers.AutoStrength(weight="items")).tau
    AutoStrength(weight='items')
    """

    def __init__(self, *, prevalences: Any = None, weight: str = "groups", min_items: int = 20) -> None:
        self.prevalences = prevalences
        self.weight = weight
        self.min_items = min_items

    def check(self, n_classes: int) -> None:
        """Raise ValueError if a parameter is out of range.

        Parameters
        ----------
        n_classes : int
            Number of classes n.
        """
        check_choice("weight", self.weight, WEIGHTS)
        check_integer("min_items", self.min_items, minimum=1)
        if self.prevalences is not None:
            shape = np.atleast_2d(check_distributions("prevalences", self.prevalences)).shape
            if shape[1] != n_classes:
                raise ValueError(f"prevalences must have one entry per class, {n_classes}, got {shape[1]}.")


class Smoother(BaseEstimator):
    """Part that smooths; `strength` is the name of its parameter, or None."""

    strength: str | None = None

    @property
    def auto(self) -> AutoStrength | None:
        """Automatic choice of the strength; None if it is a number, or there is none."""
        value = getattr(self, self.strength) if self.strength else None
        if isinstance(value, AutoStrength):
            return value
        return AutoStrength() if isinstance(value, str) and value == AUTO else None

    @property
    def is_auto(self) -> bool:
        """Whether the strength is yet to be chosen."""
        return self.auto is not None

    def with_strength(self, value: float) -> Any:
        """Return a copy with another strength.

        Parameters
        ----------
        value : float
            Strength of smoothing.

        Returns
        -------
        Smoother
            Copy with this strength.
        """
        return clone(self).set_params(**{str(self.strength): value})

    def strengths(self, unit: float) -> tuple[float, ...]:
        """Return the first strengths to try, ascending, for losses of size `unit`.

        Parameters
        ----------
        unit : float
            Size of the values of the loss.

        Returns
        -------
        tuple of float
            Strengths in ascending order.
        """
        return ()

    def limits(self, unit: float) -> tuple[float, float]:
        """Return the smallest positive and the largest strength to try.

        Parameters
        ----------
        unit : float
            Size of the values of the loss.

        Returns
        -------
        tuple of float
            Smallest positive and largest strength.
        """
        return 0.0, np.inf

    def check_strength(self, n_classes: int, high: float = np.inf) -> None:
        """Raise an error unless the strength is automatic or a number in [0, high].

        Parameters
        ----------
        n_classes : int
            Number of classes n.
        high : float, default=inf
            Largest allowed strength.
        """
        if self.auto is None:
            check_real(str(self.strength), getattr(self, str(self.strength)), low=0, high=high)
        else:
            self.auto.check(n_classes)


# Values of tau that are tried first, per unit of the loss.
TAUS = (0.0, *(10.0**k for k in range(-6, 3)))
# How far one goes where an end of them is the best.
TAU_LIMITS = (1e-9, 1e6)

# Larger numbers would overflow in products with C.
MAX_TAU = 1e300
# By how much a probability may exceed one.
ROUNDING = 1e-4
# The logarithm does not distinguish shares below this from zero.
KNEE = 1e-9


class Penalty(NamedTuple):
    """tau/2 ||C p - c||^2, in parts.

    Parameters
    ----------
    tau, C, c : float, ndarray (m, n), ndarray (m,)
        Strength, penalized matrix, and the centre at which the penalty is zero.
    """

    tau: float
    C: Floats
    c: Floats

    def value(self, P: Floats) -> Floats:
        """Return the penalty (B,) at P (B, n)."""
        R = row_product(P, self.C.T) - self.c
        return np.asarray(self.tau / 2 * (R * R).sum(axis=1))


class Regularizer(Smoother, ABC):
    """A penalty on p, added to the loss of every sample.

    ``convex`` is true if it is convex in p, ``has_form`` if it is a quadratic form. ``strength`` is the name of the
    parameter that controls the amount of smoothing.
    """

    convex: bool = True
    has_form: bool = False

    def check(self, n_classes: int) -> None:
        """Raise ValueError if parameters do not fit n classes.

        Parameters
        ----------
        n_classes : int
            Number of classes n.
        """

    @abstractmethod
    def derivatives(self, P: Floats, sizes: Floats) -> Derivatives:
        """Return value (B,), gradient (B, n) and Hessian (B, n, n) at P (B, n).

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        sizes : ndarray (B,)
            Number of items of each sample.

        Returns
        -------
        Derivatives
            Value (B,), gradient (B, n) and Hessian (B, n, n).
        """

    def value(self, P: Floats, sizes: Floats) -> Floats:
        """Return the value (B,) alone.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        sizes : ndarray (B,)
            Number of items of each sample.

        Returns
        -------
        ndarray (B,)
            Values.
        """
        return self.derivatives(P, sizes).value

    def quadratic(self, n_classes: int) -> tuple[Floats, Floats] | None:
        """Return K (n, n), k (n,) if the penalty is p'Kp/2 - k'p, else None.

        Parameters
        ----------
        n_classes : int
            Number of classes n.

        Returns
        -------
        tuple of ndarray (n, n) and ndarray (n,), or None
            K and k.
        """
        return None

    def penalty(self, n_classes: int) -> Penalty | None:
        """Return the parts of a penalty tau/2 ||C p - c||^2, else None.

        In C'C times a large tau the loss is lost by rounding; the parts let a solver keep the two apart.

        Parameters
        ----------
        n_classes : int
            Number of classes n.

        Returns
        -------
        Penalty or None
            Strength, matrix and centre.
        """
        return None

    def seen(self, n_classes: int) -> Floats | None:
        """Return G (n, n): the penalty changes along d if d'Gd > 0; or None.

        Parameters
        ----------
        n_classes : int
            Number of classes n.

        Returns
        -------
        ndarray (n, n) or None
            G.
        """
        return None

    def strengths(self, unit: float) -> tuple[float, ...]:
        """Return multiples of the unit: tau is relative to the loss."""
        return tuple(unit * tau for tau in TAUS)

    def limits(self, unit: float) -> tuple[float, float]:
        """Return multiples of the unit beyond which nothing changes."""
        return unit * TAU_LIMITS[0], unit * TAU_LIMITS[1]

    def root(self, P: Floats, sizes: Floats) -> Floats:
        """Return R (B, m, n) with Hessians R'R at P (B, n) per unit of strength.

        Parameters
        ----------
        P : ndarray (B, n)
            Distributions, one per sample.
        sizes : ndarray (B,)
            Number of items of each sample.

        Returns
        -------
        ndarray (B, m, n)
            R.
        """
        return np.zeros((len(P), 1, P.shape[1]))


class NoPenalty(Regularizer):
    """Zero."""

    has_form = True

    def derivatives(self, P: Floats, sizes: Floats) -> Derivatives:
        """Return zeros."""
        B, n = P.shape
        return Derivatives(np.zeros(B), np.zeros((B, n)), np.zeros((B, n, n)))

    def seen(self, n_classes: int) -> Floats | None:
        """Return zeros: nothing is seen."""
        return np.zeros((n_classes, n_classes))

    def quadratic(self, n_classes: int) -> tuple[Floats, Floats] | None:
        """Return zeros."""
        return np.zeros((n_classes, n_classes)), np.zeros(n_classes)


class Tikhonov(Regularizer):
    """Tikhonov penalty tau/2 ||C (p - centre)||^2 [eq:run-regularizer].

    It is zero if p - centre is a polynomial of degree <= order.

    Parameters
    ----------
    tau : float, "auto" or Auto
        Strength, >= 0; "auto" is chosen when a quantifier is fitted.
    order : int, default=1
        C is ``difference_matrix(n, order)``; 1 penalizes curvature.
    centre : array-like (n,), default=None
        A reference shape; None stands for zero.
    shape : tuple of int, default=None
        Numbers of bins along the axes where the classes are a grid, in the order of ``numpy.ravel``: the differences
        are taken along each axis. None stands for one axis.
    """

    strength = "tau"
    has_form = True

    def __init__(self, tau: Any, *, order: int = 1, centre: Any = None, shape: Any = None) -> None:
        self.tau = tau
        self.order = order
        self.centre = centre
        self.shape = shape

    def check(self, n_classes: int) -> None:
        """Raise ValueError if parameters do not fit n classes."""
        _check_tau(self, n_classes)
        if self.shape is None:
            _check_order(self.order, self.tau, n_classes)
        else:
            check_integer("order", self.order, minimum=0)
            if int(np.prod(self.shape)) != n_classes:
                raise ValueError(f"shape must have {n_classes} bins, one per class, got {self.shape!r}.")
            differences(n_classes, self.order, self.shape)
        if self.centre is not None and check_vectors("centre", self.centre, min_classes=2).shape != (n_classes,):
            raise ValueError(f"centre must be a vector of {n_classes} numbers, got {self.centre!r}.")

    def derivatives(self, P: Floats, sizes: Floats) -> Derivatives:
        """Return tau/2 ||C d||^2, its gradient and Hessian, with d = p - centre."""
        C = differences(P.shape[1], self.order, self.shape)
        D = P if self.centre is None else P - np.asarray(self.centre, dtype=np.float64)
        # C d first: its rounding errors stay as small as C d itself, however large tau is.
        R = row_product(D, C.T)
        H = np.broadcast_to(self.tau * C.T @ C, (len(P), C.shape[1], C.shape[1]))
        return Derivatives(self.tau / 2 * (R * R).sum(axis=1), self.tau * row_product(R, C), H)

    def quadratic(self, n_classes: int) -> tuple[Floats, Floats]:
        """Return tau C'C and tau C'C centre."""
        C = differences(n_classes, self.order, self.shape)
        K = self.tau * C.T @ C
        return K, np.zeros(n_classes) if self.centre is None else K @ np.asarray(self.centre, dtype=np.float64)

    def seen(self, n_classes: int) -> Floats | None:
        """Return C'C, or zeros without strength."""
        C = differences(n_classes, self.order, self.shape)
        return np.asarray(C.T @ C if self.tau > 0 else np.zeros((n_classes, n_classes)))

    def penalty(self, n_classes: int) -> Penalty | None:
        """Return tau, C and C centre."""
        C = differences(n_classes, self.order, self.shape)
        centre = np.zeros(n_classes) if self.centre is None else np.asarray(self.centre, dtype=np.float64)
        return Penalty(float(self.tau), C, C @ centre) if self.tau > 0 and len(C) else None

    def root(self, P: Floats, sizes: Floats) -> Floats:
        """Return C for each sample."""
        C = differences(P.shape[1], self.order, self.shape)
        return np.broadcast_to(C, (len(P), *C.shape))


class Entropy(Regularizer):
    """Relative entropy tau sum_i p_i ln(p_i / c_i) of p and a centre c.

    Maximum entropy (Schmelling, 1994).

    It is convex, zero at p = c, and pulls every class towards its prevalence in c, independent of its neighbours: with
    a uniform c it makes estimates flat, not smooth. Below p_i = 1e-9 its second-order expansion there takes its place,
    so that derivatives are finite for empty classes; the value changes by less than 1e-9 tau per class.

    Parameters
    ----------
    tau : float or "auto"
        Strength, >= 0; "auto" is chosen when a quantifier is fitted.
    centre : array-like (n,), default=None
        c, positive, in any unit; None stands for the uniform distribution.
    """

    strength = "tau"

    def __init__(self, tau: Any, *, centre: Any = None) -> None:
        self.tau = tau
        self.centre = centre

    def check(self, n_classes: int) -> None:
        """Raise ValueError if parameters do not fit n classes."""
        _check_tau(self, n_classes)
        if self.centre is not None:
            c = check_vectors("centre", self.centre, min_classes=2)
            if c.shape != (n_classes,) or not (c > 0).all():
                raise ValueError(f"centre must be a vector of {n_classes} positive numbers, got {self.centre!r}.")

    def derivatives(self, P: Floats, sizes: Floats) -> Derivatives:
        """Return value, gradient tau (1 + ln(p/c)) and Hessian tau diag(1/p).

        All are expanded at 1e-9 below that.
        """
        n = P.shape[1]
        c = np.ones(n) if self.centre is None else np.asarray(self.centre, dtype=np.float64)
        K = np.maximum(P, KNEE)
        log, below = np.log(K * (c.sum() / c)), P - K
        value = K * log + (log + 1) * below + below**2 / (2 * K)
        H = (self.tau / K)[:, :, None] * np.eye(n)
        return Derivatives(self.tau * value.sum(axis=1), self.tau * (log + 1 + below / K), H)

    def seen(self, n_classes: int) -> Floats | None:
        """Return the identity, or zeros without strength: every change is seen."""
        return np.eye(n_classes) if self.tau > 0 else np.zeros((n_classes, n_classes))

    def root(self, P: Floats, sizes: Floats) -> Floats:
        """Return diag(p^(-1/2))."""
        return np.asarray(np.maximum(P, KNEE)[:, :, None] ** -0.5 * np.eye(P.shape[1]))


class LogTikhonov(Regularizer):
    """Tikhonov penalty tau/2 ||C z||^2 on a logarithmic scale z.

    z_i = log10(1 + m (p_i / a_i) / sum_j (p_j / a_j)) and m = max(N - n, 1).

    This is the regularizer of the original RUN: spectra are smooth on a logarithmic scale, after the correction by
    the acceptance a. It is not convex.

    Parameters
    ----------
    tau : float, "auto" or Auto
        Strength, >= 0; "auto" is chosen when a quantifier is fitted.
    acceptance : array-like (n,)
        Probability a_i in (0, 1] that an event of class i is observed. Only the ratios matter, so that effective areas
        may be divided by the largest.
    order : int, default=1
        C is ``difference_matrix(n, order)``.
    shape : tuple of int, default=None
        Numbers of bins along the axes of a grid, see :class:`Tikhonov`.
    """

    convex = False
    strength = "tau"

    def __init__(self, tau: Any, *, acceptance: Any, order: int = 1, shape: Any = None) -> None:
        self.tau = tau
        self.order = order
        self.acceptance = acceptance
        self.shape = shape

    def check(self, n_classes: int) -> None:
        """Raise ValueError if parameters do not fit n classes."""
        Tikhonov(self.tau, order=self.order, shape=self.shape).check(n_classes)
        check_acceptance(self.acceptance, n_classes)

    def _scale(self, P: Floats, sizes: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return c = 1 / a, c.p (B, 1), z (B, n), dz_i/dw_i and dw_i/dp_j.

        w = c p / (c.p).
        """
        n = P.shape[1]
        c = 1 / np.asarray(self.acceptance, dtype=np.float64)
        m = np.maximum(sizes - n, 1)[:, None]
        total = (P @ c)[:, None]
        w = c * P / total
        J = (np.eye(n) * c - w[:, :, None] * c) / total[:, :, None]
        return c, total, np.log10(1 + m * w), m / (1 + m * w) / np.log(10), J

    def value(self, P: Floats, sizes: Floats) -> Floats:
        """Return the value (B,), without the derivatives, which take most of the time."""
        c = 1 / np.asarray(self.acceptance, dtype=np.float64)
        m = np.maximum(sizes - P.shape[1], 1)[:, None]
        z = np.log10(1 + m * (c * P / (P @ c)[:, None]))
        C = differences(P.shape[1], self.order, self.shape)
        return np.asarray(self.tau / 2 * np.square(z @ C.T).sum(axis=1))

    def derivatives(self, P: Floats, sizes: Floats) -> Derivatives:
        """Return value, gradient and Hessian through w and z.

        p -> w = c p / (c.p) -> z -> tau/2 ||C z||^2 with c = 1 / a.
        """
        c, total, z, slope, J = self._scale(P, sizes)
        C = differences(P.shape[1], self.order, self.shape)
        pull = self.tau * z @ C.T @ C  # derivative of the penalty in z
        Z = slope[:, :, None] * J
        G = np.matmul(pull[:, None, :], Z)[:, 0]
        H = np.matmul(Z.transpose(0, 2, 1), np.matmul(self.tau * C.T @ C, Z))
        # Curvature of z: d2z_i = slope_i d2w_i - ln(10) slope_i^2 dw_i dw_i'
        H -= np.matmul((Z * (np.log(10) * pull)[:, :, None]).transpose(0, 2, 1), Z)
        # d2w_i/dp_j dp_k = -(c_k J_ij + c_j J_ik) / (c.p)
        mixed = np.matmul((pull * slope)[:, None, :], J).transpose(0, 2, 1) * c / total[:, :, None]
        H -= mixed + mixed.transpose(0, 2, 1)
        return Derivatives(self.tau / 2 * np.square(z @ C.T).sum(axis=1), G, H)

    def root(self, P: Floats, sizes: Floats) -> Floats:
        """Return C Z with Z = dz/dp, the root of the Hessian for linear z."""
        _, _, _, slope, J = self._scale(P, sizes)
        return np.asarray(np.matmul(differences(P.shape[1], self.order, self.shape), slope[:, :, None] * J))


@lru_cache(maxsize=64)  # a solver uses the same matrix in every step
def _differences(n_classes: int, order: int, shape: tuple[int, ...] | None) -> Floats:
    C = existing_differences(n_classes, order) if shape is None else grid_difference_matrix(shape, order)
    C.flags.writeable = False
    return C


def differences(n_classes: int, order: int, shape: Any = None) -> Floats:
    """Return the read-only Tikhonov matrix of n classes, or of a grid."""
    return _differences(n_classes, order, None if shape is None else tuple(int(size) for size in shape))


def _check_order(order: Any, tau: Any, n_classes: int) -> None:
    """Raise ValueError if the order is too high for n classes; warn for two classes."""
    check_integer("order", order, minimum=0)
    if n_classes == 2 and order == 1:
        if tau != 0:
            warnings.warn(
                "a penalty of order 1 has no effect on two classes: the estimate is that of the method without "
                "regularization. Use order=0 to pull both prevalences towards each other.",
                stacklevel=2,
            )
    elif order > n_classes - 2:
        raise ValueError(f"order must be at most n - 2 = {n_classes - 2} for {n_classes} classes, got {order}.")


def check_acceptance(acceptance: Any, n_classes: int) -> None:
    """Raise ValueError unless these are n probabilities of observation."""
    a = check_vectors("acceptance", acceptance, min_classes=2)
    if a.shape != (n_classes,) or not ((a > 0) & (a <= 1 + ROUNDING)).all():
        raise ValueError(
            f"acceptance must be {n_classes} numbers in (0, 1], the probability that an event of each class is "
            f"observed, got {acceptance!r}."
        )


def _check_tau(regularizer: Regularizer, n_classes: int) -> None:
    regularizer.check_strength(n_classes)
    tau = getattr(regularizer, str(regularizer.strength))
    if not regularizer.is_auto and tau > MAX_TAU:
        raise ValueError(f"tau must be at most {MAX_TAU:g}, got {tau!r}: its multiples would overflow.")


# Smoothing between the iterations of an EM (IBU, o-SLD). It is not a penalty: nothing is minimized.


# Weights of the polynomial that are tried first.
INTERPOLATIONS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class PolynomialSmoothing(Smoother):
    """Smoothing lam u + (1 - lam) p with a least-squares polynomial u.

    u is fitted through the points (i, p_i) and made a distribution.

    Parameters
    ----------
    order : int, default=0
        Degree of the polynomial; 0 makes u uniform.
    interpolation : float, "auto" or Auto, default=0.1
        lam in [0, 1], the weight of the polynomial; "auto" is chosen when a quantifier is fitted.
    """

    strength = "interpolation"

    def __init__(self, order: int = 0, interpolation: Any = 0.1) -> None:
        self.order = order
        self.interpolation = interpolation

    def check(self, n_classes: int) -> None:
        """Raise ValueError if parameters do not fit n classes."""
        check_integer("order", self.order, minimum=0)
        self.check_strength(n_classes, high=1)
        if self.order > n_classes - 1:
            raise ValueError(
                f"order must be at most n - 1 = {n_classes - 1} for {n_classes} classes, got {self.order}."
            )

    def strengths(self, unit: float) -> tuple[float, ...]:
        """Return weights of the polynomial; they have no unit."""
        return INTERPOLATIONS

    def limits(self, unit: float) -> tuple[float, float]:
        """Return the ends of the grid: 1 is the polynomial itself."""
        return INTERPOLATIONS[1], INTERPOLATIONS[-1]

    def smooth(self, P: Floats) -> Floats:
        """Return the smoothed distributions, (B, n)."""
        if self.interpolation == 0:
            return P
        U = np.maximum(P @ polynomial_projection(P.shape[1], self.order), 0)
        return clean(self.interpolation * clean(U) + (1 - self.interpolation) * P)


@lru_cache(maxsize=64)  # an EM uses the same matrix a hundred times
def polynomial_projection(n: int, order: int) -> Floats:
    """Return the (n, n) matrix of the least-squares polynomial of p."""
    Z, _ = np.linalg.qr(np.vander(np.linspace(-1, 1, n), order + 1))
    return np.asarray(Z @ Z.T)
