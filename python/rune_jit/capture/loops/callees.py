"""Redirects calls in traced code. A trace has copies of functions, and its own classes for objects
that it makes. So each call asks the trace for the object to call:

y = layers[0](x)                    y = (CALLEE @ layers[0])(x)
ys = map(ops["f"], xs)              ys = map(CALLEE @ ops["f"], xs)
f = partial(np.ndarray.sum, x)      f = partial(CALLEE.method(np.ndarray, "sum"), x)
kind = type(x)                      kind = CALLEE.kind_of(type, x)

The comparison by `is` asks as well, since a function, class or object from outside may be replaced
by a copy:

if f is max:                        if CALLEE.same(f, max, True):

So does `x is True`, since x may be a traced bool, which is no Python bool but stands for one.

CALLEE is a constant of the code, so that functions that outlive the trace still find it."""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import itertools
import math
import types
from typing import Any

import numpy as np

from rune_jit.capture.foreign import method_in_c, shuffling
from rune_jit.capture.loops.nodes import Transformer, at
from rune_jit.capture.loops.structures import class_of
from rune_jit.capture.names import all_codes
from rune_jit.capture.objects import is_library, may_act_unseen
from rune_jit.capture.shim import original
from rune_jit.errors import UnsupportedOpError
from rune_jit.tracing.context import current_trace
from rune_jit.tracing.trace import Trace
from rune_jit.tracing.tracer import Tracer
from rune_jit.trees import PLAIN


class _Callee:
    """Finds the object to call in place of a callee: `CALLEE @ callee`."""

    def __matmul__(self, x: Any) -> Any:
        kind = type(x)
        function: Any = x.__func__ if kind is types.MethodType else x
        if type(function) is types.FunctionType:
            if type(function.__globals__) is not dict:  # (a copy, or made in the trace)
                trace = current_trace()
                if trace is not None and trace.rebind is not None:
                    trace.rebind.callee.end_early()
                return x
        elif kind is types.MethodType:
            if type(x.__self__) is Tracer:
                return x
            return shuffling(x) if x.__name__ == "shuffle" else method_in_c(x)
        elif kind is types.BuiltinFunctionType and not isinstance(x.__self__, types.ModuleType):
            return method_in_c(x)
        trace = current_trace()
        if trace is None or trace.rebind is None:
            return x
        known = trace.callees.get(id(function))
        if known is None:
            return trace.rebind.callee(x)
        if function is x:
            return known[1]
        return x if known[1] is function else trace.rebind.callee(x)

    def key(self, function: Any) -> Any:
        """The function to call for the argument `key` of a function that compares its results. In
        segments it returns known numbers, because each comparison would ask for two of them."""
        made, trace = self @ function, current_trace()
        if function is None or not callable(function) or trace is None or not trace.is_segmented:
            return made
        return lambda x: _settled(made(x))

    def method(self, kind: Any, name: str) -> Any:
        """kind.name, for numpy.ndarray or something else called ndarray."""
        return self @ getattr(original(kind), name)  # (a stand-in has special methods of its own)

    def kind_of(self, kind_of: Any, x: Any) -> Any:
        """type(x). `kind_of` is the object that the name `type` stands for."""
        kind = kind_of(x)
        return class_of(x) if kind is type(x) else kind

    def same(self, x: Any, y: Any, wanted: bool) -> Any:
        """Whether x and y are the same object outside of the trace, if `wanted`; else, whether they
        are not."""
        trace = current_trace()
        rebind = None if trace is None else trace.rebind
        if x is y or trace is None or rebind is None:
            return (x is y) is wanted
        if Tracer in (type(x), type(y)) and _may_be_bool(trace, x) and _may_be_bool(trace, y):
            return _same_bool(trace, x, y, wanted)
        if not trace.is_segmented and _may_be_one(x, y):
            raise UnsupportedOpError(
                f"{trace.name}: cannot trace `is` between an argument and an array (it may be the"
                " array in other calls)"
            )
        if type(x) is Tracer and type(y) is Tracer and trace.loops is not None:
            trace.loops.check_memory(x._storage, y._storage)
        return (rebind.outside(x) is rebind.outside(y)) is wanted


def _settled(x: Any) -> Any:
    """A traced number, or the items of a tuple, as known numbers."""
    if type(x) is tuple:
        return tuple([_settled(y) for y in x])
    return x._element("key") if type(x) is Tracer and x._storage.scalar else x


