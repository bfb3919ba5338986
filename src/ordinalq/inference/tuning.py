"""How much smoothing: the strength of a regularizer, chosen on the training items alone.

The held-out items V play both parts. The class means M come from a random third of them, APP-OQ samples are drawn from
all of them; the strength whose estimates have the smallest mean NMD is taken. Nothing is fitted but M, for V is
held-out already. A third is a compromise: M from the half of V deviates from V's own means exactly as much as M from
all of V deviates from the truth; a third doubles that variance, which leaves a margin for what differs between held-out
scores and those of new items.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ordinalq.contract.quantifier import Quantifier
from ordinalq.contract.summary import Summary
from ordinalq.measures import nmd
from ordinalq.protocols import APPOQ
from ordinalq.samples import Samples
from ordinalq.simplex import clean
from ordinalq.validation import Floats

if TYPE_CHECKING:
    import pandas as pd

Codes = npt.NDArray[np.intp]

# How often V is split, and APP samples of each split, of which APP-OQ keeps the smoothest fifth. Where a single sample
# takes a millisecond, fewer have to do, in larger batches; they are the same for all strengths.
SPLITS, DRAWS = 24, 200
FEWER_SPLITS, FEWER_DRAWS = 6, 160
FRACTION = 0.2
# Items of a sample, or as many as V has.
SAMPLE_SIZE = 1000
# The draws belong to the method, not to chance: the same data give the same strength.
SEED = 0
# After the grid that a smoother starts with, points halfway between the best one and its neighbours are tried, twice.
REFINEMENTS = 2


class Trial(NamedTuple):
    """A quantifier, fitted on some of the held-out items, and samples of known prevalences (B, n)."""

    quantifier: Quantifier
    summary: Summary
    prevalences: Floats


@dataclass(frozen=True, eq=False)
class Tuning:
    """How the strength of a regularizer was chosen.

    Attributes
    ----------
    parameter : str
        "tau" or "interpolation".
    value : float
        The chosen strength.
    values : ndarray (k,)
        The strengths that were tried, ascending.
    errors : ndarray (k,)
        Mean NMD of each over all samples.
    standard_errors : ndarray (k,)
        Of these means, from the scatter between the splits.
    n_samples, sample_size : int
        Number of the samples, and of the items of each.
    """

    parameter: str
    value: float
    values: Floats
    errors: Floats
    standard_errors: Floats
    n_samples: int
    sample_size: int

    def __str__(self) -> str:
        best, none = self.errors.min(), self.errors[0]
        text = (
            f"{self.parameter} = {self.value:.3g}, the best of {len(self.values)} on {self.n_samples} smooth samples "
            f"(APP-OQ {FRACTION:.0%}) of {self.sample_size} training items: NMD {best:.4f}"
        )
        return f"{text}, without smoothing {none:.4f}."

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain numbers and lists."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    def table(self) -> "pd.DataFrame":
        """Return the curve as a table: columns named after the parameter, then nmd and standard_error."""
        import pandas as pd

        columns = {self.parameter: self.values, "nmd": self.errors, "standard_error": self.standard_errors}
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve, see :func:`ordinalq.plot.tau_path`."""
        from ordinalq.plot import tau_path

        return tau_path(self.values, self.errors, self.standard_errors, chosen=self.value, ax=ax)


def tune(parameter: str, start: Iterable[float], trials: Iterable[Trial]) -> Tuning:
    """Choose a strength of smoothing by the mean NMD over trials.

    Parameters
    ----------
    parameter : str
        Its name.
    start : iterable of float
        The strengths to begin with, ascending.
    trials : iterable of Trial
        They are kept in memory, since every strength goes through all of them.
    """
    trials = list(trials)
    # Mean NMD of each trial by strength
    found: dict[float, Floats] = {}

    def error(value: float) -> float:
        if value not in found:
            solved = [(t.prevalences, t.quantifier.with_strength(value).solve(t.summary).p) for t in trials]
            found[value] = np.array([nmd(true, clean(p)).mean() for true, p in solved])
        return float(found[value].mean())

    values = list(start)
    for _ in range(REFINEMENTS):
        at = values.index(min(values, key=error))
        neighbours = values[max(at - 1, 0) : at + 2]
        # No point lies halfway to zero on a logarithmic scale.
        halfway = [float(np.sqrt(a * b)) for a, b in pairwise(neighbours) if a > 0]
        values = sorted({*values, *halfway})
    errors = np.array([error(value) for value in values])
    spread = np.array([found[value].std(ddof=1) for value in values])
    return Tuning(
        parameter=parameter,
        value=values[int(errors.argmin())],
        values=np.array(values),
        errors=errors,
        standard_errors=spread / np.sqrt(len(trials)),
        n_samples=sum(len(trial.summary) for trial in trials),
        sample_size=int(trials[0].summary.n_items[0]),
    )


def thirds(codes: Codes, pool: Codes, *, few: bool = False) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield masks (N,) of random thirds of the items `pool`, with at least two items of each class that has them."""
    rng = np.random.default_rng(SEED)
    counts = np.bincount(codes[pool])
    wanted = np.minimum(counts, np.maximum(2, -(-counts // 3)))
    starts = np.cumsum(counts) - counts
    for _ in range(FEWER_SPLITS if few else SPLITS):
        order = rng.permutation(pool)
        order = order[np.argsort(codes[order], kind="stable")]
        position = np.arange(len(order)) - starts[codes[order]]
        mask = np.zeros(len(codes), dtype=bool)
        mask[order[position < wanted[codes[order]]]] = True
        yield mask


def smooth_samples(codes: Codes, pool: Codes, *, few: bool = False) -> Iterator[Samples]:
    """Yield the APP-OQ samples of each split, drawn from the items `pool` of codes (N,)."""
    size = min(SAMPLE_SIZE, len(pool))
    draws = FEWER_DRAWS if few else DRAWS
    for split in range(FEWER_SPLITS if few else SPLITS):
        drawn = APPOQ(FRACTION, draws, size, small_pool="replace", random_state=SEED + split).draw(codes[pool])
        items = pool[drawn.items]
        yield Samples(items, drawn.offsets, len(codes), classes=drawn.classes, prevalences=drawn.prevalences)
