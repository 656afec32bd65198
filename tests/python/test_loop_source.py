"""What the source of a function says of its loops."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import pytest

from rune_jit.capture.loops import liveness
from rune_jit.capture.loops.jumps import Jumps
from rune_jit.capture.loops.liveness import live_names
from rune_jit.capture.loops.nodes import walk
from rune_jit.capture.loops.raises import Raises
from rune_jit.capture.loops.syntax import Loop, loop_refusal, make_loop, without_returns


def function(source: str) -> ast.FunctionDef:
    (definition,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.FunctionDef)
    return definition


def loops(source: str) -> list[Loop]:
    """The loops of a function, in the order of their lines."""
    definition, jumps = function(source), Jumps(Raises())
    definition.body = jumps.of_function(definition.body)
    live = live_names(definition).loops
    found = sorted(live, key=lambda loop: loop.lineno)
    return [
        make_loop(i, "", loop, live[loop], jumps.steps.get(loop, {}), None)
        for i, loop in enumerate(found)
    ]


def test_names_that_are_carried_and_read_afterwards() -> None:
    (loop,) = loops(
        """
        def f(x, n):
            s = t = u = 0
            for i in range(n):
                u = x[i]
                s = s + u
                t = u
                x[i] = 0
            return s, t, i
        """
    )
    assert loop.carried == ("s",)
    assert loop.results == ("i", "s", "t")
    assert loop.written == {"x"}


def test_what_a_branch_may_leave_is_carried() -> None:
    (loop,) = loops(
        """
        def f(x, n):
            last = 0
            for i in range(n):
                if n > 3:
                    last = x[i]
                x[i] = last
        """
    )
    assert loop.carried == ("last",) and loop.results == ()


def test_an_inner_loops_names_are_read_in_the_next_iteration_of_the_outer_one() -> None:
    outer, inner = loops(
        """
        def f(x):
            k = 0
            for i in x:
                for j in i:
                    k = k + j
                i = k
        """
    )
    assert outer.carried == inner.carried == inner.results == ("k",)
    assert outer.results == ()


def test_what_runs_before_an_error_counts() -> None:
    (loop,) = loops(
        """
        def f(x):
            try:
                for i in x:
                    a = i
            finally:
                print(a)
        """
    )
    assert "a" in loop.results


def test_counters() -> None:
    (loop,) = loops(
        """
        def f(x):
            a = b = c = d = 0
            for i in x:
                a += 1
                b = b - 3
                c += i
                d += 1
                if i:
                    d = 5
            return a, b, c, d
        """
    )
    assert loop.steps == {"a": 1, "b": -3}
    assert loop.updated >= {"a", "c"} and "d" not in loop.updated


@pytest.mark.parametrize(
    ("body", "reason"),
    (
        ("x[i] = i", None),
        ("x.real = i", "the attribute real"),
        ("x.count = i", None),
        ("del x.count", "delete"),
        ("break", "break"),
        ("for j in x: break", None),
        ("return 1", "return"),
        ("global k; k = i", "global"),
        ("del x", "delete"),
        ("y = lambda: i", None),
        ("y[0] = lambda: i", "lambda"),
        ("y = [lambda: i]", "lambda"),
        ("def y(): return i", None),
        ("def y(): nonlocal x; x = i", "nonlocal"),
        ("def y(): return f'{i}'", "f-string"),
        ("y = f'{i}'", "f-string"),
        ("y = x is i", "`is`"),
        ("y = x is None", None),
        ("y = f(i)(i)", "the value of an expression"),
        ("import sys", "import"),
        ("with x: pass", "with"),
    ),
)
def test_refusals(body: str, reason: str | None) -> None:
    source: Any = function(f"def f(x, n):\n    for i in range(n):\n        {body}\n").body[0]
    found = loop_refusal(source, frozenset())
    assert found is None if reason is None else reason in str(found)


@pytest.mark.parametrize(
    ("source", "expected"),
    (
        ("if a: return 1\nreturn 2", "if a: r = 1\nelse: r = 2\nreturn r"),
        ("if a: return 1\nelif b: return 2\nelse: return", None),
        ("while a: return 1\nreturn 2", "while a: return 1\nreturn 2"),
        ("if a: return 1", "if a: return 1"),
        ("b = 1\nreturn b", "b = 1\nreturn b"),
    ),
)
def test_returns_at_the_end_of_branches(source: str, expected: str | None) -> None:
    body = ast.parse(f"def f(a, b):\n{textwrap.indent(source, '    ')}").body[0].body  # type: ignore[attr-defined]
    new = "\n".join(map(ast.unparse, without_returns(body, "r")))
    if expected is None:
        assert new.count("return") == 1 and new.endswith("return r") and "r = None" in new
    else:
        assert new == ast.unparse(ast.parse(expected))


def test_walk_visits_what_ast_walk_visits() -> None:
    tree = ast.parse(inspect.getsource(liveness))
    wanted = [x for x in ast.walk(tree) if not isinstance(x, ast.expr_context)]
    assert list(map(id, walk(tree))) == list(map(id, wanted))
