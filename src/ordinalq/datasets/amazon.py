"""Amazon-OQ-BK from the raw book reviews: filtered, split, and turned into vectors here."""

import gzip
import json
import logging
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ordinalq._utils.validation import Array, Floats, Index, check_distributions
from ordinalq.datasets import published as reference
from ordinalq.datasets.archives import FREE_BYTES, MAX_RATIO, too_large
from ordinalq.datasets.dataset import Dataset, Sampling, check_settings, split_dataset
from ordinalq.datasets.download import fetch, find_local
from ordinalq.datasets.files import read_table
from ordinalq.datasets.split import derived_seed
from ordinalq.io.columns import require_columns
from ordinalq.io.files import open_binary

logger = logging.getLogger("ordinalq")

STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
REVIEW_FILES = ("Books.json.gz", "Books.json", "reviews_Books.json.gz", "Books_5.json.gz", "reviews_Books_5.json.gz")
REVIEW_URL = "https://jmcauley.ucsd.edu/data/amazon_v2/categoryFiles/Books.json.gz"
MIN_LENGTH = 200  # characters
MAX_REVIEWS = 300_000  # kept in memory; of more, a random subset
MAX_LINE = 2**22  # bytes of a review; the longest of the published ones have some 30,000
GIVE_UP = 100_000  # reviews none of which is suitable; of books every fifth is

PREVALENCE_FILES = ("amazon_books_prevalences.tsv", "prevalence_votes1_reviews100.csv")
PREVALENCE_URL = "https://raw.githubusercontent.com/mirkobunse/regularized-oq/main/jl/data/" + PREVALENCE_FILES[1]
PREVALENCE_SHA256 = "sha256:1d69d366a200934e7e5278e02550250d48652c8c74382f183f7d5982b25a8bd4"


