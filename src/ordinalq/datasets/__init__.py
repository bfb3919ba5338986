"""Data sets: those of the paper by name, and any table of your own."""

from ordinalq.datasets.binning import Binning, bin_target
from ordinalq.datasets.catalog import CATALOG, load_dataset
from ordinalq.datasets.dataset import Dataset, Sampling
from ordinalq.datasets.split import Items
from ordinalq.datasets.tables import make_dataset
from ordinalq.files.encoder import table_encoder

__all__ = [
    "CATALOG",
    "Binning",
    "Dataset",
    "Items",
    "Sampling",
    "bin_target",
    "load_dataset",
    "make_dataset",
    "table_encoder",
]
