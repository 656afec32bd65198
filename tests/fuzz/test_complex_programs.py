"""Random programs on complex arrays. Both parts of all numbers are small integers, so that results
are exact in every order of operations, and must equal NumPy's."""

from __future__ import annotations

import copy
import random
import warnings
from typing import Any

import numpy as np
import pytest
from outcomes import outcome

import rune_jit

_SHAPES = [(), (1,), (3,), (4,), (3, 4), (4, 4), (1, 4), (4, 3), (2, 3, 4), (0, 4), (17,), (33, 4)]
# The largest size of a part: complex64 has all integers up to 2**24.
_LARGEST = 2**20

_EXPRESSIONS = [
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "-{a}", "{a} * 1j", "{a} + (2 - 1j)", "3 * {a}",
    "{a}.conj()", "{a}.real", "{a}.imag", "{a}.real - 1j * {b}", "np.square({a})", "{a} ** 2",
    "np.abs({a}.real) + 1j", "np.where({c}, {a}, {b})", "np.where({c}, {a}, 1j)",
    "np.sign({a}.real)", "np.equal({a}, {b})", "np.not_equal({a}, 0)",
    "np.less({a}.real, {b}.imag)", "np.isfinite({a})", "{a} < {b}", "{a} >= 1j",
    "np.maximum({a}, {b})", "np.minimum({a}, 2j)", "np.logical_or({a}, {b})", "np.iscomplex({a})",
    "{a}.sum()", "{a}.sum(axis={i})", "np.cumsum({a}, axis={i})", "{a}.any(axis={i})",
    "{a}.max()", "np.sum({a}, axis={i}, keepdims=True)", "np.count_nonzero({a})",
    "np.sort({a}, axis={i})", "{a} @ {b}", "np.vdot({a}, {b})", "np.outer({a}, {b})",
    "np.tensordot({a}, {b}, 1)", "np.einsum('...i,...i->...', {a}, {b})",
    "np.matmul({a}, {b}.conj().T)", "np.inner({a}, {b})", "np.moveaxis({a}, 0, -1)", "{a}[::-1]",
    "{a}[..., 1:]", "{a}[..., ::2]", "{a}[None]", "{a}.reshape(-1)", "{a}[0]",
    "np.concatenate([{a}, {b}], axis={i})", "np.stack([{a}, {a}.real], axis={i})",
    "np.roll({a}, 1)", "np.pad({a}, 1)", "np.flip({a})", "np.take({a}, [0, 0, -1], axis={i})",
    "{a}[np.array([1, 0])]", "np.broadcast_to({a}, (2, *np.shape({a}))) + 0",
    "np.diff({a}, axis={i})", "np.tile({a}, 2)", "{a}.astype(np.complex64)",
    "{a}.astype(complex)", "{a}.real.astype(int)", "{a}.imag.astype('f')",
    "np.zeros_like({a}) + 1j", "np.full({a}.shape, 2 - 3j) * {a}", "np.ones(4) * {a}",
    "{a} * np.eye(4)", "{a}.copy()", "np.array([1j, 2]) * {n}", "{a} + {n}",
    "np.multiply({a}, {n})", "{a}.ravel()",
]  # fmt: skip
_STATEMENTS = [
    "{a}[0] = {n}", "{a}[..., 1:] = 2j", "{a}[...] = {b}", "{a}.real = {b}.real",
    "{a}.imag[...] = 7", "{a}.real[..., ::2] += 1", "{a} += {b}", "{a} *= 1j",
    "{a}[{c}] = 1 - 1j", "{a}.T[0] = {a}.T[1]", "np.add({a}, {b}, out={a})", "{a}.imag = 0",
    "{a}[np.array([0, 1])] -= 1j", "{a}.fill(3j)", "np.add.at({a}, np.array([0, 0]), 1 + 1j)",
    "np.copyto({a}, {b} + 0, where={c})", "{a}.flat[0] = 5j",
    "np.multiply.at({a}, np.array([0, 0]), 2j)",
]  # fmt: skip


def _number(rng: random.Random) -> complex:
    return complex(rng.randint(-3, 3), rng.randint(-3, 3))


