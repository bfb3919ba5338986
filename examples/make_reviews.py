"""Write a small synthetic table of reviews: labelled ones, and unlabelled ones of several products.

    python examples/make_reviews.py FOLDER

writes ``train.csv`` and ``labelled.csv`` (product, review, stars), ``new.csv`` (product, date, review) and
``truth.csv`` (product and its prevalence of each star, which is unknown in practice). Always the same files.
"""

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

OPENINGS = [
    "I bought this for my kitchen",
    "We have had it for two months",
    "My sister gave it to me",
    "It came in a plain box",
    "Ordered it on a Monday",
    "This is my second one",
    "I use it every day",
    "Not sure what I expected",
]
# What people say, from one star to five; most of it fits neighbouring stars too.
OPINIONS = [
    ["it broke at once", "a waste of money", "I sent it back", "it never worked", "terrible quality", "avoid it"],
    ["rather disappointing", "it feels cheap", "it stopped working", "poor quality", "I regret it", "too noisy"],
    ["it is all right", "it does the job", "nothing special", "you get what you pay for", "some flaws", "acceptable"],
    ["works well", "good value", "easy to use", "I like it", "solid and quiet", "good quality"],
    ["I love it", "excellent quality", "works perfectly", "best one so far", "highly recommended", "a joy to use"],
]
CLOSINGS = ["Delivery was quick.", "The manual is short.", "It is blue.", "We will see.", "Shipping took a week.", ""]

# Labelled reviews are of many products, whose stars differ: mean prevalences, and how many reviews they are worth.
TRAINING = (0.18, 0.14, 0.18, 0.22, 0.28)
SPREAD = 5
PRODUCTS = {
    "blender": (300, (0.05, 0.05, 0.10, 0.30, 0.50)),
    "fan": (250, (0.10, 0.20, 0.40, 0.20, 0.10)),
    "kettle": (400, (0.45, 0.25, 0.15, 0.10, 0.05)),
    "lamp": (150, (0.20, 0.20, 0.20, 0.20, 0.20)),
    "toaster": (500, (0.02, 0.05, 0.13, 0.45, 0.35)),
}


def review(star: int, rng: np.random.Generator) -> str:
    """Write a review of 1 to 5 stars: two to four opinions, each of this star or, more rarely, of one nearby."""
    said = []
    for _ in range(rng.integers(2, 5)):
        nearby = int(np.clip(star - 1 + rng.choice([-2, -1, 0, 1, 2], p=[0.05, 0.2, 0.5, 0.2, 0.05]), 0, 4))
        said.append(OPINIONS[nearby][rng.integers(6)])
    start, end = OPENINGS[rng.integers(len(OPENINGS))], CLOSINGS[rng.integers(len(CLOSINGS))]
    return f"{start}, {', '.join(said)}. {end}".strip()


def stars(n: int, prevalences: Sequence[float], rng: np.random.Generator) -> list[int]:
    """Draw n numbers of stars."""
    return [int(star) for star in rng.choice([1, 2, 3, 4, 5], size=n, p=prevalences)]


def labelled(n: int, n_products: int, rng: np.random.Generator) -> list[list[object]]:
    """Write n reviews of products with various stars: product, review and stars of each."""
    prevalences = rng.dirichlet(SPREAD * np.array(TRAINING), size=n_products)
    products = rng.integers(n_products, size=n)
    given = [stars(1, prevalences[product], rng)[0] for product in products]
    return [[f"P{product + 1:02d}", review(s, rng), s] for product, s in zip(products, given, strict=True)]


def day(star: int, rng: np.random.Generator) -> str:
    """Draw a day of the first half of a year; reviews with few stars are more frequent towards its end."""
    weights = np.exp(0.12 * (3 - star) * np.arange(6))
    return f"2024-{rng.choice(6, p=weights / weights.sum()) + 1:02d}-{rng.integers(1, 29):02d}"


LABELLED = ("product", "review", "stars")


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main(folder: Path) -> None:
    """Write the files."""
    rng, days = np.random.default_rng(0), np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "train.csv", LABELLED, labelled(3000, 40, rng))
    new, truth = [], []
    for product, (n, prevalences) in PRODUCTS.items():
        given = stars(n, prevalences, rng)
        new += [[product, day(s, days), review(s, rng)] for s in given]
        truth.append([product, *(given.count(s) / n for s in range(1, 6))])
    new = [new[i] for i in rng.permutation(len(new))]
    write(folder / "new.csv", ["product", "date", "review"], new)
    write(folder / "truth.csv", ["product", 1, 2, 3, 4, 5], truth)
    write(folder / "labelled.csv", LABELLED, labelled(2000, 30, rng))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
