"""Cost of fitting the default quantifier to a table beyond the fits of its classifiers, in seconds of the processor.

    ORDINALQ_DATA=FOLDER python benchmarks/fit_cost.py [--rows 20000] [--tiny]

"texts": film reviews, cut to 600 characters, with ten ratings; without ORDINALQ_DATA, random words. "numbers":
Friedman's function of ten columns, with five classes. "classifiers" is the time of the members of the stack, all folds
included. "total" also has the encoding of columns, stacking, the method, the expected error and the learning curve, but
not the import of modules.
"""

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import ordinalq as oq
from ordinalq.classifiers.cross_fitting import CrossFitted, OutOfBag
from ordinalq.classifiers.stacking import OrdinalProbit
from ordinalq.datasets.regression import friedman


def texts(n, rng):
    """Return reviews with ratings."""
    path = Path(os.environ.get("ORDINALQ_DATA", "absent")) / "imdb_reviews.parquet"
    if path.exists():
        frame = pd.read_parquet(path, columns=["text", "rating"]).sample(n, random_state=0)
        return frame.assign(text=frame["text"].str[:600], y=frame.pop("rating"))
    y = rng.integers(1, 6, n)
    codes = np.abs(rng.standard_cauchy((n, 100)) * 50 + 20 * y[:, None]).astype(int) % 5000
    return pd.DataFrame({"text": [" ".join(f"word{code}" for code in row) for row in codes], "y": y})


def numbers(n, rng):
    """Return ten columns and the class of Friedman's function."""
    X = rng.random((n, 10))
    target = friedman(X) + rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(10)]).assign(y=pd.qcut(target, 5, labels=False))


class Clock:
    """Adds up the time of all calls of some methods `fit`."""

    def __init__(self, *classes):
        self.seconds = 0.0
        for cls in classes:
            cls.fit = self.timed(cls.fit)

    def timed(self, fit):
        """Return the method with its time added up."""

        def measured(*args, **kwargs):
            start = time.process_time()
            result = fit(*args, **kwargs)
            self.seconds += time.process_time() - start
            return result

        return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--tiny", action="store_true", help="a few rows, to try the script")
    n = 300 if (options := parser.parse_args()).tiny else options.rows
    warnings.simplefilter("ignore")
    clock = Clock(CrossFitted, OutOfBag, OrdinalProbit)
    print(f"{n:,} rows | classifiers | total | ratio\n---|--:|--:|--:")
    for make, how in ((texts, {"text": ["text"]}), (numbers, {})):
        oq.TableModel(**how).fit(make(300, np.random.default_rng(0)), target="y")
        frame = make(n, np.random.default_rng(1))
        clock.seconds, start = 0.0, time.process_time()
        oq.TableModel(**how).fit(frame, target="y")
        total = time.process_time() - start
        print(f"{make.__name__} | {clock.seconds:.2f} | {total:.2f} | {total / clock.seconds:.2f}", flush=True)