def _input(rng: random.Random) -> Any:
    if rng.random() < 0.15:
        return _number(rng)
    shape = rng.choice(_SHAPES)
    data = np.random.default_rng(rng.randrange(2**32))
    array = data.integers(-4, 5, shape) + 1j * data.integers(-4, 5, shape)
    array = np.asarray(array, rng.choice(["D", "D", "D", "F", "F"]))
    if rng.random() < 0.2:
        array = array.real.astype(rng.choice("dfil?"))
    if array.ndim > 1 and rng.random() < 0.2:
        array = np.asfortranarray(array)
    if array.ndim and rng.random() < 0.2:
        array = np.repeat(array, 2, -1)[..., ::2]
    return array


def _is_small(values: dict[str, Any]) -> bool:
    arrays = [np.asarray(v) for v in values.values()]
    return all(
        v.size < 5000 and v.dtype.kind in "cfib" and v.dtype != np.float16
        and np.all(np.maximum(np.abs(v.real), np.abs(v.imag)) < _LARGEST)
        for v in arrays
    )  # fmt: skip


def _program(seed: int) -> tuple[str, list[Any]]:
    """The text of a function, and its arguments."""
    rng = random.Random(seed)
    inputs = [_input(rng) for _ in range(rng.choice([1, 2, 2, 3]))]
    values: dict[str, Any] = {f"v{i}": copy.deepcopy(x) for i, x in enumerate(inputs)}
    lines: list[str] = []
    made: list[str] = []
    for _ in range(rng.randint(2, 12)):
        names = list(values)
        arrays = [n for n in names if isinstance(values[n], np.ndarray)]
        with_elements = [n for n in names if np.size(values[n])]
        if not with_elements:
            break
        slots = {
            "a": rng.choice(names[-3:] if rng.random() < 0.6 else names),
            "b": rng.choice(names),
            "c": f"({rng.choice(with_elements)}.real > 0)",
            "n": rng.choice([n for n in names if n not in arrays] or [repr(_number(rng))]),
            "i": rng.choice([0, -1, 1]),
        }
        writes = bool(arrays) and rng.random() < 0.25
        if writes:
            slots["a"] = rng.choice(arrays)
        line = rng.choice(_STATEMENTS if writes else _EXPRESSIONS).format(**slots)
        name = f"v{len(values)}"
        line = line if writes else f"{name} = {line}"
        after = copy.deepcopy(values)  # views become arrays of their own: only sizes matter here
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                exec(line, {"np": np}, after)
        except (TypeError, ValueError, IndexError, AttributeError):
            continue
        if not _is_small(after):
            continue
        values = after
        lines.append(line)
        made += [] if writes else [name]
    results = rng.sample(made, min(len(made), 3))
    arguments = ", ".join(f"v{i}" for i in range(len(inputs)))
    body = "\n    ".join([*lines, f"return ({''.join(f'{n}, ' for n in results)})"])
    return f"def f({arguments}):\n    {body}\n", inputs


def _differ(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, (tuple, list)):
        pairs = zip(found, wanted, strict=True)
        return len(found) != len(wanted) or any(_differ(x, y) for x, y in pairs)
    if type(found) is not type(wanted):
        return True
    x, y = np.asarray(found), np.asarray(wanted)
    return x.dtype != y.dtype or x.shape != y.shape or not np.array_equal(x, y)


def check(seed: int, device: str) -> None:
    """Raises AssertionError if the results of the seed's program differ from NumPy's."""
    text, inputs = _program(seed)
    names: dict[str, Any] = {"np": np}
    exec(text, names)
    ours, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    wanted = outcome(names["f"], theirs)
    if isinstance(wanted, tuple) and any(isinstance(x, type) for x in wanted):
        return  # a write met a view that does not allow it
    found = outcome(rune_jit.jit(names["f"], device=device, fallback="silent"), ours)
    differ = _differ((found, ours), (wanted, theirs))
    assert not differ, f"seed {seed}\n{text}{inputs}\n{found}\n{wanted}"


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
def test_programs_on_complex_numbers(device: str, full: bool) -> None:
    for seed in range(5000 if full else 120):
        check(seed, device)
