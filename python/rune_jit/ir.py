"""Graphs written by hand: any node of the high-level IR, run on any device.

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
    """The graph that a text describes; str() of it is a text again.

    Raises:
        ParseError: for text that does not parse, with line and column.
        ValueError: for a graph that is not valid; it lists all violations.

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
    """A constant as attributes hold it.

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
    """A graph under construction; types are inferred."""

    def __init__(self) -> None:
        self._core = _core.NodeBuilder()
        self._inputs = 0
        #: What the graph calls on the host, by number: for `Program`.
        self.functions: list[tuple[str, Callable[..., Sequence[Any]]]] = []

    def node(
        self,
        kind: str,
        *parts: Any,
        declared: tuple[Any, Sequence[int]] | None = None,
        **attributes: Any,
    ) -> Value:
        """Appends a node. Values among `parts` are its operands, in order; strings and dicts are
        attributes that the text writes bare (`"add"`, `scalar(1, np.int8)`); keyword arguments are
        the others, in the order of the text: numbers, strings, lists, tuples for pairs, dicts for
        structs. `declared` is the dtype and shape of a custom or host_callback, which are not
        inferred."""
        operation = [kind]
        for part in parts:
            if not isinstance(part, Value):
                operation.append(part if isinstance(part, str) else _attribute(part))
        operation += [f"{key}={_attribute(value)}" for key, value in attributes.items()]
        operands = [part.number for part in parts if isinstance(part, Value)]
        return self._add(" ".join(operation), operands, *(declared or (None, ())))

    def placeholder(self, dtype: Any, shape: Sequence[int]) -> Value:
        """The next argument of the program."""
        self._inputs += 1
        return self._add(f"placeholder index={self._inputs - 1}", [], dtype, shape)

    def buffer(self, dtype: Any, shape: Sequence[int], device: str = "") -> Value:
        """Memory of undefined contents, to assign to."""
        size = int(np.prod(shape, dtype=np.int64))
        operation = f"buffer size={size} device={_attribute(device)}"
        return self._add(operation, [], dtype, shape)

    def constant(self, value: Any, dtype: Any) -> Value:
        """A number as an array of no dimensions."""
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
        """An operation of the user's, element by element on operands of one shape. A source is an
        expression, one by target (`metal`, `cuda`, or `c` for any C-like language; `cpu`: one
        instruction of LLVM IR without `%name =`); $0 $1 ... are the operands, $T is the result's
        type and $T0 $T1 ... are theirs, $M the type as LLVM's intrinsics name it.

        `reference` computes it where there is no source for the target, and on the interpreter: on
        the host, from read-only NumPy arrays of the operands' shape an array of that shape and of
        `dtype` (ValueError when the program runs, if it is another). It is one of `functions`."""
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
        """A call to a function of the host when the program runs: on read-only NumPy arrays, it
        returns a sequence of arrays of the (dtype, shape) in `results` (ValueError when the program
        runs, if they are others). It is one of `functions`."""
        call = len(self.functions)
        self.functions.append((name, function))
        return [
            self.node(
                "host_callback", _attribute(name), *operands, call=call, result=i, declared=result
            )
            for i, result in enumerate(results)
        ]

    def size(self, name: str, low: int, high: int) -> tuple[Value, Any]:
        """A size from `low` to `high`, elements, that is known when the program runs: its value, a
        0-d int64, and what stands for it in shapes (its name, in texts)."""
        value = self.node("define_var", {"name": name, "min": low, "max": high})
        return value, self._core.size(value.number)

    def _add(self, operation: str, operands: list[int], dtype: Any, shape: Sequence[int]) -> Value:
        number = self._core.add(operation, operands, dtype, list(shape))
        return Value(number, *self._core.type_of(number))

    def finish(self, *outputs: Value) -> Any:
        """The graph that returns these values."""
        return self._core.finish([v.number for v in outputs])


class Program:
    """A graph, or its text, compiled for a device.

    Args:
        graph: from `parse` or `Builder.finish`, or a text.
        device: default: the first that this machine has.
        functions: a (name, callable) for each call of a host_callback or of a custom's reference,
            in order. The callable takes read-only arrays and returns a sequence of all results.

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
            *arrays: one for each argument, of exactly its dtype and shape (but any size within
                bounds where that is symbolic). They are not written to.
            **values: of the symbolic variables that are no argument's size.

        Returns:
            The outputs, as NumPy arrays.

        Raises:
            TypeError: for another argument.
            ValueError: for a variable without a value, with two, or out of bounds.
        """
        if self._executable is None:
            self._executable = self.lowered.compile()
        return self._executable.run(arrays, values)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Program for {self.device}: {len(self.graph)} nodes>"


class Kernel:
    """One kernel of the Lowered IR, from its text, compiled for a device.

    Raises:
        ParseError: for text that does not parse, with line and column.
        ValueError: for a kernel that is not valid.
        UnsupportedOpError: for an instruction that the device lacks.
    """

    def __init__(self, text: str, device: str | None = None) -> None:
        self.device = _core.default_device() if device is None else device
        self._executable = _core.compile_kernel(text, self.device)

    def run(self, *memories: Any, **values: int) -> list[Any]:
        """Runs the kernel on one 1-d array for each of its memories (`define_global`), and values
        of its variables.

        Returns:
            What the writable memories hold afterwards, as new arrays. It raises what `Program.run`
            raises.
        """
        return self._executable.run(memories, values)
