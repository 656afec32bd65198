"""The table of operations: what NumPy functions are checked on which dtypes, shapes and values."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
REALS = ("float32", "float64")
NUMBERS = (*INTS, *FLOATS)
ALL = ("bool", *NUMBERS)
FEW = ("bool", "int8", "int32", "uint8", "float16", "float32", "float64")


@dataclass(frozen=True)
class OpCase:
    """One operation: `function` on arrays of `shapes`, values in [low, high), for each dtype."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = FEW
    low: float = -4.0
    high: float = 4.0
    ulps: float = 8

    def arguments(self, dtype: str) -> list[np.ndarray]:
        """Arrays that are the same in every process."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name} {dtype}".encode()))
        return [_values(rng, shape, np.dtype(dtype), self.low, self.high) for shape in self.shapes]


def _values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, low: float, high: float
) -> np.ndarray:
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "u":
        low = max(low, 0)
    values = rng.uniform(low, high, shape)
    return (np.floor(values) if dtype.kind in "iu" else values).astype(dtype)


CASES: list[OpCase] = []


def add(name: str, function: Callable[..., Any], *shapes: tuple[int, ...], **options: Any) -> None:
    CASES.append(OpCase(name, function, shapes, **options))


# Ufuncs of one operand: name, domain.
_UNARY_FLOAT = {
    "sqrt": (0, 9),
    "cbrt": (-9, 9),
    "exp": (-4, 4),
    "exp2": (-4, 4),
    "expm1": (-2, 2),
    "log": (0.1, 9),
    "log2": (0.1, 9),
    "log10": (0.1, 9),
    "log1p": (-0.9, 9),
    "sin": (-9, 9),
    "cos": (-9, 9),
    "tan": (-1.3, 1.3),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctan": (-9, 9),
    "sinh": (-3, 3),
    "cosh": (-3, 3),
    "tanh": (-4, 4),
    "arcsinh": (-9, 9),
    "arccosh": (1, 9),
    "arctanh": (-0.9, 0.9),
    "rint": (-4, 4),
    "deg2rad": (-180, 180),
    "rad2deg": (-4, 4),
    "radians": (-180, 180),
    "degrees": (-4, 4),
    "fabs": (-4, 4),
    "signbit": (-4, 4),
}
for _name, (_low, _high) in _UNARY_FLOAT.items():
    # 0 is outside the domain of the logarithms, and integers would reach it.
    _dtypes = FLOATS if _low == 0.1 or _name in ("arccosh", "arctanh") else FEW
    add(_name, getattr(np, _name), (7, 5), low=_low, high=_high, dtypes=_dtypes)
_PLAIN_UNARY = (
    "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "absolute", "square",
)  # fmt: skip
for _name in (*_PLAIN_UNARY, "logical_not", "conjugate"):
    add(_name, getattr(np, _name), (7, 5), dtypes=ALL)
for _name in ("negative", "positive", "sign"):
    add(_name, getattr(np, _name), (7, 5), dtypes=NUMBERS)
add("invert", np.invert, (7, 5), dtypes=("bool", *INTS))
add("reciprocal", np.reciprocal, (7, 5), dtypes=FLOATS, low=0.5)
add("reciprocal of integers", np.reciprocal, (7, 5), dtypes=INTS)
add("modf", np.modf, (7, 5), dtypes=FLOATS)
add("frexp spacing", lambda x: (*np.frexp(x), np.spacing(x)), (7, 5), dtypes=FLOATS)
add("nextafter", lambda x, y: np.nextafter(x, y) - x, (7, 5), (7, 5), dtypes=FLOATS)
add("ldexp", lambda x, y: np.ldexp(x, y.astype(np.int32)), (7, 5), (7, 5), dtypes=FLOATS)
add("bitwise_count", np.bitwise_count, (7, 5), dtypes=("bool", *INTS), low=-128, high=128)
add("python abs neg pos", lambda x: (abs(x), -x, +x), (5,), dtypes=NUMBERS)

# Ufuncs of two.
_SELECTIONS_AND_COMPARISONS = (
    "maximum", "minimum", "fmax", "fmin",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip
for _name in (
    "add", "multiply", *_SELECTIONS_AND_COMPARISONS, "logical_and", "logical_or", "logical_xor",
):  # fmt: skip
    add(_name, getattr(np, _name), (4, 5), (4, 5), dtypes=ALL)
add("subtract", np.subtract, (4, 5), (4, 5), dtypes=NUMBERS)
for _name in ("floor_divide", "remainder", "fmod", "divmod"):
    _f = getattr(np, _name)
    add(_name, _f, (40,), (40,), dtypes=NUMBERS, low=1, high=9)
    add(
        f"{_name} with signs",
        lambda a, b, f=_f: f(a, np.where(b == 0, 1, b).astype(b.dtype)),
        (40,),
        (40,),
        dtypes=("int8", "int32", "int64", "float32", "float64"),
        low=-9,
        high=9,
    )
add("floor_divide by zero", lambda a: (a // (a - a), a % (a - a)), (9,), dtypes=INTS)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    add(_name, getattr(np, _name), (4, 5), (4, 5), dtypes=("bool", *INTS))
for _name in ("left_shift", "right_shift"):
    add(_name, getattr(np, _name), (4, 5), (4, 5), dtypes=INTS, low=0, high=7)
add("divide", np.divide, (4, 5), (4, 5), dtypes=ALL, low=1, high=9)
for _name in ("arctan2", "hypot", "copysign", "logaddexp", "logaddexp2", "heaviside"):
    add(_name, getattr(np, _name), (4, 5), (4, 5))
add("power", np.power, (4, 5), (4, 5), dtypes=FLOATS, low=0.5)
add("power of unsigned", np.power, (9,), (9,), dtypes=("uint8", "uint16", "uint32", "uint64"))
add(
    "constant powers", lambda x: (x**0, x**1, x**2, x**3, x**4, x**7), (9,), dtypes=NUMBERS, ulps=16
)
add(
    "constant float powers",
    lambda x: (x**-1, x**0.5, x**-0.5, x**1.5),
    (9,),
    dtypes=FLOATS,
    low=0.5,
)
add("float_power", np.float_power, (9,), (9,), low=1)
add(
    "weak scalars",
    lambda x: (x + 1, 2 * x, x * 0.5, 1 / (x + 7), 3 - x, x > 1, x >= 2),
    (6,),
    dtypes=NUMBERS,
)
add("divide by a number", lambda x: x / 3, (6,), dtypes=ALL)
add("broadcast", lambda a, b: a[:, None] * b + a[:, None], (4,), (3, 4, 5), dtypes=FEW)

# Choices.
add("where", np.where, (4, 5), (4, 5), (4, 5), dtypes=ALL)
add("where with numbers", lambda x: np.where(x > 0, x, 0), (9,), dtypes=ALL)
add("clip", lambda x: np.clip(x, 1, 3), (9,), dtypes=NUMBERS)
add("clip one side", lambda x: (x.clip(max=2), np.clip(x, 1, None)), (9,), dtypes=NUMBERS)
add("nan_to_num", np.nan_to_num, (9,))
add("isclose", lambda a, b: np.isclose(a, b), (9,), (9,), dtypes=REALS)
add("round", lambda x: (np.round(x), x.round(2)), (9,), dtypes=REALS)

# Reductions.
for _name in ("sum", "prod", "max", "min", "any", "all", "mean", "var", "std"):
    _f = getattr(np, _name)
    _d = (
        FEW
        if _name in ("any", "all", "max", "min")
        else ("bool", "int8", "int32", "uint8", "float32", "float64")
    )
    for _label, _arguments in (
        ("", {}),
        (" of axis 0", {"axis": 0}),
        (" of axis -1", {"axis": -1}),
        (" of axes", {"axis": (0, 2), "keepdims": True}),
    ):
        add(
            f"{_name}{_label}",
            lambda x, f=_f, k=_arguments: f(x, **k),
            (3, 4, 5),
            dtypes=_d,
            low=-2,
            high=3,
            ulps=64,
        )
add("sum of float16", np.sum, (100,), dtypes=("float16",), ulps=64)
add("mean of float16", np.mean, (100,), dtypes=("float16",))
add("sum with dtype", lambda x: x.sum(axis=0, dtype=np.float64), (3, 4), dtypes=NUMBERS)
add("sum with initial", lambda x: (np.sum(x, initial=3), np.max(x, initial=1)), (6,), dtypes=REALS)
add(
    "var with ddof",
    lambda x: (x.var(ddof=1), np.std(x, axis=0, correction=1)),
    (6, 3),
    dtypes=REALS,
    ulps=32,
)
add("sum of no axes", lambda x: x.sum(axis=()), (6,), dtypes=ALL)
add("sum of nothing", lambda x: (x.sum(), x.prod(), x.any(), x.all(axis=1)), (3, 0))
add(
    "argmax argmin",
    lambda x: (x.argmax(), np.argmin(x, axis=1), np.argmax(x, 0, keepdims=True)),
    (6, 7),
    dtypes=FEW,
)
add("count_nonzero", np.count_nonzero, (6, 7))
add("ptp", np.ptp, (6, 7), dtypes=NUMBERS)
add(
    "ufunc methods",
    lambda x: (np.add.reduce(x), np.maximum.reduce(x, axis=1), np.multiply.outer(x[0], x[1])),
    (3, 4),
    dtypes=REALS,
)

# Products.
for _name, _shapes in {
    "vectors": ((5,), (5,)),
    "matrix vector": ((3, 5), (5,)),
    "vector matrix": ((5,), (5, 4)),
    "matrices": ((3, 5), (5, 4)),
    "batched": ((2, 3, 5), (2, 5, 4)),
    "batched with one": ((2, 3, 5), (5, 4)),
    "one with batched": ((3, 5), (2, 5, 4)),
    "broadcast batches": ((2, 1, 3, 5), (6, 5, 4)),
    "size one": ((1, 3, 5), (2, 5, 4)),
    "vector batched": ((5,), (2, 5, 4)),
}.items():
    add(f"matmul of {_name}", lambda a, b: a @ b, *_shapes, dtypes=ALL, ulps=32)
add("dot", np.dot, (2, 3, 5), (4, 5, 6), dtypes=FEW, ulps=32)
add("inner", np.inner, (2, 3, 5), (4, 5), dtypes=FEW, ulps=32)
add("outer", np.outer, (4,), (2, 3))
add("vdot", np.vdot, (2, 3), (2, 3), dtypes=REALS, ulps=32)
add(
    "tensordot by count",
    lambda a, b: np.tensordot(a, b, 2),
    (2, 3, 4),
    (3, 4, 5),
    dtypes=FEW,
    ulps=64,
)
add(
    "tensordot by axes",
    lambda a, b: np.tensordot(a, b, ([2, 0], [1, 2])),
    (2, 3, 4),
    (5, 4, 2),
    dtypes=FEW,
    ulps=64,
)
for _text, _shapes in {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "ij,jk": ((3, 4), (4, 5)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "ij->ji": ((3, 4),),
    "ii": ((4, 4),),
    "ii->i": ((4, 4),),
    "ij->": ((3, 4),),
    "i,j->ij": ((3,), (4,)),
    "ij,ij->i": ((3, 4), (3, 4)),
    "ij,kl->": ((2, 3), (4, 5)),
    "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
}.items():
    add(
        f"einsum {_text}",
        lambda *xs, t=_text: np.einsum(t, *xs),
        *_shapes,
        dtypes=("int32", "float32", "float64"),
        ulps=64,
    )
add(
    "linalg.norm",
    lambda x: (np.linalg.norm(x), np.linalg.norm(x, axis=1)),
    (3, 4),
    dtypes=("int32", *REALS),
    ulps=32,
)

# Movement.
_MOVEMENT: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "reshape": (lambda x: (x.reshape(6, 4), x.reshape(-1), np.reshape(x, (2, -1, 2))), (2, 3, 4)),
    "ravel": (lambda x: (x.ravel(), x.flatten()), (2, 3, 4)),
    "transpose": (lambda x: (x.T, x.transpose(1, 0, 2), np.transpose(x, (2, 0, 1))), (2, 3, 4)),
    "swapaxes moveaxis": (
        lambda x: (x.swapaxes(0, -1), np.moveaxis(x, 0, -1), np.rollaxis(x, 2)),
        (2, 3, 4),
    ),
    "expand squeeze": (lambda x: (np.expand_dims(x, (0, -1)), np.squeeze(x[:, :1], 1)), (2, 3)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (4, 2, 3)), (2, 3)),
    "concatenate": (
        lambda x: (np.concatenate([x, x, x[:1]]), np.concatenate([x, x], axis=None)),
        (2, 3),
    ),
    "stack": (
        lambda x: (
            np.stack([x, x]),
            np.stack([x, x], -1),
            np.hstack([x, x]),
            np.vstack([x, x]),
            np.dstack([x, x]),
            np.column_stack([x, x]),
        ),
        (2, 3),
    ),
    "split": (
        lambda x: (np.split(x, 3), np.array_split(x, 4), np.split(x, [1, 4]), np.hsplit(x, 2)),
        (6, 4),
    ),
    "flip": (
        lambda x: (
            np.flip(x),
            np.flip(x, 0),
            np.fliplr(x),
            np.flipud(x),
            np.rot90(x),
            np.rot90(x, 3),
        ),
        (2, 3),
    ),
    "roll": (lambda x: (np.roll(x, 2), np.roll(x, -1, axis=1), np.roll(x, (1, 2), (0, 1))), (3, 4)),
    "repeat tile": (
        lambda x: (np.repeat(x, 3), np.repeat(x, 2, axis=1), np.tile(x, (2, 1)), np.tile(x, 3)),
        (2, 3),
    ),
    "pad": (lambda x: (np.pad(x, 1), np.pad(x, ((1, 2), (0, 3)))), (2, 3)),
    "pad modes": (
        lambda x: tuple(
            np.pad(x, ((2, 1), (1, 2)), mode=m) for m in ("edge", "reflect", "symmetric", "wrap")
        ),
        (3, 4),
    ),
    "diff": (lambda x: (np.diff(x), np.diff(x, n=2, axis=0)), (4, 5)),
    "atleast": (lambda x: (np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)), (4,)),
    "diagonal": (
        lambda x: (np.diagonal(x), np.diagonal(x, 1), np.diag(x, -1), np.trace(x)),
        (4, 5),
    ),
    "diag": (lambda x: (np.diag(x), np.diag(x, 2), np.diag(x, -1)), (4,)),
    "tril triu": (lambda x: (np.tril(x), np.triu(x, 1)), (4, 5)),
    "likes": (
        lambda x: (
            np.zeros_like(x),
            np.ones_like(x, shape=(2,)),
            np.full_like(x, 1),
            np.ones_like(x, dtype=np.int16),
        ),
        (4,),
    ),
    "index integers": (lambda x: (x[0], x[-1, 2], x[1, :, -1], x[..., 0]), (2, 3, 4)),
    "index slices": (
        lambda x: (x[1:], x[:, ::2], x[::-1], x[:, 5:1:-2], x[1:1], x[:, -3:-1, None], x[100:]),
        (4, 7),
    ),
    "index newaxis": (lambda x: (x[None], x[:, None, 1:], x[..., None]), (2, 3)),
    "index by a list": (
        lambda x: (x[[0, 2, -1]], x[:, [1, 1]], x[np.array([[0, 1], [1, 0]])]),
        (3, 4),
    ),
    "take": (
        lambda x: (np.take(x, [5, 0, -1]), np.take(x, [], 0), np.take(x, [1, 0], axis=1)),
        (3, 4),
    ),
    "iterate": (lambda x: [row + 1 for row in x], (3, 4)),
    "meshgrid": (lambda x: np.meshgrid(x, x[:2]), (4,)),
}
for _name, (_function, _shape) in _MOVEMENT.items():
    add(
        _name,
        _function,
        _shape,
        dtypes=("bool", "int8", "int64", "float16", "float64") if _name != "iterate" else NUMBERS,
    )
add("pad with a value", lambda x: np.pad(x, 1, constant_values=3), (2, 3), dtypes=NUMBERS)
add("gather", lambda x, i: x[abs(i.astype(np.int64)) % 4], (4, 3), (5, 2), dtypes=NUMBERS)
add("astype", lambda x: tuple(x.astype(d) for d in ALL), (9,), dtypes=ALL, low=0)
add(
    "meet",
    lambda a, b: np.concatenate([a, b[:1].astype(np.int8)]),
    (2, 3),
    (2, 3),
    dtypes=ALL,
    low=0,
)

# Whole functions.
add(
    "softmax",
    lambda x: (e := np.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True),
    (6, 9),
    dtypes=REALS,
    ulps=16,
)
add(
    "layernorm",
    lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
    (6, 9),
    dtypes=REALS,
    ulps=64,
)
add(
    "gelu",
    lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    (50,),
    dtypes=FLOATS,
    ulps=16,
)
add("mlp", lambda x, w, v: np.maximum(x @ w, 0) @ v, (6, 5), (5, 7), (7, 3), dtypes=REALS, ulps=64)

# Values at which functions are special: checked with the float ufuncs.
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1e-30, 3e38, 2.0])
SPECIAL_UNARY = (
    *_UNARY_FLOAT,
    *_PLAIN_UNARY,
    "negative",
    "sign",
    "reciprocal",
    "logical_not",
)
SPECIAL_BINARY = (
    "add",
    "subtract",
    "multiply",
    "divide",
    *_SELECTIONS_AND_COMPARISONS,
    "arctan2",
    "hypot",
    "copysign",
    "logaddexp",
    "power",
    "floor_divide",
    "remainder",
    "fmod",
    "heaviside",
)