def _may_be_bool(trace: Trace, x: Any) -> bool:
    """Whether x may be one of the two bools of Python."""
    if type(x) is not Tracer or not x._storage.scalar:
        return type(x) is bool
    value = x._value_in(trace)
    return "bool" in (value.weak, trace.builder.unsure_kind(value))


def _same_bool(trace: Trace, x: Any, y: Any, wanted: bool) -> Tracer:
    """Whether x and y are the same bool of Python, if `wanted`; else, whether they are not."""
    ufunc = trace.builder.ufunc
    values = [trace.operand(z) for z in (x, y)]
    same = ufunc("equal", values)[0]
    for value in values:
        if type(value) is not bool and trace.builder.unsure_kind(value):
            same = ufunc("logical_and", [same, trace.builder.is_python(value)])[0]
    same = same if wanted else ufunc("logical_not", [same])[0]
    return Tracer(trace, trace.builder.python_bool(same), scalar=True)


def _may_be_one(x: Any, y: Any) -> bool:
    """Whether x is an array that is an argument and y an array from outside, or the other way
    round. In another call they may be the same array."""
    storages = [z._storage for z in (x, y) if type(z) is Tracer and not z._steps]
    is_argument = any(storage.leaf is not None for storage in storages)
    are_outside = sum(s.is_outside for s in storages)
    return is_argument and are_outside + sum(type(z) is np.ndarray for z in (x, y)) == 2


CALLEE = _Callee()
# Marks the place of CALLEE in syntax trees, which take only constants of Python's own types.
_PLACE = "\0callee"


def asked(code: types.CodeType) -> types.CodeType:
    """Compiled code with CALLEE in the marked places."""
    consts = (
        asked(x) if isinstance(x, types.CodeType) else CALLEE if x == _PLACE else x
        for x in code.co_consts
    )
    return code.replace(co_consts=(*consts,))


