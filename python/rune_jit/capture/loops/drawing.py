"""Draws the random numbers of all iterations of a loop (draws.py)."""

from __future__ import annotations

import ast
import contextlib
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rune_jit.capture.loops.draws import DRAW, KEEP, NOTE, Draws, Unsuitable, is_of_python
from rune_jit.capture.loops.liveness import loaded
from rune_jit.capture.loops.nodes import at, copied

# Methods of NumPy's generators that give the same n numbers in one call as in n calls. The values
# are the numbers of their parameters before `size`.
AT_ONCE = {
    name: count
    for count, names in enumerate(
        (
            "rand randn random random_sample standard_cauchy standard_exponential standard_normal",
            "chisquare exponential geometric pareto poisson power rayleigh standard_gamma"
            " standard_t weibull",
            "beta binomial gamma gumbel integers laplace logistic lognormal normal randint"
            " uniform vonmises wald",
            "triangular",
        )
    )
    for name in names.split()
}
_MOST_ITERATIONS = 2**20  # of a loop
# The most bytes of all numbers together.
_MOST_BYTES = 2**26


class _Enough(Exception):
    """The wanted count of numbers has been drawn."""


class Parts(NamedTuple):
    """The parts of the function that a loop with random numbers becomes."""

    statements: list[ast.stmt]
    parameters: list[str]  # for the numbers
    results: list[str]  # in addition to those of the loop
    functions: dict[str, Any]  # that it calls, by name


class Drawn(NamedTuple):
    """Numbers for one run of a loop."""

    arguments: list[Any]
    key: Any  # identifies the function that takes them
    restore: Callable[[], None]  # sets the generators to the state before the loop
    # Sets the generators to the state after the loop. Takes the additional results (`Parts`).
    # Returns False if there were too few numbers.
    finish: Callable[[list[Any]], bool]


