"""Loops and choices as functions: what they call are NumPy functions, which may write to what they
are given and to what they close over.

Outside of `jit` they are Python loops. Inside, the same loops become loops of the program
(docs/control_flow.md), so that nothing is demanded of types: what is carried has the type that it
has after the first iteration. Where a loop cannot be one of the program, `jit` runs it as any other
loop."""

# mypy: disable-error-code=no-any-return
from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from rune_jit import trees
from rune_jit.capture.loops.branches import choose
from rune_jit.capture.loops.effects import ALLOWED
from rune_jit.tracing.context import current_trace

R = TypeVar("R")
T = TypeVar("T")

__all__ = [
    "associative_scan",
    "cond",
    "fori_loop",
    "iterate",
    "map",
    "scan",
    "switch",
    "while_loop",
]


def fori_loop(low: int, high: int, body: Callable[[Any, T], T], init: T) -> T:
    """The value after `value = body(i, value)` for i = low, low + 1 ... high - 1.

    Args:
        low: the first i.
        high: i stays below it. The value is `init` if high <= low.
        body: called with i and the value. It returns a pytree of the same structure, whose arrays
            keep shape and dtype from the second iteration on, to be a loop of a program.
        init: the first value: a pytree of arrays and numbers.

    Returns:
        The last value.

    Raises:
        TypeError: if `body` returns another structure.

    Source: the counted loop of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.fori_loop(0, 5, lambda i, x: x * 0.5 + i, np.ones(2))
        array([6.15625, 6.15625])
    """
    return _run(_fori_loop, low, high, body, init)


def _fori_loop(low: int, high: int, body: Any, init: Any) -> Any:
    leaves, tree = trees.flatten(init)
    state = tuple(leaves)
    for i in range(low, high):
        state = trees.leaves_again("fori_loop", body(i, trees.unflatten(tree, state)), tree)
    return trees.unflatten(tree, state)


def while_loop(test: Callable[[T], Any], body: Callable[[T], T], init: T) -> T:
    """The value after `value = body(value)` as long as `test(value)` is true.

    Args:
        test: called with the value. It returns a bool, a number or a 0-d array.
        body: called with the value. It returns a pytree of the same structure.
        init: the first value: a pytree of arrays and numbers.

    Returns:
        The first value for which `test` is false.

    Raises:
        TypeError: if `body` returns another structure.
        ValueError: if `test` returns an array of several elements.

    Source: the loop of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.while_loop(lambda x: x.sum() > 1, lambda x: x / 2, np.ones(4))
        array([0.25, 0.25, 0.25, 0.25])
    """
    return _run(_while_loop, test, body, init)


def _while_loop(test: Any, body: Any, init: Any) -> Any:
    leaves, tree = trees.flatten(init)
    state = tuple(leaves)
    while test(trees.unflatten(tree, state)):
        state = trees.leaves_again("while_loop", body(trees.unflatten(tree, state)), tree)
    return trees.unflatten(tree, state)


def iterate(
    f: Callable[[T], T], init: T, *, until: Callable[[T, T], Any], max: int
) -> tuple[T, int]:
    """Iterates `new = f(old)` from `init` on, until `until(old, new)` is true: `max` times at most.

    Args:
        f: returns a pytree of the structure of its argument.
        init: the first value: a pytree of arrays and numbers.
        until: called with the last two values. It returns a bool, a number or a 0-d array.
        max: how often `f` is called at most.

    Returns:
        The last value, and how often `f` was called: `max` if the iteration has not ended before.

    Raises:
        TypeError: if `f` returns another structure.

    Source: fixed-point iteration.

    Examples:
        >>> import numpy as np, rune_jit
        >>> def newton(x):
        ...     return (x + 2 / x) / 2
        >>> root, steps = rune_jit.iterate(
        ...     newton, np.ones(1), until=lambda a, b: abs(a - b)[0] < 1e-9, max=50
        ... )
        >>> root.round(6), steps
        (array([1.414214]), 5)
    """
    return _run(_iterate, f, init, until, max)


def _iterate(f: Any, init: Any, until: Any, most: int) -> tuple[Any, int]:
    leaves, tree = trees.flatten(init)
    state = tuple(leaves)
    count = 0
    ended = False
    while count < most and not ended:
        old = trees.unflatten(tree, state)
        new = f(old)
        state = trees.leaves_again("iterate", new, tree)
        ended = until(old, new)
        count += 1
    return trees.unflatten(tree, state), count


