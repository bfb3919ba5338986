"""The first fit of the README on products of Amazon, and fits on tables with columns that say nothing.

    ORDINALQ_DATA=FOLDER python benchmarks/analysts.py [--parts products columns] [--splits 0 1 ...]
    python benchmarks/analysts.py --tiny      # synthetic reviews, seconds, no file

Part "products" runs `fit --target stars --text review --by product` and `predict --by product --interval 0.95` as in
the README, and counts products whose interval contains the true mean of stars. Part "columns" fits 25,000 reviews with
date, title, helpful votes and text, once by default and once on the text columns that are named, and compares CPU time
and expected error.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import contextlib
import io
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from ordinalq.cli.main import main as command
from ordinalq.io.table import open_table
from ordinalq.tables.fit import fit_table

N_ROWS, MIN_ITEMS = 25_000, 20
NAMES = {
    "reviews.rating": "stars",
    "reviews.text": "review",
    "reviews.title": "title",
    "reviews.date": "date",
    "reviews.numHelpful": "helpful",
}


def amazon():
    """Return reviews of devices with their product: the first 60 characters of its name."""
    frame = pd.read_parquet(Path(os.environ["ORDINALQ_DATA"]) / "amazon_consumer_reviews.parquet")
    frame = frame.rename(columns=NAMES)[lambda x: x["stars"].notna() & x["review"].notna()]
    name = frame["name"].str.slice(0, 60).str.strip().fillna("(no name)")
    return frame.assign(product=name, stars=frame["stars"].astype(int))[["product", *NAMES.values()]]


def synthetic(n_products=16, n_items=60):
    """Return synthetic reviews in the columns of :func:`amazon`."""
    rng = np.random.default_rng(0)
    words = np.array(["awful", "poor", "usual", "good", "superb"])
    product = np.repeat([f"product {i:02d}" for i in range(n_products)], n_items)
    p = rng.dirichlet(np.full(5, 2.0), size=n_products)
    stars = np.concatenate([rng.choice(5, size=n_items, p=one) for one in p])
    near = np.clip(stars + rng.integers(-1, 2, size=len(stars)), 0, 4)
    others = [" ".join(rng.choice(["day", "week", "box", "cable", "price"], 4)) for _ in stars]
    return pd.DataFrame(
        {
            "product": product,
            "stars": stars + 1,
            "review": np.char.add(np.char.add(words[near], " "), others),
            "title": np.char.add(np.char.add(words[near], " one of "), others),
            "date": "2024-01-31",
            "helpful": rng.poisson(0.5, size=len(stars)),
        }
    )


def run(*arguments):
    """Run the command line."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert command([str(one) for one in arguments]) == 0


def contained(train, new, folder, by):
    """Return numbers of items, whether the interval contains the true mean, and its width, of each product."""
    train[["product", "review", "stars"]].to_csv(folder / "train.csv", index=False)
    new[["product", "review"]].to_csv(folder / "new.csv", index=False)
    groups = ["--by", "product"] if by else []
    run("fit", folder / "train.csv", "--target", "stars", "--text", "review", *groups, "--out", folder / "stars.oq")
    ask = ["--by", "product", "--interval", "0.95", "--out", folder / "result.csv"]
    run("predict", folder / "stars.oq", folder / "new.csv", *ask)
    found = pd.read_csv(folder / "result.csv").set_index("product")
    true = new.groupby("product")["stars"].mean().reindex(found.index)
    low, high = found["mean_class_lower"], found["mean_class_upper"]
    return found["n_items"].to_numpy(), ((low <= true) & (true <= high)).to_numpy(), (high - low).to_numpy()


def products(frame, splits):
    """Print how many intervals contain the true mean, in new products and in new rows of the training products."""
    print("\n| new rows come from | fit | products | contained | with 20 items or more | contained | mean width |")
    print("|" + "---|" * 7)
    for kind in ("new products", "the training products"):
        for by in (True, False):
            parts = []
            for split in splits:
                rng = np.random.default_rng(split)
                keys = frame["product"].to_numpy()
                unique = pd.unique(keys)
                chosen = np.isin(keys, rng.choice(unique, len(unique) // 2, replace=False))
                train = chosen if kind == "new products" else rng.random(len(keys)) < 0.5
                with tempfile.TemporaryDirectory() as folder:
                    parts.append(contained(frame[train], frame[~train], Path(folder), by))
            n, inside, width = (np.concatenate(one) for one in zip(*parts, strict=True))
            large = n >= MIN_ITEMS
            cells = [f"{inside.sum()} ({inside.mean():.0%})", f"{large.sum()}", f"{inside[large].sum()}"]
            cells[-1] += f" ({inside[large].mean():.0%})"
            fit = "--by product" if by else "without --by"
            print(f"| {kind} | {fit} | {len(n)} | {' | '.join(cells)} | {width.mean():.2f} |", flush=True)


def columns(frame):
    """Print CPU time and expected error of the default columns and of the text columns that are named."""
    print("\n| columns | used | CPU seconds | expected error in samples of 100 | of 1000 |\n|" + "---|" * 5)
    some = frame.sample(min(N_ROWS, len(frame)), random_state=0)[["date", "title", "helpful", "review", "stars"]]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.csv"
        some.to_csv(path, index=False)
        # The first fit of a process also imports modules.
        fit_table(open_table(path), "stars", text=["title"], max_items=500)
        for name, text in (("by default", ()), ("title, review", ("title", "review")), ("by default, again", ())):
            start = time.process_time()
            model = fit_table(open_table(path), "stars", text=text)
            seconds, expected = time.process_time() - start, model.fitted().training_.expected
            found.append((seconds, expected))
            errors = " | ".join(f"{4 * error:.4f} stars" for error in expected.values())
            print(f"| {name} | {', '.join(model.kinds_)} | {seconds:.1f} | {errors} |", flush=True)
    times = [min(found[0][0], found[2][0]) / found[1][0], max(found[0][0], found[2][0]) / found[1][0]]
    errors = [found[0][1][size] / found[1][1][size] for size in found[1][1]]
    print(f"\nRatio of CPU times {times[0]:.2f} to {times[1]:.2f}, of expected errors {max(errors):.3f}")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["products", "columns"])
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    frame, splits = (synthetic(), [0]) if args.tiny else (amazon(), args.splits)
    if "products" in args.parts:
        products(frame, splits)
    if "columns" in args.parts:
        columns(frame)


if __name__ == "__main__":
    main()
