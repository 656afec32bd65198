"""Variants of the programs in tests/python do at each call what they do with NumPy: results,
exceptions, what is printed, and what they leave in arguments, objects and globals."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import sharing
from rounding import with_random_rounding
from variant_changes import variant
from variants import Base, TooLong, Variant, base, smaller

import rune_jit
from rune_jit.calls.segmented import Trial
from rune_jit.tracing import programs

sys.path.append(str(Path(__file__).parents[1] / "python"))
_CALLS = 4
_ROUNDINGS = 6
_WITH_TIES = {"AdaBoost.fit"}  # rounding decides which of several equal candidates it takes


def bases() -> list[Base]:
    """The programs of tests/python that can be changed."""
    import checking_programs  # noqa: F401
    import class_programs  # noqa: F401
    import data_programs  # noqa: F401
    import discrete_programs  # noqa: F401
    import graph_programs  # noqa: F401
    import growing_programs
    import guarded_programs  # noqa: F401
    import loop_programs
    import optimization_programs  # noqa: F401
    import stateful_programs  # noqa: F401
    import value_programs
    from science_programs import PROGRAMS

    made = [base(name, f, make) for name, (f, make) in PROGRAMS.items()]
    made += [base(name, f(), make) for name, (f, make) in value_programs.PROGRAMS.items()]
    made += [
        base(name, f, lambda r, args=args: copy.deepcopy(args))  # type: ignore[misc]
        for name, (f, args, _) in growing_programs.PROGRAMS.items()
    ]
    made += [base(f.__name__, f, lambda r, m=make: m(r, 9)) for f, make in loop_programs.PROGRAMS]
    return [x for x in made if x is not None and x.name not in _WITH_TIES]


def _plain(x: Any, seen: tuple[int, ...] = ()) -> Any:
    """A copy of x as nested lists of arrays and numbers, each with its type."""
    if isinstance(x, (np.ndarray, np.generic)):
        return np.array(x) if isinstance(x, np.ndarray) else x
    if id(x) in seen:
        return "itself"
    seen = (*seen, id(x))
    if isinstance(x, dict):
        return [dict, *([key, _plain(value, seen)] for key, value in x.items())]
    if isinstance(x, (list, tuple, set, frozenset)) or type(x).__name__ == "deque":
        items = sorted(x, key=repr) if isinstance(x, (set, frozenset)) else x
        return [type(x).__name__, *(_plain(item, seen) for item in items)]
    if isinstance(x, np.random.Generator):
        return repr(x.bit_generator.state)
    if isinstance(x, (int, float, complex, str, bytes, type(None), np.dtype)):
        return x
    if hasattr(x, "__dict__") and not callable(x) and type(x).__module__ != "builtins":
        return [type(x).__name__, _plain(vars(x), seen)]
    return type(x).__name__


def _calls(made: Variant, jit: Any, noise: int) -> tuple[list[Any], Any]:
    """What each call did, and the function."""
    function, state = made.make()
    called = jit(function)
    did = []
    for call in range(_CALLS):
        given = _with_noise(made.arguments(call), noise)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                as_it_is = jit is _as_it_is
                result = made.limited(called, given) if as_it_is else called(*given)
            except Exception as error:
                result = _described(error)
        if type(result) is str and result == "RecursionError":
            # What the call did before depends on where the recursion ends.
            return [*did, result], called
        what = {"result": result, "arguments": given} | {
            k: dict(v.items()) for k, v in state.items()
        }
        try:
            plain = _plain(what)
        except rune_jit.errors.TracerLeakError as error:
            plain = ["leak", str(error)]
        # (np.asarray of a view gives another view in functions that assign globals.)
        memory = [shares for _, shares in sharing(what)]
        did.append([*plain, printed.getvalue(), memory])
    return did, called


def _described(error: Exception) -> str:
    """Type and text of an exception, but for what may differ: which of several indices out of
    bounds is named, how an index that is no integer is described, and where a recursion ends."""
    if isinstance(error, RecursionError):
        return "RecursionError"
    text = re.sub(r"^index -?\d+ is out of bounds", "index out of bounds", str(error))
    text = re.sub(r"^(only integers, slices|arrays used as indices).*", "no index", text)
    return f"{type(error).__name__}: {text}"


def _with_noise(arguments: Any, noise: float) -> Any:
    """The arguments with arrays that differ by up to `noise` times the dtype's precision."""
    if isinstance(arguments, np.ndarray) and arguments.dtype.kind == "f" and noise:
        noise *= float(np.finfo(arguments.dtype).eps)
        factors = 1 + noise * np.cos(np.arange(arguments.size)).reshape(arguments.shape)
        return (arguments * factors).astype(arguments.dtype)
    if type(arguments) in (list, tuple):
        return type(arguments)(_with_noise(x, noise) for x in arguments)
    return arguments


def _until_index_error(did: list[Any]) -> list[Any]:
    """What the calls did until an index that data decide was out of bounds. (Functions in segments
    go on until they ask for a value.)"""
    for i, call in enumerate(did):
        result = call[1][1] if isinstance(call, list) and call[0] is dict else None
        if isinstance(result, str) and result.startswith("IndexError: index out of bounds"):
            return [*did[:i], result]
    return did


