"""Random rounding: a program whose operations on floats have results that differ in the last bits.

If NumPy's own results then differ much, rounding decides what the program computes. This is Monte
Carlo arithmetic (D. S. Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997)."""

from __future__ import annotations

import ast
import copy
import dataclasses
from typing import Any

import numpy as np
from variants import Base, Variant

_MOST_BITS = 2.0**20
_SUM_NAMES = (
    "sum mean std var dot vdot inner outer matmul einsum trace norm cumsum prod cumprod average"
    " trapezoid tensordot convolve correlate"
)
_OTHER_NAMES = (
    "sqrt exp log log2 log10 log1p expm1 sin cos tan tanh sinh cosh arctan arctan2 hypot power"
    " solve inv det lstsq eigh eigvalsh qr svd cholesky pow atan2"
)
_SUMS = frozenset(_SUM_NAMES.split())
_INEXACT = _SUMS | frozenset(_OTHER_NAMES.split())


def with_random_rounding(made: Variant, number: int) -> Variant:
    """The variant with the random numbers of `number`."""
    rng = np.random.default_rng(number)
    names = {**made.base.names, "_rounded": lambda x: _rounded(x, rng)}
    base: Base = dataclasses.replace(made.base, names=names)
    node = _Rounding().visit(copy.deepcopy(made.node))
    return Variant(base, node, made.seed, f"rounding {number} of")


class _Rounding(ast.NodeTransformer):
    """Changes the results of arithmetic and of functions, and the terms of sums."""

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            node.left, node.right = _call(node.left), _call(node.right)
        return _call(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else None
        if name not in _INEXACT or any(x.arg == "out" for x in node.keywords):
            return node
        if name in _SUMS:
            of: Any = node.func
            if not isinstance(of.value, ast.Name) or of.value.id != "np":
                of.value = _call(of.value)
            node.args = [x if isinstance(x, ast.Starred) else _call(x) for x in node.args]
        return _call(node)


def _call(x: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("_rounded", ast.Load()), [x], [])


def _rounded(x: Any, rng: np.random.Generator) -> Any:
    """A float, or a new array of floats, that differs from x by at most one unit in the last place.
    Numbers of few bits stay, since they are results without rounding in most cases."""
    is_array = isinstance(x, np.ndarray)
    if not (is_array or isinstance(x, (float, np.inexact))) or np.asarray(x).dtype.kind not in "fc":
        return x
    values = np.asarray(x)
    scaled = values * _MOST_BITS
    with np.errstate(all="ignore"):
        is_exact = (np.rint(scaled.real) == scaled.real) & (np.rint(scaled.imag) == scaled.imag)
        factors = 1 + rng.integers(-1, 2, values.shape) * np.finfo(values.dtype).eps
        changed = np.where(is_exact, values, values * factors).astype(values.dtype)
    if is_array:
        return changed.view(type(x)) if type(x) is not np.ndarray else changed
    return type(x)(changed)