class Drawing:
    """Draws the numbers of a loop before it runs."""

    fallback = "silent"

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self.loop, self.names = draws.loop, draws.names
        self._codes: dict[Any, types.CodeType] = {}  # of functions, by name and parameters
        self._kinds: tuple[str, ...] = ()  # of the numbers of the last run, by site

    def methods(self, held: Mapping[str, Any], module: dict[str, Any]) -> list[Any] | None:
        """The generators' methods that the draws call now. None if one of them calls another
        function."""
        return self._draws.methods(held, module)

    def parts(self, kinds: tuple[str, ...]) -> Parts:
        """The parts of the loop's function. `kinds` are the kinds of the numbers, by site: "float",
        "int", "NumPy's" or "array"."""
        draws = self._draws
        results = [draws.iteration] if draws.may_end_early else []
        return Parts(draws.replaced(kinds), draws.parameters(), results, {})

    def draw(
        self, methods: list[Any], values: Mapping[str, Any], module: dict[str, Any]
    ) -> Drawn | None:
        """Draws the numbers of all iterations. `values` are the local variables among `names`.
        Returns None, and leaves the generators unchanged, if that is not possible."""
        # (Not imported before, since it loads numpy.random.)
        from rune_jit.capture.generators import set_state, state_of

        if not self._are_kept(values):
            return None
        sources = {id(x.__self__): x.__self__ for x in methods}.values()
        states = [(x, state_of(x)) for x in sources]

        def restore() -> None:
            for source, state in states:
                set_state(source, state)

        def finish(results: list[Any]) -> bool:
            each = sum(math.prod(lengths[i] for i in around[1:]) for _, around in self._draws.sites)
            if results and int(results[0]) + 1 < lengths[0]:
                restore()
                self._run(methods, values, module, {}, (int(results[0]) + 1) * each)
            return True

        lengths: dict[int, int] = {}
        try:
            at_once = self._at_once(methods, values, module, lengths)
            if at_once is not None:
                return Drawn(at_once, self._kinds, restore, finish)
            lengths.clear()
            lists = self._run(methods, values, module, lengths, None)
            drawn = [
                _stacked(items, [lengths[i] for i in around])
                for items, (_, around) in zip(lists, self._draws.sites, strict=True)
            ]
        except Exception:
            # (Python then runs the loop, and raises what it raises.)
            restore()
            return None
        except BaseException:
            restore()
            raise
        self._kinds = tuple(kind for _, kind in drawn)
        return Drawn([x for x, _ in drawn], self._kinds, restore, finish)

    def _at_once(
        self,
        methods: list[Any],
        values: Mapping[str, Any],
        module: dict[str, Any],
        lengths: dict[int, int],
    ) -> list[Any] | None:
        """Draws all numbers by one call of the method. None unless all sites are in the innermost
        loop and call the same method with the same arguments, and the kinds of the numbers are
        known from the last run."""
        method, (first, around) = methods[0], self._draws.sites[0]
        if not self._kinds or method.__name__ not in AT_ONCE:
            return None
        if any(x != method or self._draws.sites[i][1] != around for i, x in enumerate(methods)):
            return None
        if len({ast.dump(x) for x, _ in self._draws.sites}) > 1 or len(around) < len(
            self._draws.loops
        ):
            return None
        if self._draws.targets & loaded(
            [*first.args, *first.keywords, *(x.iter for x in self._draws.loops)]
        ):
            return None
        args, kwargs, iterables = self._evaluated(first, values, module)
        for i, x in enumerate(iterables):
            lengths[i] = len(x if hasattr(x, "__len__") else list(x))
        shape = [lengths[i] for i in around]
        whole = [*shape, len(methods)]
        drawn = at_once(method, args, kwargs, whole, self._kinds[0] == "array")
        if drawn is None:
            return None
        return [drawn[(*(slice(None),) * len(shape), i)] for i in range(len(methods))]

    def _evaluated(
        self, x: ast.Call, values: Mapping[str, Any], module: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any], list[Any]]:
        """The values of a call's arguments, and the iterables of the loops."""
        keys: list[Any] = [ast.Constant(y.arg) for y in x.keywords]
        named = ast.Dict(keys, [y.value for y in x.keywords])
        iterables = ast.List([y.iter for y in self._draws.loops], ast.Load())
        made = [ast.List(list(x.args), ast.Load()), named, iterables]
        returned = ast.Return(ast.Tuple(made, ast.Load()))
        names, function = self._function("evaluate", returned, values, [], module)
        found: tuple[list[Any], dict[str, Any], list[Any]] = function(*(values[y] for y in names))
        return found

    def _are_kept(self, values: Mapping[str, Any]) -> bool:
        """Whether the loop surely keeps the arrays and lists unchanged whose elements the draws
        need."""
        for name in self._draws.names & values.keys():
            x = values[name]
            if not isinstance(x, (np.ndarray, list)):
                continue
            if isinstance(x, np.ndarray) and name in self._draws.described:
                continue
            if name in self._draws.used:
                return False
            others = (y for other, y in values.items() if other != name)
            if isinstance(x, np.ndarray) and any(
                isinstance(y, np.ndarray) and np.may_share_memory(x, y) for y in others
            ):
                return False
        return True

    def _run(
        self,
        methods: list[Any],
        values: Mapping[str, Any],
        module: dict[str, Any],
        lengths: dict[int, int],
        most: int | None,
    ) -> list[list[Any]]:
        """Draws the numbers of all iterations, or at most `most` numbers. Stores the number of
        iterations of each loop in `lengths`."""
        lists: list[list[Any]] = [[] for _ in self._draws.sites]
        left = _MOST_BYTES if most is None else most

        def note(number: int, iterable: Any) -> Any:
            iterable = iterable if hasattr(iterable, "__len__") else list(iterable)
            length = lengths.setdefault(number, len(iterable))
            if length != len(iterable) or length > _MOST_ITERATIONS:
                raise Unsuitable
            return iterable

        def keeping(items: list[Any]) -> Callable[[Any], None]:
            def keep(x: Any) -> None:
                nonlocal left
                items.append(x)
                left -= 1 if most is not None else getattr(x, "nbytes", 8)
                if left <= 0:
                    raise _Enough if most is not None else Unsuitable

            return keep

        own: dict[str, Any] = {NOTE: note}
        for i, (method, items) in enumerate(zip(methods, lists, strict=True)):
            is_small = most is None and self._kinds[i : i + 1] not in ((), ("array",))
            own[DRAW.format(i)] = method
            own[KEEP.format(i)] = items.append if is_small else keeping(items)
        assert self._draws.skeleton is not None
        names, function = self._function("draw", self._draws.skeleton, values, [*own], module)
        if most != 0:
            with contextlib.suppress(_Enough):
                function(*(values[x] for x in names), *own.values())
        return lists

    def _function(
        self,
        name: str,
        body: ast.stmt,
        values: Mapping[str, Any],
        own: list[str],
        module: dict[str, Any],
    ) -> tuple[tuple[str, ...], Callable[..., Any]]:
        """A function with this body, and the names of its first parameters. These are the names in
        `values` that the draws need. The `own` parameters follow."""
        names = tuple(sorted(self._draws.names & values.keys() - self._draws.targets))
        code = self._codes.get((name, names))
        if code is None:
            parameters = [ast.arg(x) for x in (*names, *own)]
            arguments = ast.arguments([], parameters, None, [], [], None, [])
            definition = ast.FunctionDef(name, arguments, [copied(body)], [])
            tree = ast.fix_missing_locations(ast.Module([at(self._draws.original, definition)], []))
            made = compile(tree, "<random numbers of a loop>", "exec")
            code = next(x for x in made.co_consts if isinstance(x, types.CodeType))
            self._codes[name, names] = code
        return names, types.FunctionType(code, module)