def scan(
    f: Callable[[T, Any], tuple[T, Any]],
    init: T,
    xs: Any = None,
    length: int | None = None,
    *,
    reverse: bool = False,
) -> tuple[T, Any]:
    """Carries a value along arrays: `carry, y = f(carry, x)` for each x of `xs`.

    Args:
        f: called with the carried value and an x. It returns the next value, of the same structure,
            and a y.
        init: the first carried value: a pytree of arrays and numbers.
        xs: a pytree of arrays with equal first axes, n elements long, along which they are taken
            apart. Without `xs`, `f` gets None.
        length: n; needed without `xs`.
        reverse: whether to go from the last x to the first one. Each y stands at the place of its
            x.

    Returns:
        The last carried value, and the ys stacked along a new first axis: arrays of shape (n,
        *y.shape), of the dtype of the first y.

    Raises:
        ValueError: if there is no x, or if lengths differ.
        TypeError: if a structure changes.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.scan(lambda total, x: (total + x, total * x), np.zeros(()), np.arange(4.0))
        (np.float64(6.0), array([0., 0., 2., 9.]))
    """
    return _run(_scan, f, init, xs, length, reverse)


def _scan(f: Any, init: Any, xs: Any, length: int | None, reverse: bool) -> tuple[Any, Any]:
    parts, parts_tree = trees.flatten(xs)
    n = _length("scan", parts, length)
    tree = trees.flatten(init)[1]
    first = n - 1 if reverse else 0
    carry, y = f(init, trees.unflatten(parts_tree, _at(parts, first)))
    state = trees.leaves_again("scan", carry, tree)
    ys, ys_tree = trees.flatten(y)
    stacked = [np.empty((n, *np.shape(y)), np.asarray(y).dtype) for y in ys]
    _put(stacked, first, ys)
    for k in range(1, n):
        at = n - 1 - k if reverse else k
        carry, y = f(trees.unflatten(tree, state), trees.unflatten(parts_tree, _at(parts, at)))
        state = trees.leaves_again("scan", carry, tree)
        _put(stacked, at, trees.leaves_again("scan", y, ys_tree))
    return trees.unflatten(tree, state), trees.unflatten(ys_tree, stacked)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """f(x) of each x of `xs`, stacked.

    Args:
        f: returns a pytree of arrays and numbers.
        xs: a pytree of arrays with equal first axes, n elements long, along which they are taken
            apart.

    Returns:
        Arrays of shape (n, *y.shape), of the dtype of the first y.

    Raises:
        ValueError: if there is no x, or if lengths differ.
        TypeError: if a structure changes.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.map(lambda row: row / row.sum(), np.array([[1.0, 3.0], [2.0, 2.0]]))
        array([[0.25, 0.75],
               [0.5 , 0.5 ]])
    """
    return _run(_map, f, xs)


def _map(f: Any, xs: Any) -> Any:
    parts, parts_tree = trees.flatten(xs)
    n = _length("map", parts, None)
    ys, ys_tree = trees.flatten(f(trees.unflatten(parts_tree, _at(parts, 0))))
    stacked = [np.empty((n, *np.shape(y)), np.asarray(y).dtype) for y in ys]
    _put(stacked, 0, ys)
    for k in range(1, n):
        y = f(trees.unflatten(parts_tree, _at(parts, k)))
        _put(stacked, k, trees.leaves_again("map", y, ys_tree))
    return trees.unflatten(ys_tree, stacked)


def cond(test: Any, then: Callable[..., R], other: Callable[..., R], *operands: Any) -> R:
    """`then(*operands)` if `test` is true, and `other(*operands)` otherwise.

    In a program, if `test` is not known while it is traced, both are computed. What a side writes
    to arrays is written if it is the one. Of the results one is selected. Where types differ, `jit`
    asks for the value of `test`.

    Args:
        test: a bool, a number or a 0-d array.
        then: returns a pytree.
        other: returns a pytree of the same structure, whose arrays have equal shapes and dtypes.
        *operands: pytrees of arrays and numbers, the arguments of both.

    Returns:
        What the function returns that was chosen. It raises what the functions raise.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> f = rune_jit.jit(lambda x: rune_jit.cond(x.sum() > 3, np.sqrt, np.negative, x))
        >>> f(np.ones(2)), f(np.full(2, 4.0))
        (array([-1., -1.]), array([2., 2.]))
    """
    return choose(test, then, other, operands)


