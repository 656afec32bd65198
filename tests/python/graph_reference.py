"""A reference evaluator of high-level graphs in NumPy, from their text: it checks what tracing
builds without any stage below it."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from rune_jit import _core

DTYPES = {
    "bool": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
_ALU = {row["name"]: row["numpy"] for row in _core.alu_ops()}
_LINE = re.compile(r"%(\d+) = (\w+)(.*) : (\w+)\[([\d,]*)\]$")
_WORD = re.compile(r"(\w+)=(\[[^ ]*\]|[^ ]+)|%(\d+)|([\w.]+(?:\([^)]*\))?)")


def _scalar(text: str) -> Any:
    name, value = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    dtype = np.dtype(DTYPES[name])
    if value in ("true", "false"):
        return dtype.type(value == "true")
    return dtype.type(int(value) if dtype.kind in "iu" else float(value))


def _alu(name: str, xs: list[np.ndarray]) -> np.ndarray:
    if name == "where":
        return np.where(*xs)
    if name == "mulacc":
        return xs[0] * xs[1] + xs[2]
    if name == "ldexp":
        return np.ldexp(xs[0], xs[1].astype(np.int32))
    if name == "recip":
        return (1 / xs[0]).astype(xs[0].dtype)
    if name == "pow":  # of one exponent for all, NumPy may take roots instead
        xs = [np.stack([x, x]) for x in np.broadcast_arrays(*xs)]
        return np.power(*xs)[0]
    return getattr(np, _ALU[name])(*xs)


def _contract(a: np.ndarray, b: np.ndarray, pairs: Any, batch: Any) -> np.ndarray:
    la, lb = list(range(a.ndim)), list(range(a.ndim, a.ndim + b.ndim))
    for i, j in [*pairs, *batch]:
        lb[j] = la[i]
    fixed = [la[i] for i, _ in batch]
    dropped = [la[i] for i, _ in pairs]
    out = fixed + [x for x in la if x not in fixed + dropped]
    out += [x for x in lb if x not in fixed + dropped]
    return np.einsum(a, la, b, lb, out)


def _evaluate(
    kind: str, bare: list[str], attrs: dict[str, Any], xs: list[np.ndarray], dtype: Any
) -> Any:
    x = xs[0] if xs else None
    if kind in ("binop", "unary", "ternary"):
        return _alu(bare[0], xs)
    if kind == "const_scalar":
        return np.asarray(_scalar(bare[0]))
    if kind == "iota":
        return np.arange(attrs["shape"][0], dtype=dtype)
    if kind == "reshape":
        return x.reshape(attrs["shape"])
    if kind == "permute":
        return x.transpose(attrs["axes"])
    if kind == "expand":
        return np.broadcast_to(x, attrs["shape"])
    if kind == "pad":
        return np.pad(x, attrs["widths"])
    if kind == "shrink":
        return x[tuple(slice(low, high) for low, high in attrs["limits"])]
    if kind == "flip":
        return np.flip(x, tuple(attrs["axes"]))
    if kind == "reduce_axis":
        f = {"add": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[bare[0]]
        # Of no elements: the identity, which for bool is that of `or` and `and`.
        empty = {"initial": bare[0] == "min"} if x.size == 0 and x.dtype == bool else {}
        return f.reduce(x, axis=tuple(attrs["axes"]), keepdims=True, dtype=x.dtype, **empty)
    if kind == "cast":
        return x.astype(dtype)
    if kind == "bitcast":
        return np.ascontiguousarray(x).view(dtype).reshape(x.shape)
    if kind == "contract":
        return _contract(xs[0], xs[1], attrs["contract"], attrs["batch"])
    if kind == "cat":
        return np.concatenate(xs, attrs["axis"])
    if kind == "gather":
        return np.take(x, xs[1], attrs["axis"])
    if kind == "update":
        made = x.copy()
        ends = (low + n for low, n in zip(attrs["offsets"], xs[1].shape, strict=True))
        made[tuple(map(slice, attrs["offsets"], ends))] = xs[1]
        return made
    if kind == "sink":
        return np.zeros(0, bool)
    raise NotImplementedError(kind)


def evaluate(text: str, inputs: list[Any], functions: Any = ()) -> list[np.ndarray]:
    """The outputs of a graph on these inputs; `functions` are the (name, callable) of its host
    callbacks. Asserts the type that each node states."""
    values: dict[int, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for line in text.splitlines()[1:]:
            line = line.strip()
            if line.startswith("return"):
                return [values[int(i)] for i in re.findall(r"%(\d+)", line)]
            number, kind, rest, dtype, shape = _LINE.match(line).groups()
            bare, attrs, operands = [], {}, []
            for key, value, operand, word in _WORD.findall(rest):
                if key:
                    attrs[key] = eval(value)
                elif operand:
                    operands.append(values[int(operand)])
                else:
                    bare.append(word)
            if kind == "placeholder":
                value = np.asarray(inputs[attrs["index"]], DTYPES[dtype])
            elif kind == "host_callback":
                value = np.asarray(functions[attrs["call"]][1](*operands)[attrs["result"]])
            else:
                value = _evaluate(kind, bare, attrs, operands, DTYPES[dtype])
            assert value.dtype == DTYPES[dtype], line
            assert list(value.shape) == [int(n) for n in shape.split(",") if n], line
            values[int(number)] = value
    raise AssertionError("a graph without return")
