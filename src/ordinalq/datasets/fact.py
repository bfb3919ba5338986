"""Fact-OQ: energies of gamma rays seen by the FACT telescope."""

import logging
from pathlib import Path
from typing import Any

import numpy as np

from ordinalq._utils.extras import require_extra
from ordinalq._utils.validation import Floats
from ordinalq.datasets import published
from ordinalq.datasets.binning import bin_target
from ordinalq.datasets.dataset import Dataset, Sampling, split_dataset
from ordinalq.datasets.download import fetch, find_local
from ordinalq.datasets.files import numeric_columns, read_table
from ordinalq.datasets.tables import interval_names
from ordinalq.io.columns import require_columns

logger = logging.getLogger("ordinalq")

URL = "https://factdata.app.tu-dortmund.de/dl2/FACT-Tools/v1.1.2/gamma_simulations_facttools_dl2.hdf5"
FILES = ("gamma_simulations_facttools_dl2.hdf5", "fact.hdf5", "fact.parquet", "fact_mc*.parquet")
N_EVENTS = 1_851_297
ENERGY = "corsika_event_header_total_energy"
RAW_HEADER = """
size width length skewness_trans skewness_long concentration_cog concentration_core concentration_one_pixel
concentration_two_pixel leakage1 leakage2 num_islands num_pixel_in_shower photoncharge_shower_mean
photoncharge_shower_variance photoncharge_shower_max
"""
RAW = tuple(RAW_HEADER.split())
COLUMNS = (*RAW, "cog_x", "cog_y", ENERGY)
FEATURES = (*RAW, "log_size", "area", "size_area", "cog_r")


def load(data: str | Path | None, settings: str, random_state: int) -> Dataset:
    """Return the simulated gamma events as a data set of 12 energy classes."""
    path = find_local(FILES, data) or fetch(URL, FILES[0])
    table = _read_hdf5(path) if path.suffix in (".hdf5", ".h5") else _read_table(path)
    X, log_energy = features(table)
    finite = np.isfinite(X).all(axis=1) & np.isfinite(log_energy)
    notes = []
    if not finite.all():
        notes.append(f"{np.sum(~finite):,} of {len(X):,} events have a feature that is not finite and were left out")
    if len(table) != N_EVENTS:
        notes.append(f"the file holds {len(table):,} of the {N_EVENTS:,} published events")
    for note in notes:
        logger.warning("%s: %s", path, note)
    spectrum = published.fact_spectrum()
    X, log_energy = X[finite], log_energy[finite]
    y = bin_target(log_energy, n_bins=12, span=(spectrum.edges[0], spectrum.edges[-1])).codes
    return split_dataset(
        X,
        y,
        interval_names(spectrum.edges),
        random_state,
        name="fact-oq",
        feature_names=FEATURES,
        source="FACT open data, simulated gamma events, FACT-Tools v1.1.2; classes in log10(energy / GeV)",
        sampling=Sampling(
            n_validation=2000 if settings == "reference" else 1000,
            n_test=5000,
            min_per_class=3 if settings == "reference" else 0,
            app_oq=published.app_oq_percent("Fact-OQ") / 100,
            real=spectrum.p[None],
            poisson=True,
        ),
        notes=tuple(notes),
        edges=spectrum.edges,
        acceptance=spectrum.effective_areas / spectrum.effective_areas.max(),
    )


def features(table: Floats) -> tuple[Any, Floats]:
    """Return 20 features (N, 20) and log10(energy / GeV) (N,) from raw columns.

    The raw columns have shape (N, 19). The features are in single precision: log_size = ln(size), area = pi width
    length, size_area = size / area, cog_r = sqrt(cog_x^2 + cog_y^2).
    """
    raw = dict(zip(COLUMNS, table.T, strict=True))
    # Events without light in a column give infinities here, and are left out by the caller.
    with np.errstate(all="ignore"):
        area = np.pi * raw["width"] * raw["length"]
        derived = (np.log(raw["size"]), area, raw["size"] / area, np.hypot(raw["cog_x"], raw["cog_y"]))
        X = np.column_stack([*(raw[name] for name in RAW), *derived]).astype(np.float32)
        return X, np.log10(raw[ENERGY])


def _read_table(path: Path) -> Floats:
    """Read a table with the same columns; of several kinds of events only the gammas."""
    frame = read_table(path)
    if "sample" in frame:
        gammas = frame["sample"] == "gamma"
        logger.info("%s: %d of %d events have sample == 'gamma' and are used", path, gammas.sum(), len(frame))
        frame = frame[gammas].drop(columns="sample")
        if len(frame) == 0:
            raise ValueError(f"{path}: expected events with sample == 'gamma', but there are none.")
    return numeric_columns(frame, COLUMNS, str(path), accepts_missing=True)


def _read_hdf5(path: Path) -> Floats:
    """Read the columns of the group `events`."""
    with require_extra("fact", "reading HDF5 files"):
        import h5py
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path}: damaged or incomplete HDF5 file ({error}); delete it and fetch it again.") from error
    with file:
        if "events" not in file or not isinstance(file["events"], h5py.Group):
            raise ValueError(f"{path}: expected an HDF5 group 'events', got {sorted(file)}.")
        events = file["events"]
        require_columns(events, COLUMNS, str(path))
        lengths = {name: events[name].shape for name in COLUMNS}
        n_events = lengths[ENERGY][0] if lengths[ENERGY] else 0
        table = np.empty((n_events, len(COLUMNS)))
        for j, name in enumerate(COLUMNS):
            if lengths[name] != (n_events,) or events[name].dtype.kind not in "iufb":
                raise ValueError(
                    f"{path}: expected {n_events} numbers in events/{name}, got shape {lengths[name]} of "
                    f"{events[name].dtype}."
                )
            table[:, j] = events[name][:]
    return table
