"""Who runs a program of spcl/npbench, on the host and on a GPU: how each gets its functions, its
arguments and its results."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_NUMBA_PORTS = ("n", "np", "npr", "o", "op", "opr")


class Program:
    """One program of the suite, with its arguments of a preset."""

    def __init__(self, path: Path, name: str, preset: str) -> None:
        self.info = json.loads((path / "bench_info" / f"{name}.json").read_text())["benchmark"]
        self.folder = path / "npbench" / "benchmarks" / self.info["relative_path"]
        self.module = self.info["module_name"]
        values = dict(self.info["parameters"][preset])
        if init := self.info.get("init"):
            function = getattr(self._load(self.module), init["func_name"])
            made = function(*(values[name] for name in init["input_args"]))
            names = init["output_args"]
            values |= zip(names, made if len(names) > 1 else (made,), strict=True)
        self.values = values

    def _load(self, module: str) -> Any:
        spec = importlib.util.spec_from_file_location(module, self.folder / f"{module}.py")
        assert spec is not None and spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[module] = loaded
        spec.loader.exec_module(loaded)
        return loaded

    def function(self, port: str) -> Any:
        """The function of a port: "numpy", "jax", "numba_np" ..."""
        return getattr(self._load(f"{self.module}_{port}"), self.info["func_name"])

    def has(self, port: str) -> bool:
        return (self.folder / f"{self.module}_{port}.py").exists()

    def arguments(self) -> list[Any]:
        """The program's own, which no call may write to."""
        return [self.values[name] for name in self.info["input_args"]]

    def outputs(self, arguments: list[Any], returned: Any) -> list[Any]:
        """What a call has returned, and the arguments that it writes to."""
        names = self.info["input_args"]
        written = [arguments[names.index(n)] for n in self.info["output_args"] if n in names]
        return [*flat(returned), *written]


def flat(x: Any) -> list[Any]:
    if x is None:
        return []
    return [part for item in x for part in flat(item)] if isinstance(x, (tuple, list)) else [x]


class Contestant:
    """NumPy; the others say what they do differently."""

    name = "numpy"
    module = "numpy"  # that must be installed
    writes = True  # to its arguments

    def functions(self, program: Program) -> list[Callable[..., Any]]:
        """What to time: the fastest counts. None if the suite has no port."""
        return [program.function("numpy")]

    def argument(self, x: Any) -> Any:
        """An argument of the program where the contestant wants it."""
        return x

    def fresh(self, x: Any) -> Any:
        """A copy of an argument, for one call to write to."""
        return x.copy() if isinstance(x, np.ndarray) else copy.deepcopy(x)

    def wait(self, values: list[Any]) -> None:
        """Returns when they have been computed."""

    def to_numpy(self, x: Any) -> np.ndarray:
        return np.asarray(x.toarray() if hasattr(x, "toarray") else x)

    def version(self) -> str:
        return str(importlib.import_module(self.module).__version__)


class RuneJit(Contestant):
    name = module = "rune_jit"

    def functions(self, program: Program) -> list[Callable[..., Any]]:
        import rune_jit

        return [rune_jit.jit(program.function("numpy"))]


class Numba(Contestant):
    name = module = "numba"

    def functions(self, program: Program) -> list[Callable[..., Any]]:
        ports = [f"numba_{port}" for port in _NUMBA_PORTS if program.has(f"numba_{port}")]
        return [program.function(port) for port in ports]


class Jax(Contestant):
    """Its arrays cannot be written to: it returns what the program writes."""

    name = module = "jax"
    writes = False

    def __init__(self, device: str = "cpu") -> None:
        self._device = device

    def functions(self, program: Program) -> list[Callable[..., Any]]:
        return [program.function("jax")] if program.has("jax") else []

    def argument(self, x: Any) -> Any:
        import jax

        jax.config.update("jax_enable_x64", True)
        device = jax.devices(self._device)[0]
        return jax.device_put(x, device) if isinstance(x, np.ndarray) else x

    def fresh(self, x: Any) -> Any:
        return x

    def wait(self, values: list[Any]) -> None:
        import jax

        jax.block_until_ready(values)


class RuneJitOnDevice(RuneJit):
    """With `rune_jit.Array`s there."""

    def __init__(self, device: str) -> None:
        self._device = device

    def argument(self, x: Any) -> Any:
        import rune_jit

        return rune_jit.asarray(x, device=self._device) if isinstance(x, np.ndarray) else x

    def fresh(self, x: Any) -> Any:
        import rune_jit

        return rune_jit.numpy.asarray(x, copy=True) if isinstance(x, rune_jit.Array) else x

    def wait(self, values: list[Any]) -> None:
        for x in values:
            if hasattr(x, "block_until_ready"):
                x.block_until_ready()


class CuPy(Contestant):
    name = module = "cupy"

    def functions(self, program: Program) -> list[Callable[..., Any]]:
        return [program.function("cupy")] if program.has("cupy") else []

    def argument(self, x: Any) -> Any:
        import cupy

        return cupy.asarray(x) if isinstance(x, np.ndarray) else x

    def fresh(self, x: Any) -> Any:
        import cupy

        return x.copy() if isinstance(x, cupy.ndarray) else x

    def wait(self, values: list[Any]) -> None:
        import cupy

        cupy.cuda.get_current_stream().synchronize()

    def to_numpy(self, x: Any) -> np.ndarray:
        import cupy

        return cupy.asnumpy(x)


def contestants(device: str) -> list[Contestant]:
    """Those of a device, NumPy first."""
    if device == "cpu":
        return [Contestant(), Numba(), Jax(), RuneJit()]
    peers: list[Contestant] = [CuPy(), Jax(device)] if device.startswith("cuda") else []
    return [Contestant(), *peers, RuneJitOnDevice(device)]