def load_tfidf(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return reviews as sparse TF-IDF vectors."""
    from ordinalq.datasets.text import tfidf

    return from_reviews(data, tfidf(), name="amazon-oq-bk-tfidf", settings=settings, random_state=random_state)


def load_roberta(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return reviews as vectors of a RoBERTa model that is fine-tuned on the training reviews."""
    from ordinalq.datasets.text import RobertaVectors

    name = "amazon-oq-bk-roberta"
    return from_reviews(data, RobertaVectors(), name=name, settings=settings, random_state=random_state)


def from_reviews(
    data: str | Path | None,
    encoder: Any,
    *,
    name: str = "amazon-reviews",
    settings: str = "reference",
    random_state: int = 876,
    max_reviews: int = MAX_REVIEWS,
    real: Any = None,
) -> Dataset:
    """Extract a data set from raw reviews: filter, split, encode the texts by an encoder that is fitted here, sample.

    The reviews are a file (JSON lines, ``.gz`` or not, CSV or Parquet) or its folder; None looks for a local copy and
    then downloads the category Books. Where more than `max_reviews` pass the filter, a random subset of this size is
    kept. The protocol "real" has the star distributions `real` (k, 5); None reads the published 8873 distributions of
    books.
    """
    check_settings(settings, random_state)
    path = find_local(REVIEW_FILES, data) or fetch(REVIEW_URL, REVIEW_FILES[0])
    reviews = read_reviews(path, max_reviews, derived_seed(random_state, "reviews"))
    if real is None:
        real = book_prevalences(path.parent if data is not None else None)
    for note in reviews.notes:
        logger.info("%s: %s", path, note)
    return split_dataset(
        reviews.texts,
        reviews.y,
        STARS,
        random_state,
        name=name,
        encoder=encoder,
        source=f"Amazon reviews (McAuley et al.), {path.name}; research use",
        sampling=sampling(check_distributions("real", real), settings),
        notes=reviews.notes,
    )


def sampling(real: Floats | None, settings: str = "reference") -> Sampling:
    """Return how samples are drawn, with star distributions (k, 5) for the protocol "real" if there are any.

    "reference" rounds counts down, gives the rest to five stars, and draws from small classes with replacement. "paper"
    rounds to the drawn prevalences and repeats an item only where a class has too few.
    """
    printed = settings == "paper"
    return Sampling(
        n_validation=1000,
        n_test=5000,
        app_oq=reference.app_oq_percent("Amazon-OQ-BK") / 100,
        real=real,
        rounding="balanced" if printed else "truncate",
        min_per_class=0,
        small_pool="repeat" if printed else "replace",
    )


def book_prevalences(data: str | Path | None = None) -> Floats:
    """Return the star distributions of 8873 books with at least 100 useful reviews, (8873, 5)."""
    local = None if data is None else next((p for f in PREVALENCE_FILES if (p := Path(data) / f).is_file()), None)
    advice = f"put it as {PREVALENCE_FILES[1]} beside the reviews or into the folder named by ORDINALQ_DATA"
    path = (
        local
        or find_local(PREVALENCE_FILES)
        or fetch(PREVALENCE_URL, PREVALENCE_FILES[1], PREVALENCE_SHA256, advice=advice)
    )
    P = read_shares(path.read_text(encoding="utf-8").splitlines(), str(path))
    if len(P) == 0 or np.abs(P.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError(f"{path}: expected star fractions that sum to one in each line.")
    return np.asarray(P / P.sum(axis=1, keepdims=True))  # the five decimals leave 2e-5


def read_shares(lines: Sequence[str], where: str, first_line: int = 1, n_before: int = 0) -> Floats:
    """Read lines of five numbers, (B, 5), between commas or tabs; there are `n_before` columns before them."""
    P = np.empty((len(lines), len(STARS)))
    for row, line in enumerate(lines):
        words, place = re.split("[,\t]", line), f"{where}, line {first_line + row}"
        if len(words) != n_before + len(STARS):
            raise ValueError(f"{place}: expected {n_before + len(STARS)} columns, got {len(words)}.")
        try:
            P[row] = [float(word) for word in words[n_before:]]
        except ValueError as error:
            raise ValueError(f"{place}: expected numbers, but {error}.") from error
    return P


class Reviews(NamedTuple):
    """Texts (N,), classes y (N,) in 0..4, and what was left out."""

    texts: Array
    y: Index
    notes: tuple[str, ...]


def read_reviews(path: Path, max_reviews: int, seed: int) -> Reviews:
    """Read the reviews with at least 200 characters and a useful vote; of many, a random subset."""
    rng = np.random.default_rng(seed)
    texts: list[str] = []
    stars: list[int] = []
    counts: dict[str, int] = defaultdict(int)
    for number, review in _raw_reviews(path):
        if counts["read"] == GIVE_UP and not texts:
            break  # no file of reviews
        counts["read"] += 1
        text = review.get("reviewText")
        if not isinstance(text, str) or len(text) < MIN_LENGTH:
            counts["short"] += 1
            continue
        votes = _useful_votes(review)
        if votes is None:
            counts["unreadable"] += 1
            continue
        if votes < 1:
            counts["unvoted"] += 1
            continue
        star = review.get("overall")
        if star not in (1, 2, 3, 4, 5):
            raise ValueError(f"{path}, {number}: expected 'overall' to be 1..5, got {star!r}.")
        counts["kept"] += 1
        if len(texts) < max_reviews:
            texts.append(text)
            stars.append(int(star))
        elif (slot := int(rng.integers(counts["kept"]))) < max_reviews:  # each review stays with equal chance
            texts[slot], stars[slot] = text, int(star)
    if not texts:
        raise ValueError(f"{path}: none of {counts['read']} reviews has {MIN_LENGTH} characters and a useful vote.")
    left_out = (
        f"of {counts['read']:,} reviews, {counts['short']:,} with fewer than {MIN_LENGTH} characters and "
        f"{counts['unvoted']:,} others without a useful vote were left out"
    )
    notes = [left_out]
    if counts["unreadable"]:
        notes.append(f"reviews left out because their votes are unreadable: {counts['unreadable']:,}")
    if counts["kept"] > len(texts):
        notes.append(f"a random {len(texts):,} of {counts['kept']:,} suitable reviews were kept")
    return Reviews(np.array(texts, dtype=object), np.array(stars, dtype=np.intp) - 1, tuple(notes))


def _raw_reviews(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and content of each review."""
    if path.name.endswith((".parquet", ".csv", ".csv.gz")):
        frame = read_table(path, nested=True)
        require_columns(frame.columns, ["reviewText", "overall"], str(path))
        if not {"helpful", "vote"} & set(frame.columns):
            require_columns(frame.columns, ["helpful"], str(path))
        columns = [name for name in ("reviewText", "overall", "helpful", "vote") if name in frame]
        for row, values in enumerate(frame[columns].itertuples(index=False, name=None)):
            yield f"row {row}", dict(zip(columns, values, strict=True))
        return
    number = n_bytes = 0
    most = FREE_BYTES + MAX_RATIO * path.stat().st_size
    with open_binary(path) as stream:
        try:
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
                n_bytes += len(line)
                if n_bytes > most:
                    raise too_large(path, most)
                yield f"line {number}", _review(line, path, number)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}, after line {number}: the file is incomplete; fetch it again.") from error


def _review(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        review = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}, line {number}: expected a review in JSON, but {error}.") from error
    if not isinstance(review, dict):
        raise ValueError(f"{path}, line {number}: expected a review as a JSON object, got {line[:40]!r}.")
    return review


def _useful_votes(review: dict[str, Any]) -> int | None:
    """Return the number of useful votes: ``helpful: [up, total]`` or ``vote: "1,234"``; None if it is unreadable."""
    try:
        if "helpful" in review:
            helpful = review["helpful"]
            return int((json.loads(helpful) if isinstance(helpful, str) else helpful)[0])
        vote = review.get("vote")
        if vote is None or vote != vote:  # the later release leaves out what is zero
            return 0
        return int(str(vote).replace(",", "").removesuffix(".0"))
    except (TypeError, ValueError, LookupError, OverflowError, RecursionError):
        return None
