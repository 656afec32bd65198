"""Test modules in which operators, indexing and method calls are calls of functions."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import types
from collections.abc import Callable
from typing import Any

_OPERATORS: dict[type, str] = {
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow"},
    **{ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.MatMult: "matmul", ast.BitAnd: "and_"},
    **{ast.BitOr: "or_", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift"},
    **{ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "inv"},
    **{ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"},
}
_OPERATION, _METHOD = "_suite_operation_", "_suite_method_"


class _AsCalls(ast.NodeTransformer):
    """Writes `x + y` as `_suite_operation_("add", x, y)`, and so on."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _call(_OPERATION, _OPERATORS[type(node.op)], node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in _OPERATORS or isinstance(node.operand, ast.Constant):
            return node
        return _call(_OPERATION, _OPERATORS[type(node.op)], node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1 or type(node.ops[0]) not in _OPERATORS:
            return node
        return _call(_OPERATION, _OPERATORS[type(node.ops[0])], node.left, node.comparators[0])

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return _call(_OPERATION, "getitem", node.value, _index(node.slice))

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript):
            return node
        value = _call(_OPERATION, "setitem", target.value, _index(target.slice), node.value)
        return ast.Expr(value)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        name = f"i{_OPERATORS[type(node.op)].rstrip('_')}"
        read = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], _call(_OPERATION, name, read, node.value))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        called = _call(_METHOD, node.func.attr, node.func.value)
        called.args += node.args
        called.keywords = node.keywords
        return called


def _call(function: str, name: str, *arguments: Any) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), [ast.Constant(name), *arguments], [])


def _index(node: Any) -> Any:
    """An index as an expression outside of brackets."""
    if isinstance(node, ast.Slice):
        bounds = [x or ast.Constant(None) for x in (node.lower, node.upper, node.step)]
        return ast.Call(ast.Name("slice", ast.Load()), bounds, [])
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_index(x) for x in node.elts], ast.Load())
    return node


@functools.cache
def _method(name: str) -> Callable[..., Any]:
    def call(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    call.__name__ = name
    return call


def with_operations(
    module: types.ModuleType,
    run: Callable[[str, Any, Any, Any], Any],
    is_array: Callable[[Any], bool],
) -> None:
    """Runs the module's source again, with operations on arrays as calls: run(name, function,
    arguments, keywords)."""

    def operation(name: str, *operands: Any) -> Any:
        function = getattr(operator, name)
        if not any(map(is_array, operands)):
            return function(*operands)
        return run(f"operator.{name}", function, operands, {})

    def method(name: str, x: Any, /, *args: Any, **kwargs: Any) -> Any:
        if not is_array(x):
            return getattr(x, name)(*args, **kwargs)
        return run(f"ndarray.{name}", _method(name), (x, *args), kwargs)

    tree = ast.fix_missing_locations(_AsCalls().visit(ast.parse(inspect.getsource(module))))
    vars(module).update({_OPERATION: operation, _METHOD: method})
    exec(compile(tree, str(module.__file__), "exec"), vars(module))