class Callees(Transformer):
    """Redirects calls, except those of functions of `modules` (see `modules_of`)."""

    def __init__(self, modules: frozenset[str] = frozenset()) -> None:
        self._modules = modules

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        f = node.func
        name = f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""
        if isinstance(f, ast.Name) and name == "type" and len(node.args) == 1:
            kind_of = ast.Attribute(ast.Constant(_PLACE), "kind_of", ast.Load())
            return at(node, ast.Call(kind_of, [f, *node.args], []))
        if self._is_asked(f):
            node.func = _asked(f)
        if name in _CALLING and node.args and not isinstance(node.args[0], ast.Starred):
            node.args[0] = _asked(node.args[0])
        for keyword in node.keywords:
            if keyword.arg == "key" and name in _ORDERING:
                of_key = ast.Attribute(ast.Constant(_PLACE), "key", ast.Load())
                keyword.value = at(keyword.value, ast.Call(of_key, [keyword.value], []))
            elif keyword.arg == "key":
                keyword.value = _asked(keyword.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        is_of_class = _NDARRAY in (getattr(node.value, "attr", ""), getattr(node.value, "id", ""))
        if not is_of_class or not isinstance(node.ctx, ast.Load):
            return node
        method = ast.Attribute(ast.Constant(_PLACE), "method", ast.Load())
        return at(node, ast.Call(method, [node.value, ast.Constant(node.attr)], []))

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if not isinstance(node.ops[0], (ast.Is, ast.IsNot)) or len(operands) > 2:
            return node
        if any(isinstance(x, ast.Constant) and type(x.value) is not bool for x in operands):
            return node
        is_same = ast.Attribute(ast.Constant(_PLACE), "same", ast.Load())
        wanted = ast.Constant(isinstance(node.ops[0], ast.Is))
        return at(node, ast.Call(is_same, [*operands, wanted], []))

    def _is_asked(self, f: ast.expr) -> bool:
        if isinstance(f, ast.Name):
            return not f.id.startswith(".") and not hasattr(builtins, f.id)
        root = f
        while isinstance(root, ast.Attribute):
            root = root.value
        is_known = isinstance(root, ast.Name) and (root.id[0] == "." or root.id in self._modules)
        return not is_known and not isinstance(root, ast.Constant)


_NDARRAY = "ndarray"  # (whose methods accept no traced arrays)
# Functions in C that call their first argument.
_CALLING = ("map", "filter", "reduce")
# Functions that compare the results of their argument `key`.
_ORDERING = ("sorted", "min", "max", "sort", "nlargest", "nsmallest", "merge", "groupby")


def _asked(x: ast.expr) -> ast.expr:
    if isinstance(x, (ast.Lambda, ast.Constant)):
        return x
    return at(x, ast.BinOp(ast.Constant(_PLACE), ast.MatMult(), x))


def modules_of(names: dict[str, Any]) -> frozenset[str]:
    """The names among these that stand for modules of NumPy, Python or rune_jit that only
    compute."""
    modules = ((name, x) for name, x in names.items() if isinstance(x, types.ModuleType))
    return frozenset(name for name, x in modules if _is_trusted(x.__name__))


def _is_trusted(module: str | None) -> bool:
    return is_library(module) and not may_act_unseen(module)


def has_to_ask(function: types.FunctionType) -> bool:
    """Whether the calls of a function have to be redirected: it compares objects by `is`, or it may
    call something else than functions of modules and methods of arrays."""
    codes = list(all_codes(function.__code__))
    return any(map(_compared, codes)) or any(_calls_others(x, function) for x in codes)


@functools.cache
def _compared(code: types.CodeType) -> list[dis.Instruction]:
    """The instructions that load the right operand of `is`, unless that is None."""
    run = [x for x in dis.get_instructions(code) if x.opname not in ("CACHE", "EXTENDED_ARG")]
    found = [x for x, after in itertools.pairwise(run) if after.opname == "IS_OP"]
    return [x for x in found if (x.opname, x.argval) != ("LOAD_CONST", None)]


def _compares_with_named(code: types.CodeType) -> bool:
    """Whether the right operand of `is` can be a global, an attribute, a variable of an outer
    function, True or False."""
    named = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_DEREF")
    return any(x.opname in named or type(x.argval) is bool for x in _compared(code))


def _calls_others(code: types.CodeType, function: types.FunctionType) -> bool:
    names = function.__globals__
    if any(type(x) is tuple and "key" in x for x in code.co_consts):
        return True
    operations = {dis.opname[x] for x in code.co_code[::2]}
    if _NDARRAY in code.co_names or not operations.isdisjoint(_OF_OTHERS):
        return True
    if not _methods(code) <= _of_arrays():
        return True
    for name in code.co_names:
        value = dict.get(names, name, vars(builtins).get(name))
        if value is None and name not in _numpys():
            return True
        is_module = isinstance(value, types.ModuleType)
        module = getattr(value, "__name__" if is_module else "__module__", "")
        if not isinstance(value, _AS_THEY_ARE) and not _is_trusted(module):
            return True
    return False


def refuse_identity(code: types.CodeType) -> None:
    """Raises UnsupportedOpError if code that is not redirected compares by `is`: one of the objects
    may be a copy, a stand-in or a traced bool."""
    if any(map(_compares_with_named, all_codes(code))):
        raise UnsupportedOpError(
            f"{code.co_name}: cannot trace `is` in a function that cannot be copied or has no"
            " source\nhint: write =="
        )


# Instructions that call local variables, items or results of calls, or that make a class.
_OF_OTHERS = ("PUSH_NULL", "CALL_FUNCTION", "CALL_FUNCTION_KW", "LOAD_BUILD_CLASS")
_AS_THEY_ARE = (np.ufunc, np.ndarray, np.generic, *PLAIN)


@functools.cache
def _methods(code: types.CodeType) -> frozenset[str]:
    """The names of the attributes that code reads, except those of globals and of their
    attributes."""
    found: set[str] = set()
    is_of_global = False
    for x in dis.get_instructions(code):
        if x.opname in ("CACHE", "EXTENDED_ARG"):
            continue
        is_attribute = x.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if is_attribute and not is_of_global:
            found.add(x.argval)
        is_of_global = x.opname == "LOAD_GLOBAL" or (is_attribute and is_of_global)
    return frozenset(found)


@functools.cache
def _of_arrays() -> frozenset[str]:
    """The names of attributes of arrays and random generators."""
    return frozenset(x for of in (np.ndarray, np.random) for x in dir(of)) - {"shuffle"}


@functools.cache
def _numpys() -> frozenset[str]:
    """The names of attributes of NumPy's modules, of arrays, and of `math`."""
    return _of_arrays().union(*map(dir, (np, np.linalg, math)))
