"""Tables and models that engines are tried with: what one machine gives is what they must give."""

import datetime as dt

import numpy as np
import pandas as pd

import ordinalq as oq

METHODS = {
    "PACC": oq.PACC(),
    "OPACC": oq.OPACC(),
    "HDy": oq.HDy(),
    "GroupBLP": oq.GroupBLP(),
    "SLD": oq.SLD(),
}
# Groups of all types, with missing values, by one column and by two.
GROUPS = ("shop", "number", "day", ["shop", "number"])
SCHEMA = "x double, z double, shop string, number long, day date, stars long"


def table(n, rng):
    """Rows with missing groups."""
    stars = rng.integers(1, 4, n)
    frame = pd.DataFrame(
        {
            "x": stars + rng.normal(size=n),
            "z": rng.normal(size=n),
            "shop": rng.choice(["a", "b", "d"], n),
            "number": pd.array(rng.choice([1, 2, 30], n), dtype="Int64"),
            "day": rng.choice(np.array([dt.date(2024, 1, day) for day in (1, 2, 3)]), n),
            "stars": stars,
        }
    )
    for name in ("shop", "number", "day"):
        frame.loc[rng.random(n) < 0.1, name] = None
    return frame


def cases():
    """Return fitted models by name, and a table."""
    rng = np.random.default_rng(0)  # where a row is scored has nothing to do with what is in it
    train = table(500, rng)
    models = {
        name: oq.TableModel(method, features=["x", "z"]).fit(train, "stars", by="shop" if name == "GroupBLP" else None)
        for name, method in METHODS.items()
    }
    return models, table(1500, rng)


def assert_same(found, model, frame, by, level):
    """Compare a table of estimates, in any order, with that of one machine."""
    names = [by] if isinstance(by, str) else list(by)
    expected = model.predict_groups(frame, by, level=level).frame()
    assert list(found.columns) == list(expected.columns)
    found, expected = (_indexed(one, names) for one in (found, expected))
    assert list(found.index) == list(expected.index)
    for name in expected.columns:
        if expected[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-10, err_msg=name)
        else:
            assert found[name].tolist() == expected[name].tolist()
    assert sum("None" in key for key in found.index) > 0


def _indexed(frame, names):
    keys = ["|".join(_word(value) for value in row) for row in frame[names].to_numpy(dtype=object)]
    return frame.drop(columns=names).set_axis(keys).sort_index()


def _word(value):
    if pd.isna(value):
        return "None"
    return str(int(value)) if isinstance(value, float) else str(value)
