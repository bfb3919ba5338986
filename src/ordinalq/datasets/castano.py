"""The 17 ordinal data sets of Castano et al. (2024).

A. Castano, J. Alonso, P. Gonzalez, P. Perez, J. J. del Coz: "Matching distributions algorithms based on the Earth
mover's distance for ordinal quantification", IEEE Transactions on Neural Networks and Learning Systems.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ordinalq._utils.extras import require_extra
from ordinalq._utils.validation import Floats, Index, check_choice
from ordinalq.datasets.download import fetch, find_local

# In the order of the computing time of the benchmark.
CASTANO = (
    "ESL", "auto.data.ord_chu", "bostonhousing.ord_chu", "LEV", "SWD", "stock.ord", "cement_strength_gago", "ERA",
    "winequality-red_gago", "winequality-white_gago_rev", "skill_gago", "SkillCraft1_rev_7clases",
    "SkillCraft1_rev_8clases", "abalone.ord_chu", "kinematics_gago", "californiahousing_gago", "ailerons_gago",
)  # fmt: skip
URL = "https://raw.githubusercontent.com/mirkobunse/ordinal_quantification/main/datasets/ordinal"


def load_castano(name: str, data: str | Path | None = None) -> tuple[Floats, Index]:
    """Load one of the 17 data sets of Castano et al.

    Parameters
    ----------
    name : str
        One of `CASTANO`, such as "ESL".
    data : path, default=None
        Folder that has the data set as ``NAME.csv`` (semicolons, as published) or ``NAME.parquet``, directly or in
        ``castano/``. None looks into the folder named by ORDINALQ_DATA and into the cache, and then fetches the file
        from its public source.

    Returns
    -------
    X : ndarray (N, d)
        Features.
    y : ndarray (N,)
        Classes, integers in 0..n-1.
    """
    check_choice("name", name, CASTANO)
    files = [f"{folder}{name}.{kind}" for folder in ("castano/", "") for kind in ("parquet", "csv")]
    path = find_local(files, data)
    if path is None:
        path = fetch(f"{URL}/{name}.csv", f"{name}.csv")
    if path.suffix == ".parquet":
        with require_extra("tables", "reading Parquet files"):
            table = pd.read_parquet(path)
    else:
        table = pd.read_csv(path, sep=";")
    if table.isna().any(axis=None) or table.shape[1] < 2:
        raise ValueError(f"{path} must have features and a last column with classes, and no missing value.")
    _, y = np.unique(table.iloc[:, -1], return_inverse=True)
    return table.iloc[:, :-1].to_numpy(dtype=np.float64), y