def _as_it_is(function: Any) -> Any:
    return function


def difference(actual: Any, expected: Any, place: str = "") -> str | None:
    """Where and how two results of _plain differ by more than rounding."""
    if type(actual) is not type(expected):
        return f"{place}: {actual!r} instead of {expected!r}"
    if isinstance(expected, list):
        if len(actual) != len(expected):
            return f"{place}: {len(actual)} items instead of {len(expected)}: {actual} {expected}"
        pairs = enumerate(zip(actual, expected, strict=True))
        found = (difference(a, e, f"{place}[{i}]") for i, (a, e) in pairs)
        return next((d for d in found if d), None)
    if isinstance(expected, (np.ndarray, np.generic, float, complex)):
        mine, wanted = np.asarray(actual), np.asarray(expected)
        if (mine.dtype, mine.shape) != (wanted.dtype, wanted.shape):
            return f"{place}: {mine.dtype}{mine.shape} instead of {wanted.dtype}{wanted.shape}"
        is_same = _is_close(mine, wanted)
    else:
        is_same = actual == expected
    return None if is_same else f"{place}: {actual!r} instead of {expected!r}"


def _is_close(a: np.ndarray, b: np.ndarray) -> bool:
    if b.dtype.kind not in "fc":
        return np.array_equal(a, b)
    finite = np.abs(b[np.isfinite(b)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    tolerance = 1e-3 if b.dtype.itemsize < 8 else 1e-6
    return np.allclose(a, b, tolerance, tolerance * scale, equal_nan=True)


def _unlike(made: Variant, device: str) -> str | None:
    """How the calls differ from NumPy's, None if they do not."""
    wanted, _ = _calls(made, _as_it_is, 0)
    found, jitted = _calls(made, lambda f: rune_jit.jit(f, fallback="silent", device=device), 0)
    how = difference(found, wanted)
    if how is not None and "in segments" in jitted.explain():
        how = difference(_until_index_error(found), _until_index_error(wanted))
    if how is None:
        made.explanation = jitted.explain()  # type: ignore[attr-defined]
        return None
    # Rounding may decide: then NumPy's own results differ much for nearly equal arguments.
    for noise in (60, -500):
        if difference(_calls(made, _as_it_is, noise)[0], wanted):
            made.explanation = ""  # type: ignore[attr-defined]
            return None
    for number in range(_ROUNDINGS):
        rounded = with_random_rounding(made, number)
        if difference(_calls(rounded, _as_it_is, 0)[0], wanted):
            made.explanation = ""  # type: ignore[attr-defined]
            return None
    return f"{how}\n{jitted.explain()}"


def _report(made: Variant, how: str, device: str) -> str:
    """The smallest variant that still differs, and how."""
    for _ in range(4):
        size = len(made.source)
        for less in smaller(made):
            with contextlib.suppress(Exception, TooLong):
                found = _unlike(less, device)
                if found is not None:
                    made, how = less, found
                    break
        if len(made.source) == size:
            break
    return f"\n{made.source}\n{how}"


_bases: list[Base] = []


def made_of(seed: int) -> Variant:
    if not _bases:
        _bases.extend(bases())
    return variant(_bases[seed % len(_bases)], seed)


def check(seed: int, device: str = "cpu") -> str:
    """How the calls of a seed's variant ran: "program", "segments", "NumPy", or "not" if it has no
    valid source or runs for long. Raises AssertionError if they differ from NumPy's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made = made_of(seed)
            how = _unlike(made, device)
        except (SyntaxError, TooLong):
            return "not"
    if how is not None:
        raise AssertionError(f"{made.base.name}, seed {seed}: {_report(made, how, device)}")
    text: str = made.explanation  # type: ignore[attr-defined]
    return "program" if "as one program" in text else "segments" if "segments" in text else "NumPy"


@pytest.fixture(autouse=True)
def _never_on_numpy_because_it_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    monkeypatch.setattr(programs, "_INTERPRETED", math.inf)


def test_variants(full: bool) -> None:
    # (Consecutive seeds change programs of one file.)
    ways = [check(seed) for seed in (range(20_000) if full else range(0, 240, 4))]
    assert ways.count("program") > len(ways) / 10 and ways.count("segments") > len(ways) / 10


def that_cancels(x: Any) -> Any:
    return np.arctan2((x * 0.1).sum() - x.sum() * 0.1, 0.0)


def of_few_bits(x: Any) -> Any:
    return np.sign((x * 0.5).sum() - x.sum() / 2)


@pytest.mark.parametrize("function, decides", [(that_cancels, True), (of_few_bits, False)])
def test_whether_rounding_decides(function: Any, decides: bool) -> None:
    made = base(function.__name__, function, lambda rng: (np.arange(9.0),))
    assert made is not None
    plain = Variant(made, made.node, 0)
    found = [_calls(with_random_rounding(plain, n), _as_it_is, 0)[0] for n in range(_ROUNDINGS)]
    differ = [difference(calls, _calls(plain, _as_it_is, 0)[0]) is not None for calls in found]
    assert any(differ) == decides
