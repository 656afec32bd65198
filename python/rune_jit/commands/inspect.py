"""`inspect module:function --args ...`: prints the program of a function for these arguments."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import sys
from typing import Any

import numpy as np

from rune_jit import _core
from rune_jit.calls.function import JitFunction
from rune_jit.calls.jit import jit
from rune_jit.device import check_name

_SHAPE = re.compile(r"(?P<dtype>[a-z]\w*?)\[(?P<sizes>[\d,\s]*)\]")
_SHORT = {"f": "float", "i": "int", "u": "uint", "c": "complex", "bf": "bfloat"}


class _Refused(Exception):
    """A command line asks for something that does not exist. `code` is the exit code."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "inspect",
        help="say what a function is compiled to",
        description="Traces a function for arguments and lowers it; nothing is run. Prints which"
        " kernels there are, and why, or writes a page.",
    )
    parser.add_argument("function", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION")
    parser.add_argument(
        "--args",
        nargs="*",
        default=[],
        metavar="ARG",
        help="a Python expression, where np is numpy, or a dtype and shape such as f32[100,100]:"
        " then an array of random numbers; NAME=ARG for a keyword",
    )
    parser.add_argument("--device", help="for which to lower; default: RUNE_JIT_DEVICE, or cpu")
    parser.add_argument("--html", metavar="PATH", help="write a page instead of printing")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        function = _find(options.function)
        args, kwargs = _arguments(options.args)
        _inspect(function, args, kwargs, options.device, options.html)
    except _Refused as refusal:
        print(f"inspect: {refusal}", file=sys.stderr)
        return refusal.code
    return 0


def _inspect(
    function: Any, args: list[Any], kwargs: dict[str, Any], device: str | None, html: str | None
) -> None:
    if device is not None:
        try:
            check_name(device)
        except ValueError as error:
            raise _Refused(str(error)) from None
    if not isinstance(function, JitFunction):
        function = jit(function, device=device)
    elif device is not None:
        options = function._options.copy()
        options["device"] = device
        function = JitFunction(function.__wrapped__, **options)
    try:
        lowered = function.lower(*args, **kwargs)
    except Exception as error:
        message = (
            f"cannot lower {function._name} for these arguments\n{type(error).__name__}: {error}"
        )
        raise _Refused(message, code=1) from None
    if html is None:
        print(lowered.explain(), end="")
        return
    try:
        lowered.to_html(html)
    except OSError as error:
        raise _Refused(f"cannot write {html} ({error.strerror})", code=1) from None
    print(f"wrote {os.path.abspath(html)}")


def _find(text: str) -> Any:
    """The object that `module:function` or `file.py:function` names."""
    where, colon, path = text.rpartition(":")
    if not colon or not where or not path:
        raise _Refused(
            f"cannot find {text!r} (no function is named)\n"
            "hint: module:function, or file.py:function"
        )
    sys.path.insert(0, os.getcwd())
    try:
        found = _load(where) if where.endswith(".py") else importlib.import_module(where)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == where.partition(".")[0]:
            raise _Refused(
                f"cannot find module {where!r} (looked in {os.getcwd()} and in sys.path)"
            ) from None
        raise _Refused(f"cannot import {where!r} ({error})", code=1) from error
    except OSError as error:
        raise _Refused(f"cannot read {where} ({error.strerror})") from None
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            functions = sorted(
                n for n, x in vars(found).items() if callable(x) and not n.startswith("_")
            )
            raise _Refused(
                f"cannot find {name!r} in {where}\nhint: it has {', '.join(functions) or 'none'}"
            ) from None
    if not callable(found):
        raise _Refused(f"cannot lower {text} ({type(found).__name__} is not callable)")
    return found


def _load(path: str) -> Any:
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _Refused(f"cannot read {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _arguments(texts: list[str]) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name.isidentifier() and not value.startswith("="):
            kwargs[name] = _value(value)
        else:
            args.append(_value(text))
    return args, kwargs


def _value(text: str) -> Any:
    """The value of an argument on the command line."""
    if match := _SHAPE.fullmatch(text.strip()):
        dtype = _dtype(match["dtype"])
        if dtype is not None:
            return _random(dtype, [int(n) for n in match["sizes"].split(",") if n.strip()])
    try:
        return eval(text, {"np": np, "numpy": np})
    except Exception as error:
        raise _Refused(
            f"cannot understand the argument {text!r} ({type(error).__name__}: {error})\n"
            "hint: a Python expression such as np.ones((100, 100)), or f32[100,100];"
            f" dtypes are {', '.join(_core.dtypes())}"
        ) from None


def _dtype(name: str) -> np.dtype[Any] | None:
    """float32, f32 and so on."""
    short = re.fullmatch(r"([a-z]+?)(\d+)", name)
    if short and short[1] in _SHORT:
        name = _SHORT[short[1]] + short[2]
    return np.dtype(name) if name in _core.dtypes() else None


def _random(dtype: np.dtype[Any], shape: list[int]) -> np.ndarray:
    """A random array. (Lowering reads no elements, but a function may look at them while it is
    traced.)"""
    numbers = np.random.default_rng(0).random(shape)
    return (numbers * 100 if dtype.kind in "iu" else numbers).astype(dtype)
