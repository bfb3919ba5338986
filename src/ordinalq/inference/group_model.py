r"""A model of groups: how their shares and the looks of their items vary, and how both go together.

Group g has N items with one-hot classes e (n,) and representations f (d,). With class means M and r = f - M e,

    p_g = mean e,   rbar_g = mean r - shift,   q_g = mean f = M p_g + shift + rbar_g,
    Cov(p_g)         = A (1 - 1/N) + B / N,    B = diag(mu) - mu mu'   (shares between groups; between items)
    Cov(rbar_g)      = D (1 - 1/N) + W / N,                            (looks between groups; within a class)
    Cov(p_g, rbar_g) = K (1 - 1/N).

Prior probability shift is D = 0 and K = 0.
"""

from dataclasses import dataclass

import numpy as np

from ordinalq._utils.validation import Floats

# Directions of f with a variance below this part of the largest are rounding errors (posteriors sum to one).
RANK_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class GroupModel:
    """Means and covariances of groups; arrays and numbers only, without keys or items.

    The effect is "learned" from labelled groups, "stated" by the user, or taken to be absent, "weak".
    """

    source: str
    mu: Floats  # (n,) mean shares of a group
    M: Floats  # (d, n) class means of f
    shift: Floats  # (d,) mean of rbar_g over groups
    W: Floats  # (d, d) covariance of f within a class
    A: Floats  # (n, n) covariance of the shares between groups
    D: Floats  # (d, d) that of the looks
    K: Floats  # (n, d) that of both
    n_groups: float = 0.0  # effective number G of labelled groups; 0 where none were used
    dof: float = np.inf  # degrees of freedom of J: G and the template's; inf where nothing was learned
    correlation: float = 0.0  # intraclass correlation a of the labels
    worst: float = 0.0  # largest log odds of a training group for another population, see `condition.log_odds`
    fallback: "GroupModel | None" = None  # without the learned prior of the shares, for groups that it makes incredible

    @property
    def n_classes(self) -> int:
        """Number of classes n."""
        return len(self.mu)

    @property
    def B(self) -> Floats:
        """Covariance of the one-hot class of a single item, diag(mu) - mu mu'."""
        return multinomial(self.mu)

    @property
    def effect(self) -> Floats:
        """J: covariance of (e, r) of two items of a group, (n + d, n + d)."""
        return np.block([[self.A, self.K], [self.K.T, self.D]])


def multinomial(p: Floats) -> Floats:
    """diag(p) - p p' of p (..., n): the covariance of the one-hot class of one item, (..., n, n)."""
    p = np.asarray(p)
    return np.asarray(p[..., :, None] * np.eye(p.shape[-1]) - p[..., :, None] * p[..., None, :])