def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """`branches[index](*operands)`.

    Args:
        index: an integer or a 0-d array of integers. Below 0 it means 0, beyond the end the last
            branch. In a program it is what `cond` is for two functions.
        branches: functions that return pytrees of one structure, shapes and dtypes.
        *operands: pytrees of arrays and numbers, the arguments of all.

    Returns:
        What the chosen function returns. It raises what the functions raise.

    Raises:
        ValueError: if there are no branches.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.switch(1, [np.sqrt, np.negative, np.square], np.ones(2))
        array([-1., -1.])
    """
    if not branches:
        raise ValueError("switch: cannot choose from no branches\nhint: give one function at least")
    if len(branches) == 1:
        return branches[0](*operands)
    rest = functools.partial(switch, index - 1, branches[1:])
    return choose(index <= 0, branches[0], rest, operands)


def associative_scan(f: Callable[[T, T], T], xs: T, *, axis: int = 0, reverse: bool = False) -> T:
    """The results of combining the first element, the first two, the first three ... by `f`.

    It calls `f` about log2(n) times, on large parts.

    Args:
        f: combines two pytrees of arrays, of any size along the axis, element by element. It must
            be associative.
        xs: a pytree of arrays with equal sizes n along `axis`.
        axis: along which elements are combined.
        reverse: whether to combine from the other end.

    Returns:
        A pytree of arrays of the shapes of `xs`.

    Raises:
        ValueError: if sizes differ.
        TypeError: if `f` returns another structure.

    Source: Hillis and Steele, Data parallel algorithms, 1986.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.associative_scan(np.add, np.arange(1, 6))
        array([ 1,  3,  6, 10, 15])
    """
    leaves, tree = trees.flatten(xs)
    arrays = [np.flip(x, axis) if reverse else x for x in leaves]
    sizes = {np.shape(x)[axis] for x in arrays}
    if len(sizes) > 1:
        raise ValueError(
            f"associative_scan: cannot combine arrays of sizes {sorted(sizes)} along axis {axis}"
            " (they must be equal)"
        )
    n = sizes.pop() if sizes else 0

    def part(x: Any, begin: int, end: int) -> Any:
        return x[(slice(None),) * (axis % np.ndim(x)) + (slice(begin, end),)]

    step = 1
    while step < n:
        before = [part(x, 0, n - step) for x in arrays]
        behind = [part(x, step, n) for x in arrays]
        combined = f(trees.unflatten(tree, before), trees.unflatten(tree, behind))
        new = trees.leaves_again("associative_scan", combined, tree)
        arrays = [
            np.concatenate([part(x, 0, step), y], axis=axis)
            for x, y in zip(arrays, new, strict=True)
        ]
        step *= 2
    return trees.unflatten(tree, [np.flip(x, axis) if reverse else x for x in arrays])


# Parts of them. (What the two call is looked through where it is given to them.)


def _run(function: Callable[..., Any], *args: Any) -> Any:
    """Calls one of the functions above as part of the trace, if there is one."""
    trace = current_trace()
    return function(*args) if trace is None else trace.rebind(function)(*args)


ALLOWED += [_run, choose]


def _length(what: str, parts: list[Any], length: int | None) -> int:
    lengths = {np.shape(x)[0] if np.ndim(x) else -1 for x in parts}
    if length is not None:
        lengths.add(length)
    if len(lengths) != 1 or -1 in lengths:
        found = ", ".join(str(np.shape(x)) for x in parts)
        raise ValueError(
            f"{what}: cannot take arrays of shapes {found} apart along their first axes"
            + (f" (their sizes differ: {sorted(lengths)})" if len(lengths) > 1 else "")
        )
    n = lengths.pop()
    if n == 0:
        raise ValueError(f"{what}: cannot tell the shapes of results of no elements (size 0)")
    return builtins.int(n)


def _at(parts: list[Any], k: Any) -> tuple[Any, ...]:
    return tuple(x[k] for x in parts)


def _put(stacked: list[Any], k: Any, ys: Sequence[Any]) -> None:
    for result, y in zip(stacked, ys, strict=True):
        result[k] = y
