"""The real files, from a folder of local copies: runs only where ORDINALQ_DATA names one."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

import ordinalq as oq
from ordinalq.datasets.amazon import book_prevalences
from ordinalq.datasets.regression import friedman
from ordinalq.datasets.text import tfidf

FOLDER = Path(os.environ.get("ORDINALQ_DATA", "absent"))
pytestmark = pytest.mark.skipif(
    "ORDINALQ_DATA" not in os.environ, reason="set ORDINALQ_DATA to a folder with the real files"
)


def all_counts(dataset):
    return sum(np.bincount(part.y, minlength=len(dataset.classes)) for part in
               (dataset.train, dataset.validation, dataset.test))  # fmt: skip


@pytest.mark.parametrize(
    ("file", "column", "min_count", "span"),
    [
        ("fried", "target", 100, [-0.523, 30.054]),
        ("fried", "target", 1000, [2.916, 25.738]),
        ("metro_traffic", "traffic_volume", 1000, [0, 7241]),
        ("beijing_pm25", "pm2.5", 1000, [0, 241]),
        ("beijing_pm25", "pm2.5", 100, [0, 535]),
    ],
)
def test_span_of_the_real_targets(file, column, min_count, span):
    target = pd.read_parquet(FOLDER / f"{file}.parquet")[column]
    binning = oq.datasets.bin_target(target, min_count=min_count)
    assert_array_equal(binning.edges[[0, -1]], span)


def test_counts_of_the_real_fried():
    target = pd.read_parquet(FOLDER / "fried.parquet")["target"]
    counts = np.array([178, 1378, 3908, 6956, 9072, 8759, 6233, 3275, 897, 110])
    assert_array_equal(oq.datasets.bin_target(target, outside="drop").counts, counts)
    assert_array_equal(oq.datasets.bin_target(target).counts, counts + np.eye(10, dtype=int)[[0, 9]].sum(axis=0))
    assert_array_equal(all_counts(oq.datasets.load_dataset("fried-openml")), oq.datasets.bin_target(target).counts)


def test_real_fried_follows_the_formula():
    table = pd.read_parquet(FOLDER / "fried.parquet").to_numpy()
    residuals = table[:, -1] - friedman(table[:, :10])
    assert_allclose([residuals.mean(), residuals.std()], [0, 1], atol=0.006)
    assert len(table) == 40_768


def test_fried_reads_the_published_file_on_request():
    dataset = oq.datasets.load_dataset("fried", data=FOLDER / "fried.parquet")
    assert_array_equal(all_counts(dataset), all_counts(oq.datasets.load_dataset("fried-openml")))


def test_partial_news_and_fact_load_by_name():
    news = oq.datasets.load_dataset("online-news-popularity")
    assert all_counts(news).sum() == 14_828
    assert news.train.X.shape == (7414, 59)
    fact = oq.datasets.load_dataset("fact-oq")
    assert_array_equal(all_counts(fact), [33, 107, 206, 207, 144, 119, 63, 44, 29, 22, 12, 14])
    assert fact.train.X.shape == (500, 20)


@pytest.mark.parametrize(
    ("file", "target", "n_items"),
    [("metro_traffic", "traffic_volume", 48_204), ("beijing_pm25", "pm2.5", 41_757), ("diamonds", "price", 53_940)],
)
def test_tables_become_data_sets(file, target, n_items):
    dataset = oq.datasets.make_dataset(FOLDER / f"{file}.parquet", target=target, n_bins=10)
    assert all_counts(dataset).sum() == n_items
    assert all_counts(dataset).min() >= 100
    assert np.isfinite(dataset.train.X).all()


def test_cut_of_diamonds_is_an_ordinal_target():
    order = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
    dataset = oq.datasets.make_dataset(FOLDER / "diamonds.parquet", target="cut", classes=order)
    assert_array_equal(all_counts(dataset), [1610, 4906, 12_082, 13_791, 21_551])


def test_kindle_reviews_go_through_the_extraction():
    dataset = oq.datasets.load_dataset("amazon-oq-bk-tfidf", data=FOLDER / "amazon_kindle_store_sample.parquet")
    assert_array_equal(all_counts(dataset), [49, 70, 128, 348, 979])
    real = dataset.samples("real", "test").prevalences
    assert_allclose(real.mean(axis=0), [0.158, 0.086, 0.090, 0.129, 0.538], atol=0.008)


def test_book_prevalences_have_the_published_mean():
    P = book_prevalences(FOLDER)
    assert P.shape == (8873, 5)
    assert_allclose(P.mean(axis=0), [0.15814, 0.08552, 0.08958, 0.12911, 0.53765], atol=6e-6)
    assert_allclose(np.mean(oq.simplex.jaggedness(P)), 0.0369, atol=5e-5)


@pytest.mark.parametrize(
    ("file", "target", "text", "n_classes"),
    [("imdb_reviews", "rating", "text", 8), ("amazon_consumer_reviews", "reviews.rating", "reviews.text", 5)],
)
@pytest.mark.slow
def test_reviews_go_through_tfidf_to_a_fitted_quantifier(file, target, text, n_classes):
    dataset = oq.datasets.make_dataset(
        FOLDER / f"{file}.parquet", target=target, features=text, encoder=tfidf(n_components=50)
    )
    assert len(dataset.classes) == n_classes
    assert dataset.train.X.shape == (20_000, 50)
    samples = dataset.samples("APP", "test")
    quantifiers = [
        cls(oq.classifiers.CrossFitted(LogisticRegression(max_iter=1000), cv=3)) for cls in (oq.PCC, oq.PACC)
    ]
    counted, adjusted = (
        np.mean(oq.metrics.nmd(samples.prevalences, q.fit(*dataset.train).predict_samples(dataset.test.X, samples)))
        for q in quantifiers
    )
    assert adjusted < 0.6 * counted
