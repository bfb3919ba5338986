"""Regression data of the paper: fried, Yolanda, BlogFeedback and Online News.

"Online News" is Online News Popularity. "fried" is the Friedman #1 function, regenerated: ten features of which five
matter, and noise of a fixed variance. y = 10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5 + e, x uniform in [0,
1]^10, e ~ N(0, 1) (Friedman, 1991). The file that OpenML publishes as "fried" follows this formula: 40,768 items, three
decimals, residuals of mean .001 and standard deviation .997.
"""

import logging
from functools import partial
from pathlib import Path

import numpy as np

from ordinalq._utils.validation import Floats
from ordinalq.datasets.download import ARCHIVES, cached_copy, extract, fetch, find_local, openml_file, openml_target
from ordinalq.datasets.files import numeric_columns, read_numbers, read_table
from ordinalq.datasets.tables import Regression

logger = logging.getLogger("ordinalq")

# The Friedman #1 function

N_ITEMS = 40_768
N_FEATURES = 10
SPAN = (-0.523, 30.054)
SEED = 564  # of the items, which are always the same; the split and the samples have their own random_state


def friedman(X: Floats) -> Floats:
    """Return the expectation of y for features X (N, 10), shape (N,).

    It is 10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5.

    >>> friedman(np.array([[1.0, 0.5, 0.5, 1.0, 1.0, 0, 0, 0, 0, 0]]))
    array([25.])
    """
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def make_fried() -> tuple[Floats, Floats]:
    """Return features (40768, 10) and target (40768,) of "fried".

    Both have three decimals as in the published file.
    """
    rng = np.random.default_rng(SEED)
    X = np.round(rng.uniform(size=(N_ITEMS, N_FEATURES)), 3)
    return X, np.round(friedman(X) + rng.standard_normal(N_ITEMS), 3)


FRIED = Regression(
    "fried",
    "Friedman #1 function (Ann. Statist. 19, 1991), regenerated; free of licences",
    SPAN,
    lambda data: (np.column_stack(make_fried()), [f"attr_{i}" for i in range(N_FEATURES)], ()),
)


# Tables of OpenML: fried as published, and Yolanda

FRIED_FILES = ("fried.parquet", "fried.csv", "dataset_564.pq", "fried.arff")
# OpenML names them X1..X10 and Y; other copies of the same file have the second set of names.
FRIED_COLUMNS = (
    (*(f"X{i}" for i in range(1, 11)), "Y"),
    (*(f"attr_{i}" for i in range(10)), "target"),
)
YOLANDA_FILES = ("yolanda.parquet", "yolanda.csv", "yolanda.arff", "dataset_42705.pq", "Yolanda.arff")
YOLANDA_COLUMNS = (tuple(str(i) for i in range(1, 102)),)
YOLANDA_SPAN = (1922.0, 2011.0)


def _read(
    data_id: int, files: tuple[str, ...], known_columns: tuple[tuple[str, ...], ...], data: str | Path | None
) -> tuple[Floats, tuple[str, ...], tuple[()]]:
    """Find or fetch the file, and take its columns by name, the target last."""
    path = find_local(files, data) or openml_file(data_id, files[-1])
    target = openml_target(path)
    frame = read_table(path).rename(columns=str)
    columns = next((names for names in known_columns if set(names) <= set(frame.columns)), known_columns[0])
    if target is not None and target in frame.columns and len(frame.columns) == len(columns):
        # The publisher's own word on which column is the target goes before our list of names.
        columns = (*(name for name in frame.columns if name != target), target)
    return numeric_columns(frame, columns, str(path)), columns[:-1], ()


FRIED_OPENML = Regression(
    "fried-openml", "OpenML 564, fried; public", SPAN, partial(_read, 564, FRIED_FILES, FRIED_COLUMNS)
)
YOLANDA = Regression(
    "yolanda", "OpenML 42705, Yolanda; public", YOLANDA_SPAN, partial(_read, 42705, YOLANDA_FILES, YOLANDA_COLUMNS)
)


# Tables of the UCI repository: BlogFeedback and Online News Popularity

