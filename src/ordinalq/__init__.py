"""Ordinal quantification: the class distribution of unlabelled samples over ordered classes."""

from ordinalq.datasets import Binning, Dataset, bin_target, load_dataset, make_dataset
from ordinalq.measures import md, nmd, rnadw, rnod, rsnod
from ordinalq.ordinal import difference_matrix, jaggedness
from ordinalq.protocols import APP, APPOQ, NPP, RealPrevalences, matching_fraction, protocol_table
from ordinalq.samples import Samples

__version__ = "0.1.0.dev0"

__all__ = [  # noqa: RUF022 - by character, as sorted() does
    "APP",
    "APPOQ",
    "Binning",
    "Dataset",
    "NPP",
    "RealPrevalences",
    "Samples",
    "bin_target",
    "difference_matrix",
    "jaggedness",
    "load_dataset",
    "make_dataset",
    "matching_fraction",
    "md",
    "nmd",
    "protocol_table",
    "rnadw",
    "rnod",
    "rsnod",
]