def at_once(
    method: Any, args: list[Any], kwargs: dict[str, Any], counts: list[int], is_array: bool
) -> Any:
    """The results of many calls of a generator's method as one array, by one call. Its first axes
    have the lengths `counts`; those of a single result follow. `is_array` tells whether a single
    result is an array or a number. None if the one call might give other numbers. Raises Unsuitable
    for too many numbers."""
    most = AT_ONCE.get(method.__name__)
    if most is None or is_of_python(method.__self__):
        return None
    size: Any = ()
    if method.__name__ in ("rand", "randn"):
        args, size = [], tuple(args)
    elif len(args) > most:
        *args, size = args
    elif "size" in kwargs:
        size = kwargs.pop("size")
    numbers = (int, float, np.integer, np.floating)
    if len(args) > most or not all(isinstance(x, numbers) for x in (*args, *kwargs.values())):
        return None
    if (size is None or size == ()) == is_array:
        return None
    size = () if size is None else (size,) if isinstance(size, (int, np.integer)) else size
    whole = (*counts, *size)
    if math.prod(whole) * 8 > _MOST_BYTES:
        raise Unsuitable
    if method.__name__ in ("rand", "randn"):
        return method(*whole)
    return method(*args, **kwargs, size=whole)


def _stacked(items: list[Any], lengths: list[int]) -> tuple[Any, str]:
    """The numbers of a site as an array, and their kind. Raises Unsuitable if they differ in
    kind."""
    kinds = set(map(type, items))
    if len(kinds) != 1 or len(items) != math.prod(lengths):
        raise Unsuitable
    kind = kinds.pop()
    if kind in (float, int):
        array = np.array(items, np.float64 if kind is float else np.int64)
        return array.reshape(lengths), kind.__name__
    if not issubclass(kind, np.generic) and kind is not np.ndarray:
        raise Unsuitable
    if len({(x.dtype, x.shape) for x in items}) != 1 or items[0].dtype.kind not in "biuf":
        raise Unsuitable
    array = np.array(items).reshape(*lengths, *items[0].shape)
    return array, "array" if kind is np.ndarray else "NumPy's"
