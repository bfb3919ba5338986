"""Classes and their order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from ordinalq.samples.labels import encode_labels

MOODS = ["VeryUnhappy", "Unhappy", "Happy", "VeryHappy"]


@pytest.mark.parametrize(
    "y",
    [
        [5, 1, 3, 1],
        np.array([5.0, 1.0, 3.0, 1.0]),
        np.array([5, 1, 3, 1], dtype=object),
        np.array([5, 1, 3, 1], dtype=">i4"),
        pd.Series([5, 1, 3, 1], index=[9, 8, 7, 6]),
        pd.Series([5, 1, 3, 1], dtype="Int64"),
        pl.Series([5, 1, 3, 1]),
    ],
    ids=["list", "float", "object", "big-endian", "pandas", "nullable", "polars"],
)
def test_numbers_are_ordered_by_value(y):
    classes, codes = encode_labels(y)
    assert_array_equal(classes.astype(float), [1, 3, 5])
    assert_array_equal(codes, [2, 0, 1, 0])


@pytest.mark.parametrize(
    "y",
    [
        pd.Categorical(["Happy", "VeryUnhappy"], categories=MOODS, ordered=True),
        pd.Series(["Happy", "VeryUnhappy"], dtype=pd.CategoricalDtype(MOODS, ordered=True)),
        pl.Series(["Happy", "VeryUnhappy"], dtype=pl.Enum(MOODS)),
    ],
    ids=["Categorical", "Series", "Enum"],
)
def test_ordered_categories_keep_their_order(y):
    classes, codes = encode_labels(y)
    assert_array_equal(classes, MOODS)
    assert_array_equal(codes, [2, 0])


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series], ids=lambda f: f.__name__)
def test_given_classes_decide_the_order_of_strings(make):
    y = make(["Happy", "VeryUnhappy", "Happy"])
    classes, codes = encode_labels(y, classes=MOODS)
    assert_array_equal(classes, MOODS)
    assert_array_equal(codes, [2, 0, 2])


def test_given_classes_may_turn_numbers_round():
    assert_array_equal(encode_labels([1, 2, 3], classes=[3, 2, 1])[1], [2, 1, 0])


@pytest.mark.parametrize(
    ("y", "kwargs", "message"),
    [
        (["good", "bad", "ugly"], {}, r"labels without an order.*classes="),
        (pd.Categorical(["a", "b", "c"]), {}, "labels without an order"),
        ([1, 1, 1], {}, r"at least 2 ordered classes, got 1 class: \[1\]"),
        ([True, True], {}, "at least 2 ordered classes"),
        ([1.0, np.nan, 2.0, 3.0], {}, "no missing labels, got 1, the first at item 1"),
        (["a", None], {"classes": ["a", "b", "c"]}, "no missing labels"),
        (pd.Series([1, 2, None, 3], dtype="Int64"), {}, "no missing labels"),
        ([1.0, np.inf, 2.0, 3.0], {}, "finite labels, got .*inf"),
        ([], {}, "at least one label"),
        (np.random.default_rng(0).random(100), {}, r"100 different values in 100 items.*bin_target"),
        ([[1, 2, 3]], {}, "one-dimensional"),
        (None, {}, "one-dimensional"),
        ("abc", {}, "one-dimensional"),
        (3, {}, "one-dimensional"),
        ([1, 2, 3, 9], {"classes": [1, 2, 3]}, r"not in classes \[1, 2, 3\]: \[9\]"),
        ([1, 1], {"classes": [1]}, "at least 2 classes"),
        ([1, 2], {"classes": [1, 2, 2]}, "distinct"),
        ([1, 2], {"classes": "abc"}, "list of labels"),
        ([1, 2], {"classes": [[1], [2], [3]]}, "list of labels"),
        ([1, 2], {"classes": [1, 2, 3], "every_class": True}, r"none of \[3\]"),
        (
            pd.Categorical(["a", "b"], categories=["a", "b", "c"], ordered=True),
            {"every_class": True},
            r"none of \['c'\]",
        ),
    ],
)
def test_bad_labels_are_rejected_with_a_reason(y, kwargs, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y, **kwargs)
