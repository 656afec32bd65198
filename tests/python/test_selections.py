"""Reductions of x[mask], whose number of elements data decide, are parts of a program."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit

NAMES = ["sum", "mean", "max", "min", "std", "prod", "any"]
# The shape of x, how many axes the mask has, and axes of the selection.
CASES: list[tuple[tuple[int, ...], int, Any]] = [
    ((7,), 1, 0),
    ((7, 4), 1, None),
    ((7, 4), 1, 0),
    ((7, 4), 1, -1),
    ((7, 4), 1, (0, 1)),
    ((7, 4), 1, (0, 0)),
    ((7, 4), 2, -1),
    ((7, 4), 2, 1),
    ((5, 4, 3), 1, (-3, 2)),
    ((5, 4, 3), 1, 1),
    ((5, 4, 3), 2, 0),
    ((5, 4, 3), 2, 1),
    ((5, 4, 3), 3, (0,)),
]


def _check(f: Any, *args: Any) -> Any:
    jitted = rune_jit.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = f(*args)
        except Exception as error:
            with pytest.raises(type(error)) as raised:
                jitted(*args)
            assert str(raised.value) == str(error)
        else:
            assert_same(jitted(*args), expected, ulps=64, scaled=True)
    return jitted


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize(("shape", "axes", "axis"), CASES)
def test_reductions(shape: tuple[int, ...], axes: int, axis: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = (4 * rng.standard_normal(shape)).astype(dtype)
    masks = [rng.random(shape[:axes]) < 0.5, np.zeros(shape[:axes], bool)]
    for name in NAMES:
        for mask in masks:
            _check(lambda x, m, name=name: getattr(x[m], name)(axis=axis), x, mask)
            _check(lambda x, m, name=name: getattr(np, name)(x[m] + 1, axis), x, mask)


def test_what_is_left_of_rows_is_computed_with_and_assigned() -> None:
    rng = np.random.default_rng(0)
    x, mask = rng.standard_normal((9, 3)), rng.random(9) < 0.6

    def f(x, mask):
        y = np.zeros(len(x))
        y[mask] = (x[mask] ** 2).sum(axis=1)
        spread = x[mask].std(0, ddof=1)
        return y, (np.sqrt(x[mask].max(1) ** 2)).mean(), spread

    assert "as one program" in _check(f, x, mask).explain()


def test_nothing_is_written_after_an_error_in_segments() -> None:
    def f(x, m):
        m[0, 0] = x.max()
        m.ravel()[4] = x[x > 22].max()
        return x[x > 12].size

    jitted = rune_jit.jit(f)
    for x in (np.array([37.0, 27, 19, 21]), np.array([21.0, 18, 13, 16])):
        m, wanted = np.ones((4, 4)), np.ones((4, 4))
        if x[0] > 22:
            assert jitted(x, m) == f(x, wanted)
        else:
            for function, array in ((jitted, m), (f, wanted)):
                with pytest.raises(ValueError, match="zero-size array"):
                    function(x, array)
        np.testing.assert_array_equal(m, wanted)


def test_selections_as_out() -> None:
    def f(x, a):
        y = x[x > 1]
        np.add(a, a, out=y)
        return y

    _check(f, np.array([0.0, 2, 3]), np.array([5.0, 6]))
    _check(f, np.array([0, 2, 3]), np.array([5.0, 6]))


@pytest.mark.parametrize("make", [np.asarray, np.asanyarray, np.ascontiguousarray])
def test_functions_that_return_the_same_array(make: Any) -> None:
    def sums(x: Any) -> Any:
        chosen = x[x > 2]
        other = make(chosen)
        other *= 2
        return chosen.sum(), make(chosen, np.float64) is chosen

    def parts(x: Any) -> Any:
        chosen = x[x > 2]
        other = make(chosen)
        other[1:] = 0
        return chosen, chosen[0]

    x = np.arange(6.0)
    assert "as one program" in _check(sums, x).explain()
    assert "in segments" in _check(parts, x).explain()


@pytest.mark.parametrize(
    "of",
    [
        lambda y: f"{y} {y!r} {y!s}",
        lambda y: (str(y), repr(y), "%s" % y),  # noqa: UP031
        lambda y: copy.copy(y),
        lambda y: copy.deepcopy(y),
        lambda y: pickle.loads(pickle.dumps(y)),
        lambda y: (3 in y, 99 in y),
        lambda y: complex(y[:1].sum()),
        lambda y: print(y, end=""),
    ],
)
def test_texts_and_copies(of: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x):
        y = x[x > 2]
        return of(y)

    for x in (np.arange(5), np.arange(-2.0, 4), np.zeros(3)):
        expected, wanted = f(x), capsys.readouterr().out
        jitted = rune_jit.jit(f)
        for _ in range(3):
            assert_same(jitted(x), expected)
            assert capsys.readouterr().out == wanted


def test_k_means_is_one_program() -> None:
    def k_means(x, k):
        centres = x[:k].copy()
        for _ in range(20):
            distances = ((x[:, None] - centres[None]) ** 2).sum(-1)
            labels = distances.argmin(1)
            new = np.array(
                [x[labels == j].mean(0) if (labels == j).any() else centres[j] for j in range(k)]
            )
            if np.allclose(new, centres):
                break
            centres = new
        return centres, labels

    x = np.random.default_rng(1).standard_normal((30, 2))
    jitted = _check(k_means, x, 3)
    assert "as one program" in jitted.explain()
    assert "is a loop of the program" in jitted.explain()


def lengths(x: Any) -> Any:
    return len(x[x > 0]), x[x > 0].size / 4, len(x[x > 0] * 2) + 1


def sizes_of_rows(x: Any) -> Any:
    rows = x.reshape(-1, 1)[x > 0]
    return rows.size, len(rows), x.reshape(-1, 1)[x.reshape(-1, 1) > 0].size


def a_check_of_lengths(x: Any) -> Any:
    if len(x[x > -3]) != len(x):
        raise ValueError("too small")
    return x * 2


def a_check_for_duplicates(x: Any) -> Any:
    if len(np.unique(x)) != len(x):
        raise ValueError("x must be distinct")
    return x * 2 + np.unique(x).size


def reductions_of_unique(x: Any) -> Any:
    u = np.unique(x.reshape(-1, 1))
    return np.sum(u), (u * 2).max(), u.size


LENGTHS = [lengths, sizes_of_rows, a_check_of_lengths, a_check_for_duplicates, reductions_of_unique]


@pytest.mark.parametrize("function", LENGTHS)
@pytest.mark.parametrize("dtype", ["float64", "int16", "bool"])
def test_lengths(function: Any, dtype: str) -> None:
    """The number of elements of x[mask] and of np.unique(x) is a Python integer of the program."""
    jitted = rune_jit.jit(function)
    nan = np.nan if dtype == "float64" else 1
    for x in [3, 1, -2, 0], [1, 1, -5, 1], [2, 7, 1, 3], [nan, 2, nan, 2], [0.0, -0.0, 1, nan]:
        given = np.array(x).astype(dtype)
        try:
            wanted = function(given)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)):
                jitted(given)
            continue
        found = jitted(given)
        assert_same(found, wanted)
        if type(wanted) is tuple:
            assert [type(n) for n in found] == [type(n) for n in wanted]
    assert "segments" not in jitted.explain()


def test_lengths_that_python_needs() -> None:
    def f(x: Any) -> Any:
        zeros = np.zeros(len(x[x > 0]))
        for i in range(len(np.unique(x))):
            zeros[i % zeros.size] += i
        return zeros, np.unique(x), f"{len(np.unique(x)):d}", [c + 1 for c in np.unique(x)]

    jitted = rune_jit.jit(f)
    for x in [3.0, 1, -2, 0], [1.0, 1, -5, 1]:
        for _ in range(2):
            assert_same(jitted(np.array(x)), f(np.array(x)))


def test_pythons_functions_in_results() -> None:
    def f(x: Any, table: Any) -> Any:
        table["max"] = max
        return x + 1, {"len": len, "min": min, "isinstance": isinstance}

    table: dict[str, Any] = {}
    _, found = rune_jit.jit(f)(np.ones(3), table)
    assert found == {"len": len, "min": min, "isinstance": isinstance}
    assert table == {"max": max}


KINDS = {len: 1.0}


def test_len_is_pythons_own() -> None:
    def f(x: Any, words: Any, kind: Any) -> Any:
        longest = sorted(words, key=len)[-1]
        return x * len(x[x > 0]) * KINDS.get(len, 2.0), kind is len, longest

    jitted = rune_jit.jit(f)
    for x in np.arange(4.0), np.arange(4.0) - 1:
        for kind in len, max:
            assert_same(jitted(x, ["a", "bcd"], kind), f(x, ["a", "bcd"], kind))


@pytest.mark.parametrize("divide", ["raise", "warn"])
def test_errors_of_elements_that_are_not_selected_are_not_reported(divide: Any) -> None:
    def f(x: Any) -> Any:
        chosen, known = x[x > 0], np.zeros(4)[np.arange(4) > x[0]]
        with np.errstate(divide=divide):
            return 5 / (chosen * 1.0), 5 / (known + x[:1] + 2)

    jitted = rune_jit.jit(f, fallback="silent")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in np.arange(4.0), np.zeros(4):
            assert_same(jitted(x), f(x))


def _of_positions(x):
    i = np.where(x > 0.5)[0]
    return len(i), i.size, i.shape[0], i.mean(), x[i].sum(), x[x > 0.5].shape


def _of_functions(x):
    y = x.reshape(-1, 5)
    rows, columns = np.nonzero(y > 0.5)
    found = np.argwhere(y > 0.5)
    return rows.sum(), columns.mean(), y[rows, columns].sum(), len(found), found.max(axis=0)


def _elements(x):
    i = np.flatnonzero(x > 0.3)
    return i[0], i[1], i[-1], i[-2], (x > 0.3).nonzero()[0][0], x[x > 0.3][0]


def _written(x):
    y = x.reshape(-1, 5).copy()
    y[np.where(y > 0.8)] = -1
    y[np.where(y[:, 0] < 0.5)[0]] = 0
    y[:, np.where(y[0] > 0.5)[0]] = 3
    return y


def _columns(x):
    y = x.reshape(-1, 5)
    chosen = y[y[:, 0] > 0.5]
    rows = np.where(y[:, 1] > 0.5)[0]
    return chosen[:, 2].mean(), chosen[:, 1:3].sum(axis=0), y[rows][:, 0].max(), y[rows, 1].min()


def _mask_that_changes(x):
    mask = x > 0.5
    i = np.where(mask)[0]
    mask[:] = False
    x = np.concatenate([x[:3], [9.0], x[4:]])
    return x[i].sum(), len(i)


def _in_a_loop(x):
    found = np.zeros((5, 3))
    for k in range(5):
        i = np.where(x > k / 5)[0]
        found[k, 0] = len(i)
        if i.size > 2:
            found[k, 1] = x[i].mean()
            found[k, 2] = i[2] - i[0]
    return found


PROGRAMS = [
    _of_positions,
    _of_functions,
    _elements,
    _written,
    _columns,
    _mask_that_changes,
    _in_a_loop,
]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_positions_of_true_elements(function: Any) -> None:
    x = np.random.default_rng(0).random(50)
    jitted = rune_jit.jit(function, fallback="error")
    for _ in range(2):
        assert_same(jitted(x.copy()), function(x.copy()), ulps=64, scaled=True)
    for other in (np.zeros(50), np.ones(50), x[:10].copy()):  # with other numbers of elements
        _check(function, other)


def _changed_positions(x):
    i = np.where(x[:-2] > 0.5)[0]
    i += 1
    return x[i].sum(), i[0]


def _shifted(x):
    return x[np.where(x > 0.5)[0] - 1].sum()


def _of_another_size(x):
    y = np.zeros(len(x) + 3)
    i = np.where(x > 0.5)[0]
    y[i] = 1
    return y, y[i]


def _two_at_once(x):
    i, j = np.where(x > 0.9)[0], np.where(x > 0.9)[0]
    return x.reshape(-1, 5)[i // 5, j % 5]


def _view_of_a_selection(x):
    y = x.reshape(-1, 5)
    chosen = y[y[:, 0] > 0.5]
    column = chosen[:, 1]
    column += 5
    chosen *= 2
    return chosen, column


def _returned(x):
    return np.where(x > 0.5), np.argwhere(x > 0.5)[0]


def _under_two_names(x):
    chosen = x[x > 0.5]
    same, copy = np.asarray(chosen, float), np.array(chosen)
    chosen += 1
    same[0] = 7
    return chosen, same, copy


def _products(x):
    chosen, rows = x[x > 0.5], x.reshape(-1, 5)
    rows = rows[rows[:, 0] > 0.5]
    return chosen @ chosen, np.vecdot(chosen, chosen) * 2, rows.T @ rows, np.vecdot(rows, rows)


OTHERS = [
    _products,
    _under_two_names,
    _changed_positions,
    _shifted,
    _of_another_size,
    _two_at_once,
    _view_of_a_selection,
    _returned,
]


@pytest.mark.parametrize("function", OTHERS, ids=lambda f: f.__name__)
def test_other_uses_of_positions_are_as_in_numpy(function: Any) -> None:
    rng = np.random.default_rng(0)
    jitted = rune_jit.jit(function)
    for x in (rng.random(50), rng.random(50), rng.random(20) + 0.1):
        assert_same(jitted(x.copy()), function(x.copy()), ulps=64, scaled=True)


def test_positions_that_are_not_there() -> None:
    for index in (0, 2, -1, -3):
        _check(lambda x, index=index: np.where(x > 1)[0][index], np.array([0.0, 2.0, 3.0]))
        _check(lambda x, index=index: np.where(x > 1)[0][index], np.zeros(3))
