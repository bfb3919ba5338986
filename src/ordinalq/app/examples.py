"""Two built-in examples, made up: reviews with stars, and events of a telescope. Always the same tables."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.app.work import Asked, Choices, Table, preview
from ordinalq.tables.preview import TablePreview

SEED = 20_240_229

# What buyers say, from one star to five; much of it is said of neighbouring stars too.
SAID = (
    ("broken on arrival", "money thrown away", "went straight back", "never again", "the worst I have had"),
    ("weak motor", "flimsy plastic", "gave up after a month", "louder than promised", "not worth the price"),
    ("does what it should", "average at best", "fine for the money", "neither good nor bad", "a few quirks"),
    ("happy with it", "sturdy enough", "good for everyday use", "pleasant and quick", "better than the last one"),
    ("could not be happier", "a delight every morning", "superb in every way", "flawless", "everybody wants one"),
)
# What is said of a machine whatever its stars: products differ in more than their shares.
PARTS = ("lid", "switch", "cable", "handle", "filter", "timer", "base", "spout", "display", "blade", "tray", "dial")
KINDS = ("kettle", "toaster", "blender", "grinder", "mixer", "juicer", "steamer", "grill")
MONTHS = 12

# Lower edges of the bins of energy, in GeV, and the tables of events.
EDGES = (500, 800, 1250, 2000, 3200, 5000, 8000, 12500)
N_SIMULATED = 4000
N_NIGHTS, PER_NIGHT = 6, 1200


def make_and_look(name: str, folder: Path) -> tuple[Table, TablePreview, Choices, dict[str, Table], Asked]:
    """Write the tables of an example into a folder, and look at the labelled one.

    Return this one, what is in it and what would be chosen on the page, both tables, and what would be asked.
    """
    labelled, new = folder / "example-labelled.csv", folder / "example-new.csv"
    write = {"reviews": _reviews, "spectrum": _spectrum}[name]
    choices, by = write(labelled, new, np.random.default_rng(SEED))
    ready = {"labelled": Table(labelled, f"{name}-labelled.csv"), "new": Table(new, f"{name}-new.csv")}
    return ready["labelled"], preview(ready["labelled"], whole=True), choices, ready, Asked((by,))


def _reviews(labelled: Path, new: Path, rng: np.random.Generator) -> tuple[Choices, str]:
    """Reviews of 24 products with stars, and of eight other products over a year, without."""
    rows: list[Sequence[Any]] = []
    for number in range(24):
        product = f"{KINDS[number % len(KINDS)]} {number // len(KINDS) + 1}00"
        p = rng.dirichlet((1.5, 1.5, 2.5, 4.0, 5.0))
        rows += _written(product, p, 110, rng, lambda stars: [stars])
    _write(labelled, ("product", "date", "review", "stars"), rows, rng)
    rows = []
    for number, kind in enumerate(KINDS):
        for month in range(MONTHS):
            # One gets better over the year, one worse, the others stay as they are.
            better = {0: 0.09, 3: -0.09}.get(number, 0.0) * (month - MONTHS / 2)
            p = _around(3.4 + 0.2 * (number % 4 - 1.5) + 3 * better)
            rows += _written(f"{kind} X", p, int(rng.integers(35, 65)), rng, lambda _: [], month)
    _write(new, ("product", "date", "review"), rows, rng)
    return Choices("stars", "product", text=("review",)), "product"


def _around(mean: float) -> Floats:
    """Return a smooth distribution of stars about a mean."""
    weights = np.exp(-0.35 * (np.arange(1, 6) - mean) ** 2)
    return np.asarray(weights / weights.sum())


def _written(
    product: str, p: Floats, n: int, rng: np.random.Generator, known: Any, month: int | None = None
) -> list[Sequence[Any]]:
    """Return n rows about a product: its name, a day, a review, and what is known of the stars."""
    favourite = rng.choice(PARTS, size=3, replace=False)
    rows: list[Sequence[Any]] = []
    for stars in rng.choice(5, size=n, p=p):
        near = np.clip(stars + rng.choice([-1, 0, 0, 1], size=int(rng.integers(2, 5))), 0, 4)
        said = [SAID[i][rng.integers(5)] for i in near]
        part = favourite[rng.integers(3)] if rng.random() < 0.7 else PARTS[rng.integers(len(PARTS))]
        day = f"2024-{1 + (int(rng.integers(MONTHS)) if month is None else month):02d}-{rng.integers(1, 29):02d}"
        text = f"{product.split()[0].capitalize()} with a {part}: {', '.join(said)}."
        rows.append([product, day, text, *known(int(stars) + 1)])
    return rows


def _spectrum(labelled: Path, new: Path, rng: np.random.Generator) -> tuple[Choices, str]:
    """Simulated events with their bin of energy, and observed ones of six nights, without."""
    n = len(EDGES)
    columns = ("size", "width", "length", "distance", "time")
    bins = rng.integers(n, size=N_SIMULATED)
    rows = [[*row, EDGES[i]] for row, i in zip(_observed(bins, rng), bins, strict=True)]
    _write(labelled, (*columns, "energy"), rows, rng)
    found: list[Sequence[Any]] = []
    for night in range(N_NIGHTS):
        p = np.exp(-(0.45 + 0.05 * night) * np.arange(n))
        seen = rng.choice(n, size=PER_NIGHT, p=p / p.sum())
        found += [[f"2024-03-{10 + night}", *row] for row in _observed(seen, rng)]
    _write(new, ("night", *columns), found, rng)
    return Choices("energy"), "night:day"


def _observed(bins: Any, rng: np.random.Generator) -> list[list[str]]:
    """Return what a telescope sees of events in bins of energy, five numbers each."""
    energy = bins + rng.random(len(bins))
    distance = rng.uniform(0.2, 1.4, size=len(bins))
    size = 4 + 0.35 * energy - 0.3 * distance**2 + rng.normal(0, 0.25, len(bins))
    width = 0.05 + 0.006 * energy + rng.normal(0, 0.008, len(bins))
    length = 0.15 + 0.012 * energy + 0.05 * distance + rng.normal(0, 0.02, len(bins))
    time = 2 + 0.2 * energy + rng.normal(0, 1.0, len(bins))
    return [[f"{value:.4f}" for value in row] for row in zip(size, width, length, distance, time, strict=True)]


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]], rng: np.random.Generator) -> None:
    """Write rows in random order."""
    rows = list(rows)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows[i] for i in rng.permutation(len(rows)))
