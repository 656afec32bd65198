"""Masks without elements: NumPy takes them for lists of positions where they are no array of its
own."""

from typing import Any

import numpy as np
import pytest

import rune_jit


class Labelled(np.ndarray):
    """A subclass, which is not traced."""


class Mesh:
    """An object that holds an array."""

    def __init__(self, faces: Any) -> None:
        self.faces = faces


def compared(x: Any, mesh: Mesh) -> Any:
    some = x[x[:, 0] > 100.0]
    faces = mesh.faces[x[:, 0] > 100.0]
    return faces[some == 0], faces[(some > 1) | ~(some < 2)], faces[np.isnan(some)]


def asked(x: Any, mesh: Mesh) -> Any:
    found = np.argwhere(x > 100.0)
    return mesh.faces[:0, :2][found == 0], mesh.faces[:0, :2][np.isin(found, [1, 2])]


def written(x: Any, mesh: Mesh) -> Any:
    some = x[x[:, 0] > 100.0]
    faces = mesh.faces[x[:, 0] > 100.0]
    faces[some == 0] = 1
    return faces


def given(x: Any, mesh: Mesh, mask: Any) -> Any:
    return mesh.faces[:0][mask], float(x[0, 0])


@pytest.mark.parametrize("kind", [np.ndarray, Labelled])
@pytest.mark.parametrize("function", [compared, asked, written, given])
def test_empty_masks_of_arrays_that_are_not_traced(function: Any, kind: type) -> None:
    mesh = Mesh(np.arange(12).reshape(4, 3).view(kind))
    rest = (np.zeros((0, 3), bool),) if function is given else ()
    jitted = rune_jit.jit(function)
    for i in range(3):
        x = np.arange(12.0).reshape(4, 3) + i
        for made, expected in zip(jitted(x, mesh, *rest), function(x, mesh, *rest), strict=True):
            assert type(made) is type(expected)
            np.testing.assert_array_equal(made, expected, strict=True)
