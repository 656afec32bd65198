"""Other libraries on the same workloads. Each adapter stands alone: what it lacks, it raises.

A peer gets its own arrays before timing, and its call returns when the result is there.
"""

from __future__ import annotations

import os
import shutil
import types
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import workloads
from workloads import Workload

Call = Callable[[], Any]


class Unsupported(Exception):
    """The peer cannot run this workload."""


def with_globals(fn: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """The same code reading other globals: `np` may be another library's namespace."""
    return types.FunctionType(fn.__code__, {**fn.__globals__, **names}, fn.__name__)


class NumPy:
    name = "numpy"
    version = np.__version__

    def prepare(self, workload: Workload) -> Call:
        return lambda: workload.fn(*workload.args)

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result)


class RuneJit(NumPy):
    name = "rune_jit"

    def __init__(self) -> None:
        import rune_jit

        self._jit = rune_jit.jit
        self.version = rune_jit.__version__

    def jitted(self, workload: Workload) -> Any:
        return self._jit(workload.fn, fallback="error")

    def prepare(self, workload: Workload) -> Call:
        run = self.jitted(workload)
        args = workload.args
        return lambda: run(*args)


class Jax(NumPy):
    name = "jax"

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        self.version = jax.__version__
        self._jax, self._jnp = jax, jnp

    def prepare(self, workload: Workload) -> Call:
        jax, jnp = self._jax, self._jnp
        fn = (
            _jax_scatter(jnp)
            if workload.name == "scatter_add"
            else with_globals(workload.fn, np=jnp)
        )
        args = [jnp.asarray(a) for a in workload.args]
        run = jax.jit(fn)
        return lambda: jax.block_until_ready(run(*args))


def _jax_scatter(jnp: Any) -> Callable[..., Any]:
    return lambda values, index, bins: bins.at[index].add(values)


class Torch(NumPy):
    name = "torch.compile"

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.version = torch.__version__

    def prepare(self, workload: Workload) -> Call:
        torch = self._torch
        if workload.name == "mandelbrot":
            raise Unsupported("torch.compile: needs minutes to compile the unrolled loop")
        torch._dynamo.reset()
        if workload.name == "scatter_add":

            def fn(values: Any, index: Any, bins: Any) -> Any:
                return bins.index_add(0, index, values)
        else:
            fn = with_globals(
                workload.fn, np=_TorchNumPy(torch), as_float32=lambda x: x.to(torch.float32)
            )
        run = torch.compile(fn, dynamic=False)
        args = [torch.from_numpy(np.array(a)) for a in workload.args]

        def call() -> Any:
            with torch.no_grad():
                return run(*args)

        return call

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result.numpy())


