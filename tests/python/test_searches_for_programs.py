"""Searches for programs of other calls that can run a call on other objects."""

import numpy as np
from compare import assert_matches

import rune_jit
from rune_jit.calls import sharing


class Layer:
    def __init__(self, kind, weight):
        self.kind, self.weight = kind, weight


def scaled(layer, x):
    return x * len(layer.kind) + layer.weight


def _matches(monkeypatch):
    matches = []
    match = sharing._match
    monkeypatch.setattr(sharing, "_match", lambda *args: (matches.append(args), match(*args))[1])
    return matches


def test_searches_that_fail_end(monkeypatch):
    matches = _matches(monkeypatch)
    jitted = rune_jit.jit(scaled)
    x = np.arange(3.0)
    layers = [Layer("a" * i, float(i)) for i in range(200)]
    for layer in layers:
        assert_matches(jitted(layer, x), scaled(layer, x))
    assert len(matches) < 80


def test_a_program_is_found_after_searches_that_failed():
    jitted = rune_jit.jit(scaled)
    x = np.arange(3.0)
    for i in range(40):
        layer = Layer("a" * i, float(i))
        assert_matches(jitted(layer, x), scaled(layer, x))
    for weight in range(30):
        layer = Layer("b", float(weight))
        for _ in range(10):
            assert_matches(jitted(layer, x), scaled(layer, x))
