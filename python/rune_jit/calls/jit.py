"""jit: makes a jitted function (function.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from rune_jit.calls.function import JitFunction
from rune_jit.calls.options import Dynamic, JitOptions

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
    """Compiles a function over NumPy arrays. A call gives what it gives with NumPy.

    The first call traces the function and compiles it. Later calls run the program. A call with
    another signature traces again. The signature is made of:

    - the dtype and shape of each array and NumPy scalar;
    - the type of each Python int and float, which stay weakly typed, as in NumPy. If the function
      needs the value of a number (`range(n)`), each value has a program of its own;
    - the value of everything else: str, bool, None, any hashable object.

    Arguments and results may be nested in lists, tuples, dicts, namedtuples, dataclasses and other
    containers that optree knows. Results are NumPy's arrays and scalars. If any array that comes in
    is a rune_jit.Array, they are Arrays on its device.

    The function reads arrays from globals and closures again at each call. It is traced again if a
    number or an object there has changed (also in attributes, containers, default arguments).
    Writes to arguments and to these arrays reach them when the program has run.

    A function with conditions on values of arrays has a program for each way through them. A
    function that needs values in other ways (`x.item()`) runs in segments: programs with Python
    between them.

    Args:
        fn: the function. Without it, `jit` returns a decorator.
        device: "cpu", "metal", "cuda" ... Default: the device of the Arrays among the arguments, or
            RUNE_JIT_DEVICE.
        static_argnums: positions of parameters with hashable values, which the function may use
            while it is traced. Each value has a program of its own.
        static_argnames: names of such parameters.
        donate_argnums: positions of parameters whose arrays the caller does not use again, so that
            a device may reuse their memory. The CPU does not.
        fallback: what happens when the function cannot be one program. "warn" and "silent" run it
            in segments, or on NumPy where that is faster; "warn" warns once if it can run on NumPy
            only. "error" raises UnsupportedOpError or ConcretizationError.
        dynamic: axes whose sizes may differ between calls of one program, by parameter (name or
            position): {"x": {0: "n"}}, with names or Dims. Axes with the same name have the same
            size at each call.
        cache_size: how many signatures are kept. The one used longest ago goes first.

    Returns:
        A JitFunction with the signature of `fn`.

    Raises:
        ValueError: if there is no device of this name, or an option has another value than those
            above. At a call: if its Arrays are on several devices, or a dynamic size is out of
            bounds or differs between axes of one name.
        TypeError: if `fn` is not callable.
        ConcretizationError: at a call with fallback="error", if the function needs the value of a
            traced array or of a dynamic size.
        UnsupportedOpError: at a call with fallback="error", if the function cannot be traced.
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
            raise TypeError(f"jit: cannot compile {function!r:.80} (it is not callable)")
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
