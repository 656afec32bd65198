"""Objects of libraries keep their state where no guard of ours can see it. What a function does
with them happens at each call, and it sees them as they are."""

from __future__ import annotations

import collections
import configparser
import ctypes
import functools
import hashlib
import math
import operator
import os
import random
import re
import sqlite3
import struct
import sys
import threading
import types
import unittest.mock
import xml.etree.ElementTree
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune_jit

_Uses = dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]


def _count(connection: Any) -> int:
    connection.execute("insert into t values (1)")
    return int(connection.execute("select count(*) from t").fetchone()[0])


def _connection() -> Any:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (a)")
    return connection


def _config() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read_string("[a]\nn = 0")
    return config


def _configured(config: configparser.ConfigParser) -> int:
    config.set("a", "n", str(config.getint("a", "n") + 1))
    return config.getint("a", "n")


def _item_added(x: Any) -> int:
    x["n"] = x["n"] + 1
    return int(x["n"])


def _attribute_added(x: Any) -> int:
    x.n = getattr(x, "n", 0) + 1
    return int(x.n)


def _element(root: Any) -> int:
    xml.etree.ElementTree.SubElement(root, "a")
    return len(root)


def _value(x: Any) -> int:
    x.value += 1
    return int(x.value)


def _appended(x: Any) -> int:
    x.append(1)
    return len(x)


class Lower(collections.UserDict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key.lower(), value)


class Own(threading.local):
    def __init__(self) -> None:
        self.n = 0


_USED: _Uses = {
    "threading.local": (threading.local, _attribute_added),
    "subclass of threading.local": (Own, _attribute_added),
    "UserDict": (lambda: collections.UserDict(n=0), _item_added),
    "subclass of UserDict": (lambda: Lower(n=0), _item_added),
    "UserList": (collections.UserList, _appended),
    "ChainMap": (lambda: collections.ChainMap({}, {"n": 0}), _item_added),
    "ConfigParser": (_config, _configured),
    "sqlite3": (_connection, _count),
    "hashlib": (hashlib.md5, lambda h: (h.update(b"a"), h.digest()[0])[1]),
    "zlib": (zlib.compressobj, lambda c: len(c.compress(b"a") + c.flush(zlib.Z_SYNC_FLUSH))),
    "ctypes": (ctypes.c_int, _value),
    "Mock": (unittest.mock.Mock, lambda m: (m(), m.call_count)[1]),
    "Element": (lambda: xml.etree.ElementTree.Element("r"), _element),
    "method of a list": (lambda: [].append, lambda add: (add(1), len(add.__self__))[1]),
    "poly1d": (lambda: np.poly1d([1.0, 2.0]), lambda p: (p.__setitem__(0, p[0] + 1), p[0])[1]),
}


@pytest.mark.parametrize("name", list(_USED))
def test_an_object_of_a_library_is_used_at_each_call(name: str) -> None:
    make, use = _USED[name]
    ours, theirs = make(), make()

    def f(x: Any) -> Any:
        return x * use(ours)

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(5):
        x = np.arange(3.0) + i
        np.testing.assert_array_equal(jitted(x), x * use(theirs))


_TABLE = {"a": 1.0}
_CHANGED: _Uses = {
    "mappingproxy": (lambda: types.MappingProxyType(_TABLE), lambda x: x["a"]),
    "items of a dict": (_TABLE.items, lambda x: sum(v for _, v in x)),
    "UserDict": (lambda: collections.UserDict(_TABLE), lambda x: x["a"]),
    "poly1d": (lambda: np.poly1d([1.0]), lambda x: x(1.0)),
}


@pytest.mark.parametrize("name", list(_CHANGED))
def test_an_object_of_a_library_is_read_as_it_is(name: str) -> None:
    make, read = _CHANGED[name]
    held = make()

    def f(x: Any) -> Any:
        return x * read(held)

    jitted = rune_jit.jit(f, fallback="silent")
    for i in range(5):
        x = np.arange(3.0)
        if name == "poly1d":
            held[0] = i
        else:
            _TABLE["a"] = float(i)
            if name == "UserDict":
                held["a"] = float(i)
        np.testing.assert_array_equal(jitted(x), x * read(held))


@functools.cache
def _half(n: int) -> float:
    return n / 2


def test_hits_of_a_cache_are_counted_at_each_call() -> None:
    def f(x: Any) -> Any:
        y = x * _half(3)
        return y, _half.cache_info().hits

    jitted = rune_jit.jit(f, fallback="silent")
    _half.cache_clear()
    assert [jitted(np.ones(2))[1] for _ in range(4)] == [0, 1, 2, 3]


_PATTERN, _ITEMS, _RECORD = re.compile("a+"), operator.itemgetter(0, 1), struct.Struct("<d")
_LOCK, _LIMITS = threading.Lock(), np.finfo(np.float64)


