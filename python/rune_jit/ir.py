"""Graphs that users write themselves: any node of the high-level IR, run on any device
(docs/dev/ir.md).

from rune_jit import ir

program = ir.Program('''
graph {
  %0 = placeholder index=0 : f32[2,3]
  %1 = reduce_axis add axes=[1] %0 : f32[2,1]
  return %1
}
''')
(total,) = program.run(np.ones((2, 3), np.float32))

b = ir.Builder()
x = b.placeholder(np.float32, (2, 3))
b.finish(b.node("reduce_axis", "add", x, axes=[1]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  (gives NumPy the name "bfloat16")
import numpy as np

from rune_jit import _core
from rune_jit._core import instruction_kinds, node_kinds
from rune_jit.backends import calibration

__all__ = [
    "Builder",
    "Kernel",
    "Program",
    "Value",
    "instruction_kinds",
    "node_kinds",
    "parse",
    "scalar",
]


def parse(text: str) -> Any:
    """Reads a graph from its text. str() of the graph is the text again.

    Args:
        text: the text of a graph.

    Returns:
        The graph.

    Raises:
        ParseError: if the text does not parse. It has the line and the column.
        ValueError: if the graph is not valid. It lists all violations.

    Examples:
        >>> from rune_jit import ir
        >>> print(ir.parse("graph { %0 = placeholder index=0 : f32[2] return %0 }"), end="")
        graph {
          %0 = placeholder index=0 : f32[2]
          return %0
        }
    """
    graph = _core.parse_graph(text)
    violations = graph.verify()
    if violations:
        raise ValueError("parse: the graph is not valid:\n  " + "\n  ".join(violations))
    return graph


_DTYPE_TEXT = {"bool": "bool", "bfloat16": "bf16"}


def _dtype_text(dtype: Any) -> str:
    dtype = np.dtype(dtype)
    if dtype.name in _DTYPE_TEXT:
        return _DTYPE_TEXT[dtype.name]
    return f"{dtype.kind}{8 * dtype.itemsize}"


def scalar(value: Any, dtype: Any) -> str:
    """The text of a constant in an attribute.

    Args:
        value: a number.
        dtype: the constant's dtype.

    Returns:
        The text, with the name of the dtype.

    Examples:
        >>> import numpy as np
        >>> from rune_jit import ir
        >>> ir.scalar(1.5, np.float32)
        'f32(1.5)'
    """
    dtype = np.dtype(dtype)
    name = _dtype_text(dtype)
    if name == "bool":
        return f"bool({str(bool(value)).lower()})"
    if name[0] in "iu":
        return f"{name}({int(value)})"
    return f"{name}({float(value)!r})"


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
    if isinstance(value, dict):
        return "{" + " ".join(f"{k}={_attribute(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ",".join(_attribute(v) for v in value) + ")"
    if isinstance(value, Sequence):
        return "[" + ",".join(_attribute(v) for v in value) + "]"
    return str(value)


class Value:
    """A node of a graph under construction."""

    def __init__(self, number: int, dtype: Any, shape: tuple[int, ...]) -> None:
        self.number, self.dtype, self.shape = number, dtype, shape

    def __repr__(self) -> str:
        return f"%{self.number}: {self.dtype}{list(self.shape)}"


class Builder:
    """A graph under construction. Dtypes and shapes are inferred."""

    def __init__(self) -> None:
        self._core = _core.NodeBuilder()
        self._inputs = 0
        #: The functions that the graph calls on the host, by number. Pass them to `Program`.
        self.functions: list[tuple[str, Callable[..., Sequence[Any]]]] = []

    def node(
        self,
        kind: str,
        *parts: Any,
        declared: tuple[Any, Sequence[int]] | None = None,
        **attributes: Any,
    ) -> Value:
        """Appends a node.

        Args:
            kind: one of `node_kinds()`.
            *parts: Values are the operands, in order. Strings and dicts are attributes that the
                text writes without a name: `"add"`, `scalar(1, np.int8)`.
            declared: dtype and shape of a custom or host_callback, which are not inferred.
            **attributes: the attributes that the text writes with a name, in the order of the text:
                numbers, strings, lists, tuples for pairs, dicts for structs.

        Returns:
            The node's Value.
        """
        operation = [kind]
        for part in parts:
            if not isinstance(part, Value):
                operation.append(part if isinstance(part, str) else _attribute(part))
        operation += [f"{key}={_attribute(value)}" for key, value in attributes.items()]
        operands = [part.number for part in parts if isinstance(part, Value)]
        return self._add(" ".join(operation), operands, *(declared or (None, ())))

    def placeholder(self, dtype: Any, shape: Sequence[int]) -> Value:
        """Appends the next argument of the program."""
        self._inputs += 1
        return self._add(f"placeholder index={self._inputs - 1}", [], dtype, shape)

    def buffer(self, dtype: Any, shape: Sequence[int], device: str = "") -> Value:
        """Appends an array with undefined elements, as the target of an `assign`."""
        size = int(np.prod(shape, dtype=np.int64))
        operation = f"buffer size={size} device={_attribute(device)}"
        return self._add(operation, [], dtype, shape)

    def constant(self, value: Any, dtype: Any) -> Value:
        """Appends a number, as a 0-d array."""
        if np.dtype(dtype).kind == "c":
            parts = np.asarray(value, dtype)
            return self.node(
                "complex",
                *(self.constant(part, part.dtype) for part in (parts.real, parts.imag)),
            )
        return self.node("const_scalar", scalar(value, dtype))

    def vconst(self, values: Sequence[Any], dtype: Any) -> Value:
        return self.node("vconst", "[" + ",".join(scalar(v, dtype) for v in values) + "]")

    def custom(
        self,
        name: str,
        *operands: Value,
        dtype: Any,
        reference: Callable[..., Any] | None = None,
        **sources: str,
    ) -> Value:
        """Appends an elementwise operation of your own.

        Args:
            name: its name in texts.
            *operands: Values of one shape.
            dtype: of the result.
            reference: computes the operation on the host, for the interpreter and for targets
                without a source. It gets read-only NumPy arrays of the operands' shape and returns
                an array of this shape and of `dtype`; otherwise the program raises ValueError when
                it runs. It is one of `functions`.
            **sources: an expression for each target: `metal`, `cuda`, `c` for any C-like language,
                `cpu` for one instruction of LLVM IR without `%name =`. $0 $1 ... stand for the
                operands, $T for the result's type, $T0 $T1 ... for the operands' types, and $M for
                the type as LLVM's intrinsics name it.

        Returns:
            The operation's Value.
        """
        attributes: dict[str, Any] = dict(sources)
        if reference is not None:
            attributes["reference"] = len(self.functions)
            self.functions.append((name, lambda *arrays: [reference(*arrays)]))
        pairs = ",".join(f"{_attribute(k)}={_attribute(v)}" for k, v in attributes.items())
        operation = f"custom {_attribute(name)} attributes=[{pairs}]"
        return self._add(operation, [v.number for v in operands], dtype, operands[0].shape)

    def host_callback(
        self,
        name: str,
        function: Callable[..., Sequence[Any]],
        *operands: Value,
        results: Sequence[tuple[Any, Sequence[int]]],
    ) -> list[Value]:
        """Appends a call to a Python function, which happens on the host when the program runs.

        Args:
            name: its name in texts.
            function: it gets read-only NumPy arrays and returns a sequence of arrays. It is one of
                `functions`.
            *operands: the Values that it gets.
            results: dtype and shape of each result. The program raises ValueError if the function
                returns others.

        Returns:
            The Value of each result.
        """
        call = len(self.functions)
        self.functions.append((name, function))
        return [
            self.node(
                "host_callback", _attribute(name), *operands, call=call, result=i, declared=result
            )
            for i, result in enumerate(results)
        ]

    def size(self, name: str, low: int, high: int) -> tuple[Value, Any]:
        """Appends a size from `low` to `high` that is known when the program runs.

        Returns:
            Its Value, a 0-d int64, and an object that represents it in shapes.
        """
        value = self.node("define_var", {"name": name, "min": low, "max": high})
        return value, self._core.size(value.number)

    def _add(self, operation: str, operands: list[int], dtype: Any, shape: Sequence[int]) -> Value:
        number = self._core.add(operation, operands, dtype, list(shape))
        return Value(number, *self._core.type_of(number))

    def finish(self, *outputs: Value) -> Any:
        """The graph that returns these values."""
        return self._core.finish([v.number for v in outputs])


class Program:
    """A graph that is compiled for a device.

    Args:
        graph: a graph from `parse` or `Builder.finish`, or its text.
        device: the name of the device. Default: the default device of this machine.
        functions: (name, callable) for each host_callback and each reference of a custom, in order:
            `Builder.functions`. A callable takes read-only arrays and returns a sequence of all
            results.

    Examples:
        >>> import numpy as np
        >>> from rune_jit import ir
        >>> b = ir.Builder()
        >>> x = b.placeholder(np.float32, (2, 3))
        >>> graph = b.finish(b.node("reduce_axis", "add", x, axes=[1]))
        >>> ir.Program(graph).run(np.ones((2, 3), np.float32))
        [array([[3.],
               [3.]], dtype=float32)]
    """

    def __init__(
        self,
        graph: Any,
        device: str | None = None,
        functions: Sequence[tuple[str, Callable[..., Sequence[Any]]]] = (),
    ) -> None:
        self.graph = parse(graph) if isinstance(graph, str) else graph
        self.device = _core.default_device() if device is None else device
        #: The program at each stage; see rune_jit.Lowered.
        calibration.ensure()
        self.lowered = _core.lower(self.graph, self.device, functions=functions)
        self._executable: Any = None

    def run(self, *arrays: Any, **values: int) -> list[Any]:
        """Runs the program.

        Args:
            *arrays: one for each argument, of exactly its dtype and shape. A symbolic size may be
                any size within its bounds. The program does not write to them.
            **values: the values of symbolic variables that are the size of no argument.

        Returns:
            The outputs, as NumPy arrays.

        Raises:
            TypeError: if an array has another dtype or shape.
            ValueError: if a variable has no value, two values, or one that is out of bounds.
        """
        if self._executable is None:
            self._executable = self.lowered.compile()
        return self._executable.run(arrays, values)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Program for {self.device}: {len(self.graph)} nodes>"


class Kernel:
    """One kernel of the Lowered IR that is compiled for a device.

    Args:
        text: its text.
        device: the name of the device. Default: the default device of this machine.

    Raises:
        ParseError: if the text does not parse. It has the line and the column.
        ValueError: if the kernel is not valid.
        UnsupportedOpError: if the device lacks an instruction.
    """

    def __init__(self, text: str, device: str | None = None) -> None:
        self.device = _core.default_device() if device is None else device
        self._executable = _core.compile_kernel(text, self.device)

    def run(self, *memories: Any, **values: int) -> list[Any]:
        """Runs the kernel.

        Args:
            *memories: a 1-d array for each memory of the kernel (`define_global`).
            **values: the values of its variables.

        Returns:
            The contents of the writable memories afterwards, as new arrays.

        Raises:
            TypeError: if an array has another dtype or shape.
            ValueError: if a variable has no value, two values, or one that is out of bounds.
        """
        return self._executable.run(memories, values)
