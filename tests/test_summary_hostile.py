"""Damaged files of summaries: each is read or is a ValueError that names it, in bounded time and memory."""

import io
import zipfile
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from apart import apart

import ordinalq as oq
from ordinalq.samples.summary import Summary

REFUSED = "expected what Summary.save has written, got something else."
GROUPS = pd.Categorical(["hi", "lo", "mid"] * 20, ["lo", "mid", "hi"], ordered=True)


def saved(name, path, groups=GROUPS):
    """Write an honest summary; return its arrays."""
    y = np.arange(60) % 3
    S = np.eye(3)[y] * 0.7 + 0.1
    weight = 1.0 + y if name == "SLD" else None
    q = getattr(oq, name)().fit_scores(S, y)
    q.summarize(S, oq.Samples.from_groups(groups), sample_weight=weight).save(path)
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


def loaded(path):
    """Return the error with which loading and solving end, "" if they do not."""
    try:
        summary = Summary.load(path)
    except ValueError as error:
        return str(error)
    assert len(summary) == len(summary.n_items)
    summary.merge(summary)
    return ""


def other(array, rng):
    """Return an array in the place of another: changed, cut, longer, of another type or shape."""
    changes = [
        lambda: array[:-1] if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array[:0] if array.ndim else array,
        lambda: array.astype(np.float32),
        lambda: array.astype(complex),
        lambda: array.astype(str),
        lambda: np.full_like(array, 200),
        lambda: np.where(rng.random(array.shape) < 0.2, np.nan, array),
        lambda: -array.astype(np.float64),
        lambda: array.astype(np.int64) + 10**9,
        lambda: array[None],
        lambda: np.zeros((0, 0)),
        lambda: np.array(7),
    ]
    return changes[int(rng.integers(len(changes)))]()


@pytest.mark.parametrize("name", ["PACC", "SLD"])
def test_damaged_summaries_are_read_or_rejected(name, tmp_path, rng):
    path = tmp_path / "summary.npz"
    arrays = saved(name, path)
    honest = path.read_bytes()
    refused = 0
    for i in range(300):
        if i % 3 == 0:
            content = bytearray(honest)
            for at in rng.integers(len(content), size=int(rng.integers(1, 8))):
                content[at] = int(rng.integers(256))
            path.write_bytes(content[: None if i % 2 else int(rng.integers(len(content)))])
        else:
            forged = dict(arrays)
            key = list(forged)[int(rng.integers(len(forged)))]
            if i % 3 == 1:
                del forged[key]
            else:
                forged[key] = other(forged[key], rng)
            np.savez(path, **forged)
        error = loaded(path)
        assert error in ("", f"{path}: {REFUSED}"), error
        refused += bool(error)
    assert refused > 150


@pytest.mark.parametrize(
    ("name", "array"),
    [("n_items", np.full(3, 2**64 - 1, dtype=np.uint64)), ("exponent", np.array(1e308)), ("exponent", np.array(2.5))],
)
def test_summaries_whose_integers_have_another_type_are_refused(name, array, tmp_path):
    path = tmp_path / "summary.npz"
    np.savez(path, **{**saved("PACC", path), name: array})
    assert loaded(path) == f"{path}: {REFUSED}"


def bombs(arrays):
    """Yield names and files that are small, but would be large in memory."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays, **{"total f": np.zeros((3, 33_000_000))})
    yield "zeros", stream.getvalue()
    table = pa.table({"group": ["x" * 100_000_000] * 3})
    keys = io.BytesIO()
    with pa.ipc.new_stream(keys, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    stream = io.BytesIO()
    np.savez(stream, **{**arrays, "keys": np.frombuffer(keys.getvalue(), dtype=np.uint8)})
    yield "compressed keys", stream.getvalue()
    stream = io.BytesIO()
    head = io.BytesIO()
    np.save(head, np.zeros(3))
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("n_items.npy", head.getvalue().replace(b"(3,)", b"(9000000000,)"))
    yield "a large claim", stream.getvalue()


def test_a_small_file_does_not_take_much_memory(tmp_path):
    path = tmp_path / "summary.npz"
    arrays = {name: array for name, array in saved("PACC", path).items() if name != "total f"}
    for name, content in bombs(arrays):
        path.write_bytes(content)
        assert len(content) < 2_000_000
        result, seconds, megabytes = apart(lambda: loaded(path), 30)
        assert (result, seconds < 2, megabytes < 300) == (f"{path}: {REFUSED}", True, True), (name, seconds, megabytes)


@pytest.mark.parametrize(
    ("groups", "kind"),
    [
        (np.arange(60) % 3 + 1j, "complex128"),
        ([Fraction(i % 3, 7) for i in range(60)], "Fraction"),
        (pd.cut(np.arange(60) % 3, 3), "interval"),
    ],
)
def test_keys_that_cannot_be_read_again_are_rejected_when_saving(groups, kind, tmp_path):
    path = tmp_path / "summary.npz"
    groups = groups.astype(groups.categories.dtype) if hasattr(groups, "categories") else groups
    with pytest.raises(TypeError, match=f"groups must be text, numbers, dates or categories to be saved, got {kind}"):
        saved("PACC", path, groups)
    assert not path.exists()
