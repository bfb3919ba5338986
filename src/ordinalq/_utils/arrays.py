"""Headers of stored arrays, read before anything is allocated."""

import math
from typing import IO, Any, NamedTuple

import numpy as np


class Header(NamedTuple):
    """Shape, type and bytes of a stored array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    n_bytes: int


def read_header(stream: IO[bytes], size: int) -> Header:
    """Return the header of an array in NumPy's format.

    Raise ValueError if header and array do not have `size` bytes together.
    """
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # any error of the parser of headers
        raise ValueError(f"an array in it cannot be read: {type(error).__name__}") from error
    n_bytes = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=0) < 0 or stream.tell() + n_bytes != size:
        raise ValueError(f"an array in it is not {dtype} of shape {shape}, as its header states")
    return Header(shape, dtype, n_bytes)
