"""Elements of arrays in zarr's files, for tasks that several threads run at the same time."""

from __future__ import annotations

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np


def elements(array: Any, region: tuple[slice, ...]) -> np.ndarray:
    """The elements of a region of a zarr array, perhaps read-only. If the region is one
    uncompressed chunk in a local file, the file is mapped and nothing is copied. Otherwise zarr
    reads it, in one thread of the process at a time."""
    found = _mapped(array, region) if region else None
    return np.asarray(array[region]) if found is None else found


def _mapped(array: Any, region: tuple[slice, ...]) -> np.ndarray | None:
    """The mapped elements. None unless the file consists of the elements of one chunk in C
    order."""
    folder = _folder_of(array.store)
    is_plain = not (array.compressors or array.filters or array.shards) and array.order == "C"
    if not is_plain or folder is None or 0 in array.chunks:
        return None
    codec = array.serializer
    if not (codec is None or type(codec).__name__ == "BytesCodec"):
        return None
    order = getattr(codec, "endian", None)  # "little", an enum of it, or None (the dtype has it)
    dtype = (
        array.dtype if order is None else array.dtype.newbyteorder(getattr(order, "value", order))
    )
    place = tuple(r.start // size for r, size in zip(region, array.chunks, strict=True))
    starts = [i * size for i, size in zip(place, array.chunks, strict=True)]
    ends = [start + size for start, size in zip(starts, array.chunks, strict=True)]
    if any(r.stop > end for r, end in zip(region, ends, strict=True)):
        return None
    try:
        with open(folder / array.path / array.metadata.encode_chunk_key(place), "rb") as file:
            whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # nothing was written, or zarr will raise the error
        return None
    if len(whole) != math.prod(array.chunks) * array.dtype.itemsize:
        return None
    inner = tuple(slice(r.start - s, r.stop - s) for r, s in zip(region, starts, strict=True))
    found = np.frombuffer(whole, dtype).reshape(array.chunks)[inner]
    return found.astype(array.dtype, copy=False)


def _folder_of(store: Any) -> Path | None:
    """The folder of a store's files, if it is a local store of zarr or fsspec."""
    if isinstance(root := getattr(store, "root", None), Path):
        return root
    protocol = getattr(getattr(store, "fs", None), "protocol", ())
    return Path(store.path) if "local" in protocol else None
