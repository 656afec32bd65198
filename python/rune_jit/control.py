"""Loops and choices as functions.

They call functions over NumPy arrays, which may write to their arguments and to arrays of outer
functions. Outside of `jit` they are Python loops. Inside, these loops become loops of the program
(docs/loops.md). Users declare no types, because a loop carries values of the types that its first
iteration makes. If a loop cannot be one of the program, it runs like any other loop."""

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
    """Computes `value = body(i, value)` for i = low, low + 1 ... high - 1.

    Args:
        low: the first i.
        high: the loop ends before this i.
        body: called with i and the value. It returns the next value, a pytree of the same
            structure. To be a loop of a program, its arrays must keep their shapes and dtypes from
            the second iteration on.
        init: the first value, a pytree of arrays and numbers.

    Returns:
        The last value; `init` if high <= low.

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
    """Computes `value = body(value)` as long as `test(value)` is true.

    Args:
        test: called with the value. It returns a bool, a number or a 0-d array.
        body: called with the value. It returns the next value, a pytree of the same structure.
        init: the first value, a pytree of arrays and numbers.

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
    """Computes `new = f(old)` until `until(old, new)` is true, at most `max` times.

    Args:
        f: called with the value. It returns the next value, a pytree of the same structure.
        init: the first value, a pytree of arrays and numbers.
        until: called with the last two values. It returns a bool, a number or a 0-d array.
        max: the largest number of calls of `f`.

    Returns:
        The last value, and the number of calls of `f`. (If this number is `max`, `until` may never
        have been true.)

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
        f: called with the carried value and an x. It returns the next carried value, a pytree of
            the same structure, and a y, a pytree of arrays and numbers.
        init: the first carried value, a pytree of arrays and numbers.
        xs: a pytree of arrays whose first axes have the same size n. An x has their elements at one
            position of this axis. Without `xs`, x is None.
        length: n. It is needed without `xs`.
        reverse: whether to begin with the last x. Each y has the position of its x.

    Returns:
        The last carried value, and the ys stacked along a new first axis: arrays of shape
        (n, *y.shape) and of the dtype that the dtypes of the ys promote to, as np.stack's.

    Raises:
        ValueError: if n is 0, if the sizes of the first axes differ, or if the shapes of ys differ.
        TypeError: if `f` returns no pair, or another structure than before.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.scan(lambda total, x: (total + x, total * x), np.zeros(()), np.arange(4.0))
        (np.float64(6.0), array([0., 0., 2., 9.]))
    """
    return _run(_scan, "scan", f, init, xs, length, reverse)


