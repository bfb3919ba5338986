"""Catalogue of the data sets: description, source and loader by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordinalq.datasets import amazon, fact, lequa, regression
from ordinalq.datasets.dataset import Dataset, check_settings
from ordinalq.datasets.download import find_local

Loader = Callable[[Any, str, int], Dataset]


@dataclass(frozen=True)
class Entry:
    """A data set that :func:`load_dataset` knows.

    ``files`` are the names under which a local copy is found; without any, the data set needs no file.
    """

    name: str
    what: str
    n_items: int | None
    n_features: int | None
    n_classes: int
    licence: str
    files: tuple[str, ...]
    load: Loader

    def where(self, data: str | Path | None = None) -> str:
        """Return the location of the data.

        It is "built in", the path of a local copy, or "not downloaded".
        """
        if not self.files:
            return "built in"
        try:
            found = find_local(self.files, data)
        except FileNotFoundError:
            found = None
        return str(found) if found else "not downloaded"


def _load_fried(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Regenerate fried, unless a file is named."""
    return (regression.FRIED if data is None else regression.FRIED_OPENML).load(data, settings, random_state)


CATALOG = (
    Entry("fried", "Friedman #1 function, regenerated", 40_768, 10, 10, "free", (), _load_fried),
    Entry("fried-openml", "the same, as OpenML publishes it", 40_768, 10, 10, "public", regression.FRIED_FILES,
          regression.FRIED_OPENML.load),
    Entry("yolanda", "year of a song, OpenML 42705", 400_000, 100, 10, "public", regression.YOLANDA_FILES,
          regression.YOLANDA.load),
    Entry("blog-feedback", "comments on a blog post, UCI 304", 52_397, 280, 10, "CC BY 4.0", regression.BLOG_FILES,
          regression.BLOG.load),
    Entry("online-news-popularity", "shares of an article, UCI 332", regression.NEWS_ITEMS, 59, 10, "CC BY 4.0",
          regression.NEWS_FILES, regression.NEWS.load),
    Entry("amazon-oq-bk", "stars of book reviews, published RoBERTa vectors", None, amazon.N_FEATURES, 5,
          "research use", amazon.VECTOR_FILES, amazon.load_vectors),
    Entry("amazon-oq-bk-tfidf", "stars of raw reviews, TF-IDF", None, None, 5, "research use", amazon.REVIEW_FILES,
          amazon.load_tfidf),
    Entry("amazon-oq-bk-roberta", "stars of raw reviews, RoBERTa fine-tuned here", None, amazon.N_FEATURES, 5,
          "research use", amazon.REVIEW_FILES, amazon.load_roberta),
    Entry("fact-oq", "energies of simulated gamma rays, FACT telescope", fact.N_EVENTS, 20, 12, "FACT open data",
          fact.FILES, fact.load),
    Entry("lequa2024-t3", "stars of product reviews, vectors and samples of LeQua 2024", None, 256, 5,
          "see the record on Zenodo", lequa.FILES, lequa.load_lequa),
)  # fmt: skip


def load_dataset(
    name: str, data: str | Path | None = None, settings: str = "reference", random_state: int = 876
) -> Dataset:
    """Load a data set of the paper.

    Parameters
    ----------
    name : str
        One of `ordinalq datasets`; "fried" needs neither a file nor the network.
    data : path, default=None
        A local file, or a folder that holds it. None looks into the folder named by the environment variable
        ORDINALQ_DATA and into the cache, and then fetches the file from its public source. "fried" is regenerated,
        unless `data` names the published file.
    settings : {"reference", "paper"}, default="reference"
        Numbers of samples and bins as in the authors' code, or as in the text of the paper.
    random_state : int, default=876
        Determines the split and all samples.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> dataset = load_dataset("fried")
    >>> dataset.train.X.shape, dataset.validation.X.shape, dataset.test.X.shape
    ((20000, 10), (10384, 10), (10384, 10))
    >>> dataset.samples("APP-OQ", "validation")
    Samples(200 samples of 1000 items, pool of 10384)
    """
    check_settings(settings, random_state)
    entry = next((entry for entry in CATALOG if entry.name == name), None)
    if entry is None:
        known = ", ".join(entry.name for entry in CATALOG)
        raise ValueError(f"name must be one of {known}, got {name!r}; for your own table use make_dataset.")
    return entry.load(data, settings, random_state)
