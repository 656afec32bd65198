"""Loops that print: what they print, in Python's order, whether a program or Python runs them."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial

X = np.random.default_rng(0).normal(size=(50, 3))


def printed(function: Any, capsys: Any, *args: Any) -> tuple[Any, str]:
    try:
        result = function(*[x.copy() if isinstance(x, np.ndarray) else x for x in args])
    except Exception as error:
        result = type(error), str(error)
    return result, capsys.readouterr().out


def check(function: Any, capsys: Any, *args: Any) -> str:
    """Compares calls with NumPy's; how they run."""
    jitted = rune_jit.jit(function)
    wanted = printed(function, capsys, *args)
    for _ in range(4):
        found = printed(jitted, capsys, *args)
        assert found[1] == wanted[1]
        assert_same(found[0], wanted[0], ulps=2**10, scaled=True)
    return jitted.explain()


def logistic(x: Any, y: Any, rate: float, epochs: int) -> Any:
    w, b, losses = np.zeros(x.shape[1]), 0.0, []
    for i in range(epochs):
        p = 1 / (1 + np.exp(-(x @ w + b)))
        loss = -np.mean(y * np.log(p + 1e-9) + (1 - y) * np.log(1 - p + 1e-9))
        losses.append(loss)
        if i % 100 == 0:
            print(f"epoch {i:4d}, loss {loss:.3f}", i)
        w -= rate * (x.T @ (p - y)) / len(y)
        b -= rate * (p - y).mean()
    print("weights", w.round(3))
    return w, b, losses


def every_iteration(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        total += np.round(x[i % 50, 0], 2)
        print("total: %.3f of %d" % (total, i), sep=" - ", end=";\n")  # noqa: UP031
        print("{:.1f}|{}".format(total, i), "of", i)  # noqa: UP032
    return total


def several(x: Any, n: int) -> Any:
    count = 0
    for i in range(n):
        if x[i % 50, 1] > 0.5:
            count += 1
            print("large:", i, count, x[i % 50, 1] > 1)
        for k in range(3):
            if k == i % 7:
                print("  inner", k)
        if i % 20 == 3:
            print("-" * 20)
            print()
    return count


def until(x: Any, n: int) -> Any:
    i, s = 0, 0.0
    while s < n:
        s += abs(x[i % 50, 2])
        i += 1
        print(f"{i}: {s:.2f}", flush=True)
        if i > 500:
            print("too many")
            break
    return i, s


def arrays(x: Any, n: int) -> Any:
    row, kept = x[0].copy(), [1, 2]
    for i in range(n):
        row += np.ones(3)
        kept[i % 2] += i
        print(np.rint(row), kept, (i, "text"))
    return row


def rounded(x: Any, n: int) -> Any:
    total, count = 0.0, 0
    for i in range(n):
        total += x[i % 50, 0] * 1.25
        count += 3
        print(round(total, 4), "after " + str(i) + ": " + format(total, ".2e"), repr(count))
        print("mean: " + str(round(total / (i + 1), 3)), round(total), str(x[i % 50, 0]))
    return total


def other_round(x: Any, n: int) -> Any:
    round = lambda value, digits: value * digits  # noqa: E731
    total = 0.0
    for i in range(n):
        total += x[i % 50, 0]
        print(i, round(total, 4))
    return total


def raises(x: Any, n: int) -> Any:
    for i in range(n):
        print("at", i)
        if x[i, 0] > 1.2:
            raise ValueError(f"row {i}")
    return x


def other_print(x: Any, n: int) -> Any:
    lines = []
    print = lambda *values: lines.append(values)  # noqa: E731
    for i in range(n):
        print(i, round(float(x[i % 50, 0]), 2))
    return lines


def to_another_file(x: Any, n: int) -> Any:
    total = 0.0
    for i in range(n):
        total += x[i % 50, 0]
        print("counted", i, file=sys.stdout)
    return total


def test_training(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    y = (X[:, 0] > 0) * 1.0
    assert "as one program" in check(logistic, capsys, X, y, 0.1, 301)


def test_rounded_numbers_and_texts_are_made_later(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)
    assert "as one program" in check(rounded, capsys, X, 40)


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        *(every_iteration, several, until, arrays, rounded, other_round, raises, other_print),
        to_another_file,
    ],
)
def test_programs_and_python(function: Any, numpy: bool, capsys: Any, monkeypatch: Any) -> None:
    if not numpy:
        monkeypatch.setattr(Trial, "verdict", lambda self: None)
    for n in (1, 30, 49):
        check(function, capsys, X, n)


@pytest.mark.parametrize("least", [-5.0, 1.2])
def test_draws(least: float, capsys: Any, monkeypatch: Any) -> None:
    """A loop that draws and prints is not run twice where it raises."""
    monkeypatch.setattr(Trial, "verdict", lambda self: None)

    def f(x: Any, n: int) -> Any:
        rng = np.random.default_rng(4)
        return g(x, n, rng), rng.random()

    def g(x: Any, n: int, rng: Any) -> Any:
        total = 0.0
        for i in range(n):
            order = rng.permutation(50)
            total += x[order[1], 0]
            print(f"{i}: {total:.3f}", order[0])
            if x[i % 50, 0] < least:
                raise ValueError(i)
        return total

    check(f, capsys, X, 120)

    def of_argument(x: Any, n: int) -> Any:
        return g(x, n, np.random.RandomState(3))

    check(of_argument, capsys, X, 120)


def test_what_is_printed_and_appended_before_an_index_error(capsys: Any) -> None:
    def f(x: Any, at: Any, found: Any) -> Any:
        total, i = x.min().item(), 0
        while i < len(at):
            print(i)
            found.append(total)
            total += x[at[i]]
            i += 1
        return total

    jitted, x = rune_jit.jit(f), np.arange(5.0)
    for at in (np.array([1, 2, 3]), np.array([1, 9, 3]), np.array([1, 9, 3])):
        outcomes = []
        for function in (jitted, f):
            found: list[Any] = []
            with pytest.raises(IndexError) if at[1] == 9 else contextlib.nullcontext():
                function(x, at, found)
            outcomes.append((found, capsys.readouterr().out))
        assert outcomes[0] == outcomes[1]


class Buffer:
    def __init__(self) -> None:
        self.values, self.at = np.zeros(5), 0

    def extend(self, xs: Any) -> None:
        for x in xs:
            print(round(float(x)))
            self.values[self.at] = x
            assert x < 0, "refused"
            self.at += 1


def test_loops_that_python_runs_again_print_once(capsys: Any) -> None:
    outcomes = []
    for make in (rune_jit.jit, lambda f: f):
        buffer = Buffer()
        with pytest.raises(AssertionError, match="refused"):
            make(buffer.extend)(np.array([-1.0, 0.3, -0.2]))
        outcomes.append((capsys.readouterr().out, buffer.at, list(buffer.values)))
    assert outcomes[0] == outcomes[1]


def test_functions_of_numpy_that_print(capsys):
    def shown(x):
        print("before", flush=True)
        np.info(np.sin)
        np.show_config()
        return x * 2

    def outcome(function):
        result = function(np.ones(3)).tolist()
        return result, capsys.readouterr().out

    wanted, jitted = outcome(shown), rune_jit.jit(shown)
    assert [outcome(jitted) for _ in range(3)] == [wanted] * 3
