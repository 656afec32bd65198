"""Programs as users of NumPy write them (user_programs.py and others): under jit as without it."""

from __future__ import annotations

import copy

import data_programs  # noqa: F401
import guarded_programs  # noqa: F401
import numpy as np
import optree
import pytest
from science_programs import PROGRAMS

import rune_jit


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    function, make = PROGRAMS[name]
    arguments = make(np.random.default_rng(0))
    given = copy.deepcopy(arguments)
    jitted = rune_jit.jit(function, fallback="error")
    with np.errstate(all="ignore"):
        expected, actual = function(*arguments), jitted(*given)
    # The arguments, too: programs write to them.
    wanted, structure = optree.tree_flatten((expected, arguments))
    leaves, same_structure = optree.tree_flatten((actual, given))
    assert structure == same_structure
    single = any(np.asarray(x).dtype == np.float32 for x in wanted)
    for want, got in zip(map(np.asarray, wanted), map(np.asarray, leaves), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=3e-5, atol=1e-5 if single else 1e-9)
    assert jitted.cache_info().fallbacks == 0