class _TorchNumPy:
    """NumPy's names for torch's functions, as far as the workloads use them."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.exp, self.log, self.sqrt, self.tanh = torch.exp, torch.log, torch.sqrt, torch.tanh
        self.cos, self.where, self.abs = torch.cos, torch.where, torch.abs
        self.zeros_like, self.swapaxes = torch.zeros_like, torch.swapaxes
        self.cumsum, self.argmin = torch.cumsum, torch.argmin

    def maximum(self, x: Any, y: Any) -> Any:
        return self._torch.clamp(x, min=y)

    def minimum(self, x: Any, y: Any) -> Any:
        return self._torch.clamp(x, max=y)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return self._torch.sum(x) if axis is None else self._torch.sum(x, axis, keepdims)

    def mean(self, x: Any, axis: Any, keepdims: bool = False) -> Any:
        return self._torch.mean(x, axis, keepdims)

    def max(self, x: Any, axis: Any, keepdims: bool = False) -> Any:
        return self._torch.amax(x, axis, keepdims)

    def min(self, x: Any, axis: Any, keepdims: bool = False) -> Any:
        return self._torch.amin(x, axis, keepdims)

    def pad(self, x: Any, width: int) -> Any:
        return self._torch.nn.functional.pad(x, (width,) * (2 * x.ndim))


class Mlx(NumPy):
    name = "mlx"

    def __init__(self) -> None:
        import importlib.metadata

        import mlx.core as mx

        self.version = importlib.metadata.version("mlx")
        mx.set_default_device(mx.cpu)
        self._mx = mx

    def prepare(self, workload: Workload) -> Call:
        mx = self._mx
        fn = with_globals(workload.fn, np=mx, as_float32=lambda x: x.astype(mx.float32))
        if workload.name == "scatter_add":
            fn = _jax_scatter(mx)
        # Without its dtype an array of float64 would become one of float32.
        args = [mx.array(a, getattr(mx, a.dtype.name)) for a in workload.args]
        run = mx.compile(fn)

        def call() -> Any:
            result = run(*args)
            mx.eval(result)
            return result

        return call


class Tinygrad(NumPy):
    name = "tinygrad"

    def __init__(self) -> None:
        import importlib.metadata

        if shutil.which("clang") is None:  # which tinygrad calls unless it is told another name
            found = filter(shutil.which, ("clang-19", "clang-18", "clang-17"))
            os.environ.setdefault("CC", next(found, "clang"))
        import tinygrad

        self.version = importlib.metadata.version("tinygrad")
        self._tinygrad = tinygrad

    def prepare(self, workload: Workload) -> Call:
        Tensor, dtypes = self._tinygrad.Tensor, self._tinygrad.dtypes
        fn = with_globals(
            workload.fn, np=_TinygradNumPy(), as_float32=lambda x: x.cast(dtypes.float32)
        )
        if workload.name == "scatter_add":

            def fn(values: Any, index: Any, bins: Any) -> Any:
                return bins.scatter_reduce(0, index, values, "sum")

        @self._tinygrad.TinyJit
        def run(*args: Any) -> Any:
            result = fn(*args)
            results = result if isinstance(result, tuple) else (result,)
            Tensor.realize(*results)
            return result

        device = self._tinygrad.Device["CPU"]
        args = [Tensor(a, device="CPU").realize() for a in workload.args]

        def call() -> Any:
            result = run(*args)
            device.synchronize()
            return result

        return call

    def to_numpy(self, result: Any) -> np.ndarray:
        return np.asarray(result.numpy())


class _TinygradNumPy:
    """NumPy's names for methods of tinygrad's tensors, as far as the workloads use them."""

    def __getattr__(self, name: str) -> Any:
        return lambda x, *args, **options: getattr(x, name)(*args, **options)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return condition.where(x, y)

    def swapaxes(self, x: Any, a: int, b: int) -> Any:
        return x.transpose(a, b)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        return x.sum(axis, keepdims)

    def mean(self, x: Any, axis: Any, keepdims: bool = False) -> Any:
        return x.mean(axis, keepdims)

    def max(self, x: Any, axis: Any, keepdims: bool = False) -> Any:
        return x.max(axis, keepdims)

    def min(self, x: Any, axis: Any, keepdims: bool = False) -> Any:
        return x.min(axis, keepdims)

    def pad(self, x: Any, width: int) -> Any:
        return x.pad(((width, width),) * x.ndim)


class Numba(NumPy):
    """NumPy code where numba compiles it in parallel, and explicit loops for the rest."""

    name = "numba"

    def __init__(self) -> None:
        import numba

        self._numba = numba
        self.version = numba.__version__

    def prepare(self, workload: Workload) -> Call:
        import numba_loops

        fn = numba_loops.LOOPS.get(workload.name)
        if fn is None:
            if workload.name in numba_loops.WITHOUT:
                raise Unsupported("numba: cannot compile this NumPy code, and no loops are written")
            as_float32 = self._numba.njit(workloads.as_float32)
            fn = with_globals(workload.fn, as_float32=as_float32)
        run = self._numba.njit(parallel=workload.name not in numba_loops.SERIAL)(fn)
        args = workload.args
        return lambda: run(*args)


class NumExpr(NumPy):
    name = "numexpr"

    _EXPRESSIONS: ClassVar = {
        "mask": "where((x > 0.1) & (x < 0.9) & (y > 0), x * y, h * x)",
        "gelu": "h * x * (1 + tanh(c * (x + d * x * x * x)))",
        "sum_all": "sum(x)",
        "sum_axis0": "sum(x, axis=0)",
        "sum_axis1": "sum(x, axis=1)",
    }

    def __init__(self) -> None:
        import numexpr

        self._numexpr = numexpr
        self.version = numexpr.__version__

    def prepare(self, workload: Workload) -> Call:
        expression = self._EXPRESSIONS.get(workload.name)
        if expression is None:
            raise Unsupported("numexpr: no expression for this workload")
        names = dict(zip("xy", workload.args, strict=False))
        # Constants of NumPy's float32, which numexpr would otherwise widen.
        for name, value in (("h", 0.5), ("c", 0.7978845608), ("d", 0.044715)):
            names[name] = np.float32(value)
        evaluate = self._numexpr.evaluate
        return lambda: evaluate(expression, local_dict=names)


_PEERS = {
    "jax": Jax,
    "torch.compile": Torch,
    "mlx": Mlx,
    "tinygrad": Tinygrad,
    "numba": Numba,
    "numexpr": NumExpr,
}


def available() -> tuple[list[Any], dict[str, str]]:
    """The peers that can be imported, and why the others cannot."""
    found, missing = [], {}
    for name, adapter in _PEERS.items():
        try:
            found.append(adapter())
        except Exception as error:  # a broken installation must not end the run
            missing[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return found, missing
