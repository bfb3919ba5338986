"""Options for interval estimation."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import check_choice, check_integer, check_random_state

ESTIMANDS = ("sample", "population")
BASES = ("auto", "model", "labels")
# Sample replicates that share a replicate of the held-out items.
PER_MODEL = 5


class Draws(NamedTuple):
    """Replicates to draw: their number and the generator.

    Blocks of samples are worked on one by one, or by different machines: all draw the same replicates of the held-out
    items, and then those of its samples, from a stream that belongs to the number of the block.
    """

    estimand: str
    n_models: int
    rng: np.random.Generator
    block: int = 0

    @property
    def n_replicates(self) -> int:
        """Replicates of each sample in total."""
        return self.n_models * PER_MODEL

    def for_samples(self) -> "Draws":
        """Return the draws of the samples of the block, after those of held-out items."""
        return self if self.block == 0 else self._replace(rng=self.rng.spawn(self.block)[-1])


@dataclass(frozen=True)
class IntervalOptions:
    """Options for interval estimation.

    Parameters
    ----------
    estimand : {"sample", "population"}, default="sample"
        Intervals for the prevalence in this sample, or in the population that it was drawn from.
    n_replicates : int, default=200
        Replicates of each sample, at least 20; five of them share one replicate of the held-out items.
    random_state : int or Generator, default=0
        Seed of the replicates.
    basis : {"auto", "model", "labels"}, default="auto"
        What estimates and intervals rest on if some items of a group are labelled. "labels": the random draw of these
        items alone, which is valid even if the model is wrong. "model": the method's model of groups, informed by the
        labels; narrower, and as right as the model is. "auto" is "model" if the method has such a model, like GroupBLP,
        and the group is like the training groups, else "labels". Groups with fewer than ten labels never rest on labels
        alone.
    bias : bool, default=True
        Widen bootstrap intervals by the bias of the method, which samples of the held-out items show, and by the errors
        of the training groups. False gives the plain bootstrap. AdjustedML and GroupBLP do not use it.

    Examples
    --------
    >>> IntervalOptions(estimand="population", n_replicates=500)
    IntervalOptions(estimand='population', n_replicates=500, random_state=0, basis='auto', bias=True)
    """

    estimand: str = "sample"
    n_replicates: int = 200
    random_state: Any = 0
    basis: str = "auto"
    bias: bool = True

    def __post_init__(self) -> None:
        check_choice("estimand", self.estimand, ESTIMANDS)
        check_integer("n_replicates", self.n_replicates, minimum=20)
        check_random_state(self.random_state)
        check_choice("basis", self.basis, BASES)
        if not isinstance(self.bias, bool):
            raise TypeError(f"bias must be True or False, got {self.bias!r}.")

    def draws(self, block: int = 0) -> Draws:
        """Return the draws with a fresh generator, for a block of samples.

        Parameters
        ----------
        block : int, default=0
            Number of the block of samples.

        Returns
        -------
        Draws
            Random generators of the block.
        """
        return Draws(self.estimand, -(-self.n_replicates // PER_MODEL), check_random_state(self.random_state), block)

    def repeatable(self) -> "IntervalOptions":
        """Return the options with a seed instead of a generator."""
        state = self.random_state
        return replace(self, random_state=int(state.integers(2**63))) if hasattr(state, "integers") else self


def check_level(level: Any) -> float:
    """Return the level of intervals, a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating):
        raise TypeError(
            f"level must be a number between 0 and 1, such as 0.95, got {type(level).__name__}. "
            "Pass groups as groups=..."
        )
    if not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}.")
    return float(level)