def test_effects_of_a_function_with_a_cache_happen_at_its_first_call() -> None:
    calls = []

    @functools.cache
    def table(n: int) -> Any:
        calls.append(n)
        return np.arange(n)

    jitted = rune_jit.jit(lambda x: x * table(3), fallback="silent")
    for _ in range(3):
        np.testing.assert_array_equal(jitted(np.ones(3)), np.arange(3))
        assert calls == [3]


def test_objects_that_do_not_change_are_constants_of_one_program() -> None:
    def f(x: Any) -> Any:
        with _LOCK:
            found = len(_PATTERN.findall("aab")) + sum(_ITEMS([1, 2])) + _RECORD.size
        return x * found * _half(3) + _LIMITS.eps

    x = np.arange(3.0)
    jitted = rune_jit.jit(f, fallback="silent")
    np.testing.assert_allclose(jitted(x), f(x))
    assert "as one program" in jitted.explain()


class Counted:
    """A descriptor that keeps the values itself."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}

    def __get__(self, owner: Any, kind: Any = None) -> int:
        return self.values.get(0, 0)

    def __set__(self, owner: Any, value: int) -> None:
        self.values[0] = value


class Owner:
    n = Counted()

    @property
    def scale(self) -> float:
        return float(os.environ["RUNE_JIT_TEST"])

    @property
    def argument(self) -> float:
        return float(sys.argv[1])


_OWNER = Owner()


def test_values_of_a_descriptor() -> None:
    def counts(x: Any) -> Any:
        _OWNER.n = _OWNER.n + 1
        return x * _OWNER.n

    def reads(x: Any) -> Any:
        return x * _OWNER.n

    counting, reading = (rune_jit.jit(f, fallback="silent") for f in (counts, reads))
    _OWNER.n = 0
    assert [counting(np.ones(1)).item() for _ in range(4)] == [1, 2, 3, 4]
    for n in range(4):
        _OWNER.n = n
        assert reading(np.ones(1)).item() == n


_PROCESS: dict[str, Callable[[], float]] = {
    "environ": lambda: float(os.environ["RUNE_JIT_TEST"]),
    "getenv": lambda: float(os.getenv("RUNE_JIT_TEST", "")),
    "argv": lambda: float(sys.argv[1]),
    "environ in a property": lambda: _OWNER.scale,
    "argv in a property": lambda: _OWNER.argument,
}


@pytest.mark.parametrize("name", list(_PROCESS))
def test_the_environment_is_read_at_each_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = _PROCESS[name]
    monkeypatch.setattr(sys, "argv", ["test", "1"])
    jitted = rune_jit.jit(lambda x: x * read(), fallback="silent")
    for i in range(4):
        monkeypatch.setenv("RUNE_JIT_TEST", str(i))
        sys.argv[1] = str(i)
        assert jitted(np.ones(1)).item() == i


_REPLACED: dict[str, tuple[Any, str, Callable[[], float]]] = {
    "random": (random, "random", lambda: random.random()),
    "numpy.random": (np.random, "normal", lambda: np.random.normal()),
    "math": (math, "sqrt", lambda: math.sqrt(4.0)),
    "numpy.linalg": (np.linalg, "norm", lambda: np.linalg.norm(np.ones(4)).item()),
}


@pytest.mark.parametrize("name", list(_REPLACED))
def test_functions_of_libraries_that_tests_replace(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, function, use = _REPLACED[name]
    jitted = rune_jit.jit(lambda x: x * use(), fallback="silent")
    for i in range(6):
        with monkeypatch.context() as patch:
            if i % 2:
                patch.setattr(module, function, lambda *args: np.float64(0.25))
            random.seed(i)
            np.random.seed(i)
            y = jitted(np.ones(1)).item()
            random.seed(i)
            np.random.seed(i)
            assert y == use()


_OPTIONS: dict[str, Callable[[], Any]] = {
    "set_printoptions": lambda: np.set_printoptions(precision=3),
    "get_printoptions": lambda: np.get_printoptions()["precision"],
    "printoptions": lambda: np.printoptions(precision=2).__enter__()["precision"],
    "getrecursionlimit": sys.getrecursionlimit,
}


@pytest.mark.parametrize("name", list(_OPTIONS))
def test_options_are_read_and_set_at_each_call(name: str) -> None:
    use = _OPTIONS[name]

    def f(x: Any) -> Any:
        return x * 2, use()

    jitted = rune_jit.jit(f, fallback="silent")
    limit = sys.getrecursionlimit()
    try:
        for i in range(3):
            found = []
            for function in (f, jitted):
                sys.setrecursionlimit(limit + i)
                with np.printoptions(precision=5 + i):
                    found.append((function(np.ones(2))[1], np.get_printoptions()["precision"]))
            assert found[0] == found[1]
    finally:
        sys.setrecursionlimit(limit)
