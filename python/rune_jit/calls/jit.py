"""jit: makes a jitted function (function.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from rune_jit.calls.function import JitFunction
from rune_jit.calls.options import Dynamic, JitOptions
from rune_jit.capture.loops import apart

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(fn: Callable[P, R], **options: Unpack[JitOptions]) -> JitFunction[P, R]: ...
@overload
def jit(
    fn: None = ..., **options: Unpack[JitOptions]
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    device: str | None = None,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    fallback: Literal["warn", "silent", "error"] = "warn",
    dynamic: Dynamic | None = None,
    cache_size: int = 256,
) -> Any:
    """Compiles a function over NumPy arrays.

    The function is traced at its first call with arguments of new types: arrays and NumPy scalars
    by dtype and shape, Python ints and floats by type only (they stay weakly typed, as in NumPy)
    unless the function needs their values (as range(n) does), and all else (str, bool, None, any
    hashable object) by value. Arguments and results may be nested in lists, tuples, dicts,
    namedtuples, dataclasses (what is no array in them is static) and what optree knows. Results are
    NumPy's arrays and scalars; if any array that comes in is a rune_jit.Array, they are Arrays on
    its device.

    Arrays that the function takes from globals and closures are read again at each call. When a
    number or an object that it takes from there (or from attributes, containers, default arguments)
    is another one, it is traced again. Writes to these arrays and to arguments reach them when the
    program has run. A function with conditions on values of arrays has a program for each way
    through them. One that asks for values otherwise, or changes anything else at each call, runs in
    segments, with Python between them.

    Args:
        fn: the function; without it, a decorator is returned.
        device: "cpu", "metal", "cuda" ...; default: where the Arrays among the arguments are, or
            RUNE_JIT_DEVICE.
        static_argnums: positions of parameters with hashable values that the trace may use; each
            value is traced on its own.
        static_argnames: names of such parameters.
        donate_argnums: parameters whose arrays the caller does not need afterwards: a permission
            that the CPU does not make use of.
        fallback: what happens when the function cannot be one program. With "warn" and "silent" it
            runs in segments, or on NumPy where that is faster; where it can run on NumPy only,
            "warn" warns once. "error" raises UnsupportedOpError or ConcretizationError.
        dynamic: sizes that may differ from call to call of one program: by parameter (name or
            position), a dict of axes and names, {"x": {0: "n"}}, or Dims. Axes of one name have one
            size at each call.
        cache_size: how many signatures are kept; the one used longest ago goes first.

    Returns:
        A function of the same signature.

    Raises:
        ValueError: if there is no device of this name, or another option is none of those above. At
            a call, if its Arrays are on several devices, or a dynamic size is out of bounds or not
            the same in all places.
        ConcretizationError: at a call with fallback="error", if the function needs the value of a
            traced array or of a dynamic size.
        DTypeError: at a call, if the device lacks a dtype.

    Examples:
        >>> import numpy as np, rune_jit
        >>> @rune_jit.jit
        ... def softmax(x):
        ...     e = np.exp(x - x.max(axis=-1, keepdims=True))
        ...     return e / e.sum(axis=-1, keepdims=True)
        >>> softmax(np.zeros((1, 4), np.float32))
        array([[0.25, 0.25, 0.25, 0.25]], dtype=float32)
    """
    if fallback not in ("warn", "error", "silent"):
        raise ValueError(f'jit: cannot use fallback={fallback!r} ("warn", "error" or "silent")')
    if cache_size < 1:
        raise ValueError(f"jit: cannot use cache_size={cache_size} (at least 1)")

    def wrap(function: Callable[..., Any]) -> JitFunction[Any, Any]:
        if not callable(function):
            raise TypeError(f"jit: cannot compile a {type(function).__name__} (it is not callable)")
        return JitFunction(
            function,
            device=device,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            fallback=fallback,
            cache_size=cache_size,
            dynamic=dynamic,
        )

    return wrap if fn is None else wrap(fn)


apart.compiler = lambda function, device: jit(function, device=device, fallback="silent")