def _scan(
    what: str, f: Any, init: Any, xs: Any, length: int | None, reverse: bool
) -> tuple[Any, Any]:
    parts, parts_tree = trees.flatten(xs)
    n = _length(what, parts, length)
    tree = trees.flatten(init)[1]
    first = n - 1 if reverse else 0
    pair = f(init, trees.unflatten(parts_tree, _at(parts, first)))
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(
            f"{what}: cannot take a result of type {type(pair).__name__} apart into the next"
            " carried value and a y\nhint: return a tuple (carry, y)"
        )
    carry, y = pair
    state = trees.leaves_again(what, carry, tree)
    ys, ys_tree = trees.flatten(y)
    stacked = [np.empty((n, *np.shape(y)), np.asarray(y).dtype) for y in ys]
    stacked = _put(what, stacked, first, ys)
    for k in range(1, n):
        at = n - 1 - k if reverse else k
        carry, y = f(trees.unflatten(tree, state), trees.unflatten(parts_tree, _at(parts, at)))
        state = trees.leaves_again(what, carry, tree)
        stacked = _put(what, stacked, at, trees.leaves_again(what, y, ys_tree))
    return trees.unflatten(tree, state), trees.unflatten(ys_tree, stacked)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Computes f(x) for each x of `xs` and stacks the results.

    Args:
        f: called with an x. It returns a y, a pytree of arrays and numbers.
        xs: a pytree of arrays whose first axes have the same size n. An x has their elements at one
            position of this axis.

    Returns:
        The ys stacked along a new first axis: arrays of shape (n, *y.shape) and of the dtype that
        the dtypes of the ys promote to, as np.stack's.

    Raises:
        ValueError: if n is 0, if the sizes of the first axes differ, or if the shapes of ys differ.
        TypeError: if `f` returns another structure than before.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.map(lambda row: row / row.sum(), np.array([[1.0, 3.0], [2.0, 2.0]]))
        array([[0.25, 0.75],
               [0.5 , 0.5 ]])
    """
    return _run(_scan, "map", lambda none, x: (none, f(x)), (), xs, None, False)[1]


def cond(test: Any, then: Callable[..., R], other: Callable[..., R], *operands: Any) -> R:
    """Calls `then(*operands)` if `test` is true, and `other(*operands)` otherwise.

    In a program both are computed, unless the trace knows `test`. The program selects one of the
    results, and only the writes of the chosen side happen. If the results have different types,
    `jit` asks for the value of `test`, as an `if` would.

    Args:
        test: a bool, a number or a 0-d array.
        then: returns a pytree.
        other: returns a pytree of the same structure, with arrays of the same shapes and dtypes.
        *operands: pytrees of arrays and numbers, the arguments of both functions.

    Returns:
        The result of the chosen function. Errors that it raises are raised.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> f = rune_jit.jit(lambda x: rune_jit.cond(x.sum() > 3, np.sqrt, np.negative, x))
        >>> f(np.ones(2)), f(np.full(2, 4.0))
        (array([-1., -1.]), array([2., 2.]))
    """
    return choose(test, then, other, operands)


def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any) -> R:
    """Calls `branches[index](*operands)`. In a program all branches are computed, as with `cond`.

    Args:
        index: an integer or a 0-d array of integers. An index below 0 selects the first branch, an
            index beyond the end the last one.
        branches: functions that return pytrees of the same structure, shapes and dtypes.
        *operands: pytrees of arrays and numbers, the arguments of all functions.

    Returns:
        The result of the chosen function. Errors that it raises are raised.

    Raises:
        ValueError: if there are no branches.

    Source: the function of this name of jax.lax.

    Examples:
        >>> import numpy as np, rune_jit
        >>> rune_jit.switch(1, [np.sqrt, np.negative, np.square], np.ones(2))
        array([-1., -1.])
    """
    if not branches:
        raise ValueError("switch: cannot choose from no branches\nhint: give at least one function")
    if len(branches) == 1:
        return branches[0](*operands)
    rest = functools.partial(switch, index - 1, branches[1:])
    return choose(index <= 0, branches[0], rest, operands)


def associative_scan(f: Callable[[T, T], T], xs: T, *, axis: int = 0, reverse: bool = False) -> T:
    """Combines by `f` the first element, the first two, the first three ... of `xs`.

    With np.add it is np.cumsum. It calls `f` about log2(n) times, each time on many elements.

    Args:
        f: called with two pytrees of arrays of equal sizes. It combines them element by element,
            and must be associative.
        xs: a pytree of arrays of the same size n along `axis`.
        axis: the axis along which elements are combined.
        reverse: whether to begin with the last element.

    Returns:
        A pytree of arrays of the shapes of `xs`.

    Raises:
        ValueError: if the sizes along `axis` differ.
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


# Parts of these functions. (A trace examines the callables that `_run` and `choose` get, so that
# both are allowed in loops.)


def _run(function: Callable[..., Any], *args: Any) -> Any:
    """Calls one of the functions above. If a trace is active, the call is part of it."""
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
        raise ValueError(
            f"{what}: cannot find the shapes of the results without elements (the first axis has"
            " size 0)\nhint: handle empty arrays outside"
        )
    return builtins.int(n)


def _at(parts: list[Any], k: Any) -> tuple[Any, ...]:
    return tuple(x[k] for x in parts)


def _put(what: str, stacked: list[Any], k: Any, ys: Sequence[Any]) -> list[Any]:
    """Stores the `ys` at position k of the `stacked` arrays. Returns the arrays. An array that
    cannot hold its y is replaced by one with their common dtype."""
    results = []
    for result, y in zip(stacked, ys, strict=True):
        if np.shape(y) != result.shape[1:]:
            raise ValueError(
                f"{what}: cannot stack results of shapes {result.shape[1:]} and {np.shape(y)}\n"
                "hint: return arrays of the same shape for each x"
            )
        dtype = np.promote_types(result.dtype, np.asarray(y).dtype)
        if dtype != result.dtype:
            result = result.astype(dtype)
        result[k] = y
        results.append(result)
    return results
