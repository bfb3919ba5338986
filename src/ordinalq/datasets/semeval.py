"""Tweets of SemEval 2016 and 2017, task 4, subtasks C and E.

They have sentiment labels on a five-point scale, by topic.

P. Nakov, A. Ritter, S. Rosenthal, F. Sebastiani, V. Stoyanov: "SemEval-2016 task 4: sentiment analysis in Twitter".
S. Rosenthal, N. Farra, P. Nakov: "SemEval-2017 task 4: sentiment analysis in Twitter".
"""

from pathlib import Path

import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq.datasets.download import fetch, find_local

URL = "https://raw.githubusercontent.com/cbaziotis/datastories-semeval2017-task4/master/dataset/Subtask_CE"
FILES = {
    "train": "downloaded/twitter-2016train-CE.tsv",
    "dev": "downloaded/twitter-2016dev-CE.tsv",
    "devtest": "downloaded/twitter-2016devtest-CE.tsv",
    "test2016": "downloaded/twitter-2016test-CE.tsv",
    "test2017": "gold/SemEval2017-task4-test.subtask-CE.english.txt",
}
LABELS = ("-2", "-1", "0", "1", "2")
COLUMNS = ["part", "topic", "label", "text"]


def load_semeval(data: str | Path | None = None) -> pd.DataFrame:
    """Load the tweets of SemEval 2016 and 2017 with topics and five-point labels.

    Parameters
    ----------
    data : path, default=None
        ``semeval_tweets.parquet`` with the four columns, or a folder with it, or a folder with the five published files
        (identifier, topic, label and text, separated by tabs). None looks into the folder named by ORDINALQ_DATA and
        into the cache, and then fetches the files from their public source. The texts of tweets are for research only.

    Returns
    -------
    pandas.DataFrame
        Columns ``part`` (train, dev, devtest, test2016, test2017), ``topic``, ``label`` (-2 to 2) and ``text``. Tweets
        whose text is not available are left out.
    """
    names = ["semeval_tweets.parquet", *(Path(name).name for name in FILES.values())]
    path = find_local(names[:1] if data is None else names, data)
    if path is not None and path.suffix == ".parquet":
        with require_extra("tables", "reading Parquet files"):
            table = pd.read_parquet(path)
        if missing := set(COLUMNS) - set(table.columns):
            raise ValueError(f"{path} must have the columns {', '.join(COLUMNS)}, but lacks {', '.join(missing)}.")
        return table[COLUMNS]
    parts = []
    for part, name in FILES.items():
        local = find_local([Path(name).name], data)
        parts.append(_read(fetch(f"{URL}/{name}", Path(name).name) if local is None else local, part))
    return pd.concat(parts, ignore_index=True)


def _read(path: Path, part: str) -> pd.DataFrame:
    """Return the available tweets of a published file."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            row = line.split("\t")
            if len(row) < 4 or row[2] not in LABELS:
                raise ValueError(
                    f"{path}, line {number}, must have an identifier, a topic, a label (-2 to 2) and a text, "
                    "separated by tabs."
                )
            rows.append(row)
    table = pd.DataFrame({
        "part": part,
        "topic": [row[1] for row in rows],
        "label": [int(row[2]) for row in rows],
        "text": [row[3].strip() for row in rows],
    })  # fmt: skip
    return table[table["text"] != "Not Available"]
