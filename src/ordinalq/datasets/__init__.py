"""Data sets: those of the paper by name, and any table of your own."""

from ordinalq.datasets.binning import Binning as Binning
from ordinalq.datasets.binning import bin_target as bin_target
from ordinalq.datasets.castano import CASTANO as CASTANO
from ordinalq.datasets.castano import load_castano as load_castano
from ordinalq.datasets.catalog import CATALOG as CATALOG
from ordinalq.datasets.catalog import load_dataset as load_dataset
from ordinalq.datasets.dataset import Dataset as Dataset
from ordinalq.datasets.dataset import Items as Items
from ordinalq.datasets.dataset import Sampling as Sampling
from ordinalq.datasets.lequa import load_lequa as load_lequa
from ordinalq.datasets.semeval import load_semeval as load_semeval
from ordinalq.datasets.tables import make_dataset as make_dataset
from ordinalq.io.encoder import table_encoder as table_encoder
