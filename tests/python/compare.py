"""Comparison of results with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

# Relative and absolute error allowed, in units of the last place of 1.0 in the result's dtype.
_ULPS = 8


def assert_matches(actual: Any, expected: Any, ulps: float = _ULPS) -> None:
    """Same tree, dtypes, shapes; integers equal, floats within some ulps of the largest magnitude
    that can have met them, NaN and infinities in the same places."""
    got, tree = optree.tree_flatten(actual)
    want, expected_tree = optree.tree_flatten(expected)
    assert tree == expected_tree
    for a, e in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(e)
        assert getattr(a, "dtype", type(a)) == getattr(e, "dtype", type(e))
        e = np.asarray(e)
        if e.dtype.kind in "biu":
            np.testing.assert_array_equal(a, e)
            continue
        limits = np.finfo(np.float32) if e.dtype.itemsize == 2 else np.finfo(e.dtype)
        eps = {2: 2.0**-10 if e.dtype == np.float16 else 2.0**-7}.get(e.dtype.itemsize, limits.eps)
        a, e = np.asarray(a, np.float64), e.astype(np.float64)
        np.testing.assert_allclose(a, e, rtol=ulps * float(eps), atol=ulps * float(eps))