UCI = "https://archive.ics.uci.edu/static/public"

BLOG_FILES = ("blogData_train.csv", "blogfeedback.zip", "BlogFeedback.zip")
BLOG_SHA256 = "sha256:1ba74e5ad920f7cd037502b2968581cc695146a226a73eff52fe8ad875ed4bcf"
BLOG_COLUMNS = 281  # 280 features, the target last; columns 63-262 are flags, which are read as the numbers they are
BLOG_SPAN = (0.0, 81.0)

NEWS_FILES = (
    "OnlineNewsPopularity.csv",
    "online_news_popularity.csv",
    "online_news_popularity.parquet",
    "online+news+popularity.zip",
    "OnlineNewsPopularity.zip",
    "online_news_partial.parquet",
)
NEWS_ITEMS = 39_644
NEWS_SPAN = (1.0, 27_700.0)
# The header of the published file without the URL; the target comes last.
NEWS_HEADER = """
timedelta n_tokens_title n_tokens_content n_unique_tokens n_non_stop_words n_non_stop_unique_tokens num_hrefs
num_self_hrefs num_imgs num_videos average_token_length num_keywords data_channel_is_lifestyle
data_channel_is_entertainment data_channel_is_bus data_channel_is_socmed data_channel_is_tech data_channel_is_world
kw_min_min kw_max_min kw_avg_min kw_min_max kw_max_max kw_avg_max kw_min_avg kw_max_avg kw_avg_avg
self_reference_min_shares self_reference_max_shares self_reference_avg_sharess weekday_is_monday weekday_is_tuesday
weekday_is_wednesday weekday_is_thursday weekday_is_friday weekday_is_saturday weekday_is_sunday is_weekend LDA_00
LDA_01 LDA_02 LDA_03 LDA_04 global_subjectivity global_sentiment_polarity global_rate_positive_words
global_rate_negative_words rate_positive_words rate_negative_words avg_positive_polarity min_positive_polarity
max_positive_polarity avg_negative_polarity min_negative_polarity max_negative_polarity title_subjectivity
title_sentiment_polarity abs_title_subjectivity abs_title_sentiment_polarity shares
"""
NEWS_COLUMNS = tuple(NEWS_HEADER.split())


def _read_blog(data: str | Path | None) -> tuple[Floats, list[str], tuple[()]]:
    path = find_local(BLOG_FILES, data) or fetch(f"{UCI}/304/blogfeedback.zip", "blogfeedback.zip", BLOG_SHA256)
    path = _member(path, "blogData_train.csv")
    with path.open("rb") as stream:
        return read_numbers(stream, str(path), BLOG_COLUMNS), [f"column_{i}" for i in range(1, BLOG_COLUMNS)], ()


def _read_news(data: str | Path | None) -> tuple[Floats, tuple[str, ...], list[str]]:
    path = find_local(NEWS_FILES, data) or fetch(f"{UCI}/332/online+news+popularity.zip", "online+news+popularity.zip")
    path = _member(path, "OnlineNewsPopularity.csv")
    table = numeric_columns(read_table(path), NEWS_COLUMNS, str(path))
    notes = []
    if len(table) != NEWS_ITEMS:
        notes.append(f"the file holds {len(table):,} of the {NEWS_ITEMS:,} published items")
        logger.warning("%s: %s", path, notes[0])
    return table, NEWS_COLUMNS[:-1], notes


def _member(path: Path, name: str) -> Path:
    """Return a file of an archive, unpacked into the cache; any other path as it is."""
    return extract(path, name, cached_copy(name, path)) if path.name.lower().endswith(ARCHIVES) else path


# Comments that a blog post gets within a day, and how often an article is shared.
BLOG = Regression("blog-feedback", "UCI 304, BlogFeedback, doi:10.24432/C58S3F; CC BY 4.0", BLOG_SPAN, _read_blog)
NEWS = Regression(
    "online-news-popularity",
    "UCI 332, Online News Popularity, doi:10.24432/C5NS3V; CC BY 4.0",
    NEWS_SPAN,
    _read_news,
)
