"""Loops over tqdm's progress bars: the program shows the bar when it has run
(capture/loops/progress.py). A class and a function of the same names stand for tqdm."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from compare import assert_same

import rune_jit
from rune_jit.calls.trial import Trial

SHOWN: list[Any] = []
X = np.random.default_rng(0).normal(size=(40, 3))


class tqdm:
    __module__ = "tqdm.std"

    def __init__(self, iterable: Iterable[Any], desc: str = "", disable: bool = False) -> None:
        self.iterable, self.desc, self.count = iterable, desc, 0

    def __iter__(self) -> Iterator[Any]:
        try:
            for x in self.iterable:
                self.count += 1
                yield x
        finally:
            SHOWN.append((self.desc, self.count))


def trange(*args: int, **kwargs: Any) -> tqdm:
    return tqdm(range(*args), **kwargs)


trange.__module__ = "tqdm.std"


@pytest.fixture(autouse=True)
def never_numpy(monkeypatch: Any) -> None:
    monkeypatch.setattr(Trial, "verdict", lambda self: None)


def check(function: Any, *args: Any) -> str:
    jitted = rune_jit.jit(function)
    for _ in range(3):
        found = []
        for f in (function, jitted):
            SHOWN.clear()
            found.append((f(*args), list(SHOWN)))
        assert_same(found[1][0], found[0][0], ulps=2**10, scaled=True)
        assert found[1][1] == found[0][1]
    return jitted.explain()


def test_the_module() -> None:
    tqdm = types.ModuleType("tqdm")  # (`import tqdm`)

    def total(x: Any) -> Any:
        bar, result = None if tqdm is None else list, 0.0
        for k in bar(range(3)):
            result = result + x[k]
        return result

    check(total, np.arange(4.0))
    segmented = rune_jit.jit(lambda x: total(x * float(x.sum())))
    assert_same(segmented(np.arange(4.0)), np.float64(18.0))


def descent(x: Any, n: int) -> Any:
    w, losses = np.ones(3), []
    for epoch in tqdm(range(n), desc="train", disable=False):
        r = x @ w - 1
        w = w - 0.1 * x.T @ r / len(x)
        losses.append(r @ r + epoch)
    return w, losses


def of_rows(x: Any, n: int) -> Any:
    w, total = np.ones(3), 0.0
    for i, row in enumerate(tqdm(x)):
        w = w - 0.01 * (row @ w - 1) * row
        total += i * row[0]
    for _ in trange(2, n, desc="again"):
        w = 0.9 * w
    return w, total


def nested(x: Any, n: int) -> Any:
    s = 0.0
    for i in trange(5, desc="outer"):
        for k in trange(n, desc="inner"):
            s = 0.5 * s + x[i, 0] * k
        print(f"{i}")
    return s


@pytest.mark.parametrize("function", [descent, of_rows, nested])
def test_bars_around_loops_of_the_program(function: Any, capsys: Any) -> None:
    assert "is a loop of the program" in check(function, X, 20)


def test_bars_of_loops_that_end_early_are_shown_by_python() -> None:
    def until(x: Any, n: int) -> Any:
        s = 0.0
        for i in tqdm(range(n), desc="until"):
            s += abs(x[i, 0])
            if s > 2:
                break
        return s

    def unrolled(x: Any, n: int) -> Any:
        names = {}
        for i in tqdm(range(n)):
            names[f"{i}"] = x[i] * 2
        return names

    assert "segments" in check(until, X, 20)
    assert "segments" in check(unrolled, X, 5)
