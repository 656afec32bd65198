"""
The compiler core of rune_jit.
"""

from __future__ import annotations
import collections.abc
import numpy
import typing
import typing_extensions

__all__: list[str] = [
    "ArrayBase",
    "CallKey",
    "CompiledCall",
    "DeviceMemory",
    "Dispatcher",
    "Executable",
    "Graph",
    "GraphBuilder",
    "KnownSegments",
    "LastUse",
    "Lowered",
    "MOST_NUMBERS",
    "NodeBuilder",
    "Plan",
    "Segment",
    "SegmentSizes",
    "Shortcut",
    "Size",
    "StorageBase",
    "TracerBase",
    "Value",
    "address_of",
    "alu_ops",
    "begin_profile",
    "broken_guards",
    "built_in_cpu_figures",
    "calibration_options",
    "call_side_by_side",
    "check",
    "compile_cuda",
    "compile_kernel",
    "contains_traced",
    "contains_tracer",
    "count_numbers",
    "cpu_figures",
    "current_trace",
    "cut",
    "default_device",
    "describe_cuda",
    "describe_options",
    "dlpack_device",
    "dtypes",
    "end_profile",
    "export_dlpack",
    "has_dtype",
    "has_host_memory",
    "has_made_arrays",
    "has_ufunc",
    "import_dlpack",
    "instruction_kinds",
    "interpret",
    "is_disabled",
    "is_on_numpy",
    "is_profiling",
    "is_supported_dtype",
    "lower",
    "make_array",
    "mark_stored",
    "measure_cpu",
    "next_serial",
    "node_kinds",
    "numpy_began",
    "numpy_ended",
    "or_numpy",
    "order_of",
    "order_streams",
    "parse_graph",
    "profile_clock_ns",
    "release_memory",
    "render_llvm",
    "render_msl",
    "reprint",
    "require_trace",
    "resume_traces",
    "set_array_class",
    "set_compile_hook",
    "set_cpu_figures",
    "set_cuda_module",
    "set_own_folders",
    "set_tracer_types",
    "shorten_astype",
    "shorten_functions",
    "shorten_getitem",
    "shorten_in_place",
    "shorten_method",
    "shorten_operand",
    "shorten_operator",
    "shorten_reduction",
    "shorten_setitem",
    "shorten_stand_in",
    "shorten_ufuncs",
    "shorten_value_in",
    "static_leaves",
    "stream_of",
    "stream_of_device",
    "suspend_traces",
    "synchronize",
    "targets",
    "to_host",
    "trace_began",
    "trace_ended",
    "tracers_in",
    "user_frame",
    "user_line",
    "user_site",
    "watch_events",
    "write_array",
]

class Value:
    """
    A value of a graph.
    """

class Graph:
    """
    A high-level graph.
    """

    __hash__: typing.ClassVar[None] = None
    def __eq__(self, arg0: Graph) -> bool: ...
    def __len__(self) -> int: ...
    def __str__(self) -> str: ...
    def lines(self) -> list[tuple[str, int]]:
        """
        The user's lines that made its nodes, as (line, number of nodes).
        """
    def verify(self) -> list[str]:
        """
        Every violation of the IR's invariants, as text; empty if the graph is valid.
        """
    @property
    def output_dtypes(self) -> list:
        """
        Of the outputs, in order.
        """

class GraphBuilder:
    """
    A graph under construction; its methods are NumPy's functions.
    """
    def __init__(
        self,
        counts_uses: bool = False,
        most: typing.SupportsInt | typing.SupportsIndex | None = None,
    ) -> None:
        """
        `most` is the most nodes that it may have. KnownSegments needs `counts_uses`.
        """
    def __len__(self) -> int: ...
    def assume(self, holds: typing.Any) -> None:
        """
        Assumes that a 0-d bool is true. The program checks that.
        """
    def assume_nonzero(self, x: typing.Any) -> None:
        """
        Assumes that a Python number is not 0. The program checks that.
        """
    def assume_range(self, arg0: typing.Any, arg1: typing.Any, arg2: typing.Any) -> None: ...
    def assume_small(self, x: typing.Any) -> typing.Any:
        """
        A Python integer. Its magnitude is assumed to be at most 2^31.
        """
    def astype(self, arg0: typing.Any, arg1: typing.Any) -> typing.Any: ...
    def begin_condition(self) -> None:
        """
        Begins a condition: values that are traced until it ends are used only where it holds.
        """
    def begin_loop(
        self,
        low: typing.SupportsInt | typing.SupportsIndex,
        high: typing.SupportsInt | typing.SupportsIndex,
    ) -> typing.Any:
        """
        Begins a loop and returns its counter: a Size whose values are between `low` and `high`, which must differ.
        """
    def bind_bound(self, value: typing.Any) -> typing.Any:
        """
        The bound of a range, as a Size in the body of the innermost loop.
        """
    def bind_number(
        self,
        value: typing.Any,
        low: typing.SupportsInt | typing.SupportsIndex,
        high: typing.SupportsInt | typing.SupportsIndex,
    ) -> typing.Any:
        """
        A number that is known to lie within bounds, as a Size in the body of the innermost loop.
        """
    def bind_position(
        self,
        at: typing.Any,
        axis: typing.SupportsInt | typing.SupportsIndex,
        size: typing.SupportsInt | typing.SupportsIndex,
    ) -> typing.Any:
        """
        The position x[at] along an axis, as a Size in the body of the innermost loop. If the axis has no such position, the call raises IndexError, which names the axis `axis`.
        """
    def bind_slice(
        self, start: typing.Any, stop: typing.Any, size: typing.SupportsInt | typing.SupportsIndex
    ) -> tuple:
        """
        The first position and the number of the elements x[start:stop] along an axis, as Sizes in the body of the innermost loop.
        """
    def bitcast(self, arg0: typing.Any, arg1: typing.Any) -> typing.Any: ...
    def broadcast_to(self, arg0: typing.Any, arg1: collections.abc.Sequence) -> typing.Any: ...
    def carry(
        self,
        counter: typing.Any,
        index: typing.SupportsInt | typing.SupportsIndex,
        value: typing.Any,
    ) -> typing.Any:
        """
        Carried value number `index` of the loop, at the start of an iteration. `value` is its initial value.
        """
    def check_integers(self, lines_of_loops: collections.abc.Set[str]) -> None:
        """
        Makes the program check that Python integers fit 64 bits, in loops at these lines.
        """
    def clip(self, arg0: typing.Any, arg1: typing.Any, arg2: typing.Any) -> typing.Any: ...
    def complex(self, arg0: typing.Any, arg1: typing.Any) -> typing.Any: ...
    def concatenate(
        self,
        arg0: collections.abc.Sequence,
        arg1: typing.SupportsInt | typing.SupportsIndex | None,
        arg2: typing.Any,
    ) -> typing.Any: ...
    def constant(self, x: typing.Any) -> typing.Any:
        """
        The value of a NumPy scalar.
        """
    def constant_difference(self, a: typing.Any, b: typing.Any) -> typing.Any:
        """
        b - a, if both are the same integer plus constants; otherwise None.
        """
    def contract(
        self, arg0: str, arg1: typing.Any, arg2: str, arg3: typing.Any, arg4: str, arg5: str
    ) -> typing.Any: ...
    def define_size(
        self,
        name: str,
        low: typing.SupportsInt | typing.SupportsIndex,
        high: typing.SupportsInt | typing.SupportsIndex,
    ) -> typing.Any:
        """
        A size that is known when the program runs.
        """
    def depends_on_arguments(self, value: typing.Any) -> bool:
        """
        Whether a value is computed from an argument of the program.
        """
    def depends_on_carried(self, counter: typing.Any, value: typing.Any) -> bool:
        """
        Whether a value may depend on the carried values of an open loop.
        """
    def depends_on_counter(self, counter: typing.Any, value: typing.Any) -> bool:
        """
        Whether a value may differ from iteration to iteration of an open loop.
        """
    def diagonal(
        self,
        arg0: typing.Any,
        arg1: typing.SupportsInt | typing.SupportsIndex,
        arg2: typing.SupportsInt | typing.SupportsIndex,
        arg3: typing.SupportsInt | typing.SupportsIndex,
    ) -> typing.Any: ...
    def end_condition(self, holds: typing.Any) -> None:
        """
        Ends the innermost condition, which is a 0-d bool.
        """
    def end_loop(
        self,
        counter: typing.Any,
        start: typing.Any,
        stop: typing.Any,
        step: typing.SupportsInt | typing.SupportsIndex,
        values: collections.abc.Sequence,
        initial: collections.abc.Sequence,
        goes_on: typing.SupportsInt | typing.SupportsIndex | None = None,
        keeps_checks: bool = True,
    ) -> list[typing.Any]:
        """
        Ends the loop whose counter has the values of range(start, stop, step). `values` are the carried values, by index, at the end of an iteration. Returns their values after the last iteration, or the initial values if there is none. If `goes_on` is given, value number `goes_on` is a 0-d bool, and the loop ends before an iteration if it is false. Raises ValueError if a shape changes, TypeError if a dtype does. With `keeps_checks`, the checks in the body are kept.
        """
    def expand_dims(
        self,
        arg0: typing.Any,
        arg1: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    ) -> typing.Any: ...
    def find_unbounded(self, carries: collections.abc.Sequence[typing.Any]) -> typing.Any:
        """
        The position, among these Python integers that loops carry, of one that may exceed 64 bits, and the lines whose results may be the first to do so. The position is the number of integers if another integer may exceed them. None if no integer may.
        """
    def finish(self, arg0: collections.abc.Sequence[typing.Any]) -> Graph:
        """
        The graph so far with these outputs.
        """
    def full(
        self, arg0: collections.abc.Sequence, arg1: typing.Any, arg2: typing.Any
    ) -> typing.Any: ...
    def give_up_loop(self) -> None:
        """
        Ends the innermost loop without a result: nobody uses its values.
        """
    def holds_at(
        self,
        counter: typing.Any,
        x: typing.Any,
        start: typing.SupportsInt | typing.SupportsIndex,
        count: typing.SupportsInt | typing.SupportsIndex,
        step: typing.SupportsInt | typing.SupportsIndex,
    ) -> list[bool] | None:
        """
        Whether a 0-d bool is true in each of the iterations in which the counter is start, start + step, and so on. None if it depends on anything but the counter.
        """
    def host_callback(
        self,
        name: str,
        call: typing.SupportsInt | typing.SupportsIndex,
        operands: collections.abc.Sequence,
        results: collections.abc.Sequence,
        may_raise: bool,
        rows: typing.SupportsInt | typing.SupportsIndex | None = None,
    ) -> list[typing.Any]:
        """
        The results, with these dtypes and shapes, of call number `call` to a function of the host. A function that may raise is called even if its results are not used. `rows` is the number of first axes of operand 0 and of the results whose points the function treats one by one.
        """
    def imag(self, arg0: typing.Any) -> typing.Any: ...
    def index(self, arg0: typing.Any, arg1: collections.abc.Sequence) -> typing.Any: ...
    def indexed_shape(self, arg0: typing.Any, arg1: collections.abc.Sequence) -> tuple: ...
    def input(
        self, dtype: typing.Any, shape: collections.abc.Sequence, weak: typing.Any = None
    ) -> typing.Any: ...
    def inputs_behind(self, value: typing.Any) -> list[int] | None:
        """
        The numbers of the inputs from which a value is computed. None if it depends on a dynamic size.
        """
    def iota(self, shape: collections.abc.Sequence, dtype: typing.Any) -> typing.Any: ...
    def is_known_to_fit(self, value: typing.Any, dtype: typing.Any) -> bool:
        """
        Whether a dtype of integers is known to hold each element of a traced value of integers.
        """
    def is_python(self, value: typing.Any) -> typing.Any:
        """
        Whether a number is Python's, as a 0-d bool.
        """
    def largest_operation(self, counter: typing.Any) -> bool:
        """
        The number of operations of the largest node that has been made since the loop began.
        """
    def mark_unsure(self, value: typing.Any, kind: typing.Any, is_python: typing.Any) -> None:
        """
        Notes that a 0-d value stands for a Python number of this kind where a 0-d bool is true.
        """
    def matmul(self, arg0: typing.Any, arg1: typing.Any) -> typing.Any: ...
    def may_be_zero(self, value: typing.Any) -> bool:
        """
        Whether an integer may be 0.
        """
    def operator(self, arg0: str, arg1: collections.abc.Sequence) -> typing.Any: ...
    def pad(self, arg0: typing.Any, arg1: collections.abc.Sequence) -> typing.Any: ...
    def put(
        self, arg0: typing.Any, arg1: collections.abc.Sequence, arg2: typing.Any
    ) -> typing.Any: ...
    def python_bool(self, arg0: typing.Any) -> typing.Any:
        """
        A 0-d bool as a Python bool.
        """
    def python_number(self, value: typing.Any, to_int: bool) -> typing.Any:
        """
        int() or float() of a 0-d value. int() of a 64-bit value assumes that its magnitude is at most 2^31.
        """
    def raise_if(
        self, raises: typing.Any, number: typing.SupportsInt | typing.SupportsIndex
    ) -> None:
        """
        Notes that the function raises an exception if a 0-d bool is true. Python then runs the call. `checks` returns the number.
        """
    def real(self, arg0: typing.Any) -> typing.Any: ...
    def reduce(
        self,
        name: str,
        x: typing.Any,
        axes: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None,
        keepdims: bool,
        dtype: typing.Any = None,
    ) -> typing.Any: ...
    def reshape(self, arg0: typing.Any, arg1: collections.abc.Sequence) -> typing.Any: ...
    def result_type(self, arg0: collections.abc.Sequence) -> numpy.dtype[typing.Any]: ...
    def same(self, arg0: typing.Any, arg1: typing.Any) -> bool: ...
    def scan(
        self, op: str, x: typing.Any, axis: typing.SupportsInt | typing.SupportsIndex
    ) -> typing.Any:
        """
        For each element, the reduction (add, prod, max, min) of the elements up to and including it along an axis >= 0.
        """
    def scatter(
        self, arg0: typing.Any, arg1: collections.abc.Sequence, arg2: typing.Any, arg3: str
    ) -> typing.Any: ...
    def select(self, condition: typing.Any, a: typing.Any, b: typing.Any) -> typing.Any:
        """
        a or b, which have the same type. Python's numbers stay Python's.
        """
    def size_value(self, size: typing.Any) -> typing.Any:
        """
        A size as a Python int in computations.
        """
    def squeeze(
        self,
        arg0: typing.Any,
        arg1: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None,
    ) -> typing.Any: ...
    def stack(
        self, arg0: collections.abc.Sequence, arg1: typing.SupportsInt | typing.SupportsIndex
    ) -> typing.Any: ...
    def take(
        self,
        x: typing.Any,
        indices: typing.Any,
        axis: typing.SupportsInt | typing.SupportsIndex | None,
        reported: typing.SupportsInt | typing.SupportsIndex | None = None,
    ) -> typing.Any:
        """
        An error names the axis `reported`, if it is given.
        """
    def take_checks(self) -> list:
        """
        Returns `checks` and removes them.
        """
    def threefry(self, arg0: typing.Any, arg1: typing.Any) -> typing.Any: ...
    def transpose(
        self,
        arg0: typing.Any,
        arg1: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex] | None,
    ) -> typing.Any: ...
    def ufunc(
        self, name: str, operands: collections.abc.Sequence, dtype: typing.Any = None
    ) -> list[typing.Any]: ...
    def unsure_kind(self, value: typing.Any) -> str | None:
        """
        The kind of Python number that a value may stand for, or None.
        """
    def value(self, arg0: typing.Any) -> typing.Any: ...
    def where(self, arg0: typing.Any, arg1: typing.Any, arg2: typing.Any) -> typing.Any: ...
    def windows(
        self,
        arg0: typing.Any,
        arg1: typing.SupportsInt | typing.SupportsIndex,
        arg2: typing.SupportsInt | typing.SupportsIndex,
    ) -> typing.Any: ...
    def with_id(self, id: typing.SupportsInt | typing.SupportsIndex) -> typing.Any:
        """
        The value with this id.
        """
    @property
    def checks(self) -> list:
        """
        (value, axis, size) of each check of traced indices. The value is a 0-d uint64, which is not 0 if an index is out of bounds.
        """
    @property
    def guards(self) -> list:
        """
        (input, dtype) for a Python int that must fit the dtype, (input, None) for a number that must not be zero.
        """
    @property
    def has_checked_integers(self) -> bool: ...
    @property
    def has_checks(self) -> bool: ...
    @property
    def is_full(self) -> bool:
        """
        Whether it has more nodes than it may have.
        """
    @property
    def must_pay(self) -> bool:
        """
        Whether it may have many nodes only if NumPy's time for them is worth compiling them.
        """
    @must_pay.setter
    def must_pay(self, arg1: bool) -> None: ...
    @property
    def pays(self) -> bool:
        """
        Whether the graph still has few enough nodes for NumPy's time.
        """
    @property
    def quiet_until(self) -> int:
        """
        after_operation is not called until it has more nodes than this, or a check.
        """
    @quiet_until.setter
    def quiet_until(self, arg0: typing.SupportsInt | typing.SupportsIndex) -> None: ...

class ArrayBase:
    @staticmethod
    def __new__(type, *args, **kwargs):
        """
        Create and return a new object.  See help(type) for accurate signature.
        """

class DeviceMemory:
    """
    Elements in C order, in memory that only a device can address.
    """
    def __init__(
        self, array: numpy.ndarray[typing.Any, numpy.dtype[typing.Any]], device: str
    ) -> None: ...
    def copy(self) -> DeviceMemory: ...
    def copy_to(self, device: str) -> DeviceMemory | None:
        """
        Copies the memory to another device directly. None if that is impossible.
        """
    def verify(self) -> None:
        """
        Waits for the device. Raises the error of a failed check of the programs that computed the elements.
        """
    @property
    def dtype(self) -> numpy.dtype[typing.Any]: ...
    @property
    def shape(self) -> tuple: ...

class Executable:
    """
    A compiled program.
    """
    def run(
        self,
        arguments: collections.abc.Sequence,
        values: collections.abc.Mapping[str, typing.SupportsInt | typing.SupportsIndex] = {},
    ) -> list[typing.Any]:
        """
        Runs on arrays (or numbers, for 0-d inputs) of the compiled types. Returns a list of results. `values` has the symbolic variables that are not sizes of arguments, by name.
        """
    def run_alone(self, arguments: collections.abc.Sequence[typing.Any]) -> list[typing.Any]:
        """
        As `run`, but only on the calling thread. All results are arrays, even those of 0 dimensions.
        """

class SegmentSizes:
    """
    The sizes of segments of one pattern, some of them symbolic.
    """
    def values_for(
        self, of_segment: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]
    ) -> dict[str, int] | None:
        """
        The values of the symbolic sizes, by name, for a segment of these sizes. None if they do not fit the segment.
        """

class Segment:
    """
    A part of a graph under construction that runs before the rest.
    """
    def __len__(self) -> int: ...
    def constant(
        self, i: typing.SupportsInt | typing.SupportsIndex
    ) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
        """
        A constant as a 0-d array.
        """
    def graph(
        self,
        arguments: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        sizes: SegmentSizes = None,
    ) -> Graph:
        """
        The graph of the segment. Its arguments are the inputs, followed by the constants at these positions.
        """
    def symbolic_sizes(
        self,
        seen: collections.abc.Sequence[
            collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]
        ],
    ) -> SegmentSizes:
        """
        The SegmentSizes for segments of this pattern, from the sizes of the segments seen so far. This is the last of them. Raises an error that names a size which cannot be symbolic.
        """
    @property
    def compile_ns(self) -> float:
        """
        A rough estimate of the time that compiling it takes.
        """
    @property
    def constants(self) -> bytes:
        """
        The constants, 16 bytes each.
        """
    @property
    def held(self) -> list[int]: ...
    @property
    def inputs(self) -> list[int]: ...
    @property
    def numpy_ns(self) -> float:
        """
        An estimate of NumPy's time for it.
        """
    @property
    def outputs(self) -> list[int]: ...
    @property
    def pattern(self) -> str:
        """
        Segments of the same pattern differ only in sizes and constants.
        """
    @property
    def sizes(self) -> tuple:
        """
        All sizes in the segment.
        """
    @property
    def stored(self) -> float:
        """
        The number of elements that it stores. (NumPy may write a part of them only.)
        """

class KnownSegments:
    """
    The compiled programs of segments whose sizes are known.
    """
    def __init__(self) -> None: ...
    def add(
        self,
        segment: Segment,
        program: Executable,
        arguments: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    ) -> None:
        """
        Adds the Executable of a segment. The constants at these positions are arguments of it. It replaces an Executable for the same pattern and sizes.
        """
    def run(
        self, builder: GraphBuilder, wanted: collections.abc.Sequence[typing.Any], in_memory: dict
    ) -> typing.Any:
        """
        Cuts the Segment that computes these values and the values from which all Values that Python holds are read. The keys of `in_memory` are the ids of values that are in memory. If the Segment's program is known, runs it and returns a list of the wanted values' elements; `in_memory` then has the values that later segments may read. Otherwise returns the Segment. The builder must have been made with counts_uses.
        """
    @property
    def numpy_ns(self) -> float:
        """
        An estimate of NumPy's time for all segments that have run.
        """

class CallKey:
    def __eq__(self, arg0: CallKey) -> bool: ...
    def __hash__(self) -> int: ...

class LastUse:
    def __init__(self) -> None: ...
    def is_now(self) -> None: ...
    @property
    def tick(self) -> int:
        """
        The time of its last use, by the clock of CompiledCall.
        """

class CompiledCall:
    def __init__(
        self,
        program: Executable,
        input_leaves: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        captured: collections.abc.Sequence[typing.Any],
        outputs: collections.abc.Sequence[tuple],
        unflatten: typing.Any,
        leaf_guards: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, typing.Any]
        ],
        guards: collections.abc.Sequence,
        writes: collections.abc.Sequence[
            tuple[
                typing.SupportsInt | typing.SupportsIndex, typing.SupportsInt | typing.SupportsIndex
            ]
        ],
        contiguous: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        transposed_inputs: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, tuple]
        ],
        transposed_results: collections.abc.Sequence[
            tuple[typing.SupportsInt | typing.SupportsIndex, tuple]
        ],
        checks: collections.abc.Sequence[tuple],
        device: typing.Any,
    ) -> None: ...
    def broken(self) -> list:
        """
        (kind, holder, name, expected) of each guard that does not hold, and ("array", array, number, None) of each captured array whose type has changed.
        """
    def call(self, arg0: list) -> tuple[str, typing.Any]: ...
    def is_current(self) -> bool: ...
    @property
    def last_used(self) -> int: ...

class Dispatcher:
    @staticmethod
    def __new__(type, *args, **kwargs):
        """
        Create and return a new object.  See help(type) for accurate signature.
        """
    def __call__(self, *args, **kwargs):
        """
        Call self as a function.
        """
    def _forget(self) -> None:
        """
        Forgets every registered call.
        """
    def _key(self, arg0: tuple, arg1: dict) -> CallKey:
        """
        Makes the CallKey of arguments that the signature takes. Raises the errors of their hashes.
        """
    def _keyed(self, arg0: tuple, arg1: dict) -> tuple[CallKey, list]:
        """
        The CallKey, as _key makes it, and the leaves of the arguments.
        """
    def _note_look(self, arg0: bool) -> None:
        """
        Notes whether a call whose key was made runs on NumPy. After many such calls in a row, the function itself runs some calls without making their keys.
        """
    def _remember(
        self,
        arg0: tuple,
        arg1: dict,
        arg2: list,
        arg3: collections.abc.Sequence[CompiledCall],
        arg4: collections.abc.Sequence,
        arg5: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
    ) -> bool:
        """
        Registers the compiled calls for such arguments. Each of them checks whether it is for a call's data. False if the arguments cannot be keyed here.
        """
    def _remember_on_numpy(
        self,
        arg0: tuple,
        arg1: dict,
        arg2: list,
        arg3: collections.abc.Sequence,
        arg4: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        arg5: LastUse,
        arg6: typing.SupportsInt | typing.SupportsIndex,
    ) -> bool:
        """
        Registers that the function itself runs the next `calls` calls with such arguments, until its code changes. The arguments must hold no Array. False if they cannot be keyed here.
        """
    def _set_parameters(
        self,
        arg0: collections.abc.Sequence,
        arg1: collections.abc.Sequence[bool],
        arg2: collections.abc.Sequence[
            collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]
        ],
        arg3: typing.SupportsInt | typing.SupportsIndex,
        arg4: typing.SupportsInt | typing.SupportsIndex,
        arg5: bool,
        arg6: typing.Any,
    ) -> None:
        """
        Sets how arguments are keyed. For each parameter, by position: the name that calls may use, whether it is a static value, and its axes of dynamic sizes. Then the positions of *args and **kwargs, whether the first parameter may be the receiver of a method, and trees.describe.
        """

class Lowered:
    """
    A program lowered for a device.
    """
    def compile(self) -> Executable: ...
    def cost_analysis(self) -> dict[str, float]: ...
    def describe(self) -> dict:
        """
        The facts of `explain` as data: `items` in order, each with its nodes, costs and limits; `values` in memory, by number; and `fusions` that were considered, each with the reason why it was done or not.
        """
    def explain(self) -> str: ...
    def source(self, target: str | None = None) -> str:
        """
        The kernels' source for a target.
        """
    def texts(self, target: str) -> list[tuple[str, str]]:
        """
        (name, source) of each program, lowered for a target.
        """
    @property
    def device(self) -> str: ...
    @property
    def graph(self) -> str:
        """
        Text of the graph after the graph passes.
        """
    @property
    def kernels(self) -> list[str]:
        """
        Text of the Lowered IR, one for each launch.
        """
    @property
    def schedule(self) -> str:
        """
        Text of the Scheduled IR.
        """

class NodeBuilder:
    """
    A graph under construction, node by node.
    """
    def __init__(self) -> None: ...
    def add(
        self,
        operation: str,
        operands: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex],
        dtype: typing.Any = None,
        shape: collections.abc.Sequence = (),
    ) -> int:
        """
        Appends a node and returns its number. `operation` is its kind and attributes as in the graph's text.
        """
    def finish(
        self, outputs: collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]
    ) -> Graph:
        """
        The graph with these nodes as outputs.
        """
    def size(self, number: typing.SupportsInt | typing.SupportsIndex) -> typing.Any:
        """
        The size that is the value of a define_var or loop_counter.
        """
    def type_of(
        self, arg0: typing.SupportsInt | typing.SupportsIndex
    ) -> tuple[numpy.dtype[typing.Any], tuple]:
        """
        The (dtype, shape) of a node.
        """

class Plan:
    """
    A program that has been cut: programs of blocks, and the passes that run them.
    """
    def __str__(self) -> str: ...
    @property
    def arrays(self) -> list:
        """
        (index of the argument or None, dtype, chunks by axis) of each.
        """
    @property
    def outputs(self) -> list[int]:
        """
        The arrays that are the outputs.
        """
    @property
    def passes(self) -> list:
        """
        (level, grid, results, blocks, call) of each pass. The grid has the chunks of its axes. A result is (array, for each axis the axis of the grid or -1, the operation that combines partial results or None, the axes of the grid along which they are combined). A block, in row-major order, is (program, [(array, box)]). The call is None or (name, number, numbers of the function's results); programs are None if there is a call.
        """
    @property
    def programs(self) -> list:
        """
        Texts of graphs.
        """

class Size:
    """
    A size that is known when the program runs.
    """
    def __abs__(self): ...
    def __add__(self, other: typing.Any) -> typing.Any: ...
    def __and__(self, other: typing.Any) -> typing.Any: ...
    def __array__(self, *args, **options): ...
    def __array_ufunc__(
        self, ufunc: typing.Any, method: str, *inputs: typing.Any, **kwargs: typing.Any
    ) -> typing.Any: ...
    def __bool__(self) -> bool: ...
    def __complex__(self, *args, **options): ...
    def __divmod__(self, *args, **options): ...
    def __eq__(self, other: typing.Any) -> typing.Any: ...
    def __float__(self, *args, **options): ...
    def __floordiv__(self, other: typing.Any) -> typing.Any: ...
    def __ge__(self, other: typing.Any) -> typing.Any: ...
    def __gt__(self, other: typing.Any) -> typing.Any: ...
    def __hash__(self) -> int: ...
    def __iadd__(self, other: typing.Any) -> typing.Any: ...
    def __iand__(self, other: typing.Any) -> typing.Any: ...
    def __ifloordiv__(self, other: typing.Any) -> typing.Any: ...
    def __ilshift__(self, other: typing.Any) -> typing.Any: ...
    def __imatmul__(self, other: typing.Any) -> typing.Any: ...
    def __imod__(self, other: typing.Any) -> typing.Any: ...
    def __imul__(self, other: typing.Any) -> typing.Any: ...
    def __index__(self, *args, **options): ...
    def __int__(self, *args, **options): ...
    def __invert__(self): ...
    def __ior__(self, other: typing.Any) -> typing.Any: ...
    def __ipow__(self, other: typing.Any, modulus: typing.Any = None) -> typing.Any: ...
    def __irshift__(self, other: typing.Any) -> typing.Any: ...
    def __isub__(self, other: typing.Any) -> typing.Any: ...
    def __itruediv__(self, other: typing.Any) -> typing.Any: ...
    def __ixor__(self, other: typing.Any) -> typing.Any: ...
    def __le__(self, other: typing.Any) -> typing.Any: ...
    def __lshift__(self, other: typing.Any) -> typing.Any: ...
    def __lt__(self, other: typing.Any) -> typing.Any: ...
    def __matmul__(self, other: typing.Any) -> typing.Any: ...
    def __mod__(self, other: typing.Any) -> typing.Any: ...
    def __mul__(self, other: typing.Any) -> typing.Any: ...
    def __ne__(self, other: typing.Any) -> typing.Any: ...
    def __neg__(self): ...
    def __or__(self, other: typing.Any) -> typing.Any: ...
    def __pos__(self): ...
    def __pow__(self, other: typing.Any, modulus: typing.Any = None) -> typing.Any: ...
    def __radd__(self, other: typing.Any) -> typing.Any: ...
    def __rand__(self, other: typing.Any) -> typing.Any: ...
    def __rdivmod__(self, *args, **options): ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other: typing.Any) -> typing.Any: ...
    def __rlshift__(self, other: typing.Any) -> typing.Any: ...
    def __rmatmul__(self, other: typing.Any) -> typing.Any: ...
    def __rmod__(self, other: typing.Any) -> typing.Any: ...
    def __rmul__(self, other: typing.Any) -> typing.Any: ...
    def __ror__(self, other: typing.Any) -> typing.Any: ...
    def __rpow__(self, other: typing.Any) -> typing.Any: ...
    def __rrshift__(self, other: typing.Any) -> typing.Any: ...
    def __rshift__(self, other: typing.Any) -> typing.Any: ...
    def __rsub__(self, other: typing.Any) -> typing.Any: ...
    def __rtruediv__(self, other: typing.Any) -> typing.Any: ...
    def __rxor__(self, other: typing.Any) -> typing.Any: ...
    def __sub__(self, other: typing.Any) -> typing.Any: ...
    def __truediv__(self, other: typing.Any) -> typing.Any: ...
    def __xor__(self, other: typing.Any) -> typing.Any: ...
    def _with_object(self, name: str, other: typing.Any, reflected: bool) -> typing.Any: ...
    def is_same(self, other: Size) -> bool:
        """
        Whether two sizes are the same expression.
        """
    def plus(
        self, other: typing.Any, factor: typing.SupportsInt | typing.SupportsIndex = 1
    ) -> typing.Any:
        """
        The size plus `factor` times an int or a Size.
        """
    def times(self, factor: typing.SupportsInt | typing.SupportsIndex) -> typing.Any: ...
    @property
    def coefficients(self) -> dict[str, int]:
        """
        The factors of the Dims, by name.
        """
    @property
    def high(self) -> int:
        """
        The greatest value.
        """
    @property
    def is_traced(self) -> bool:
        """
        Whether the size belongs to a trace, not to a graph that is built node by node.
        """
    @property
    def low(self) -> int:
        """
        The least value.
        """
    @property
    def names(self) -> list[str]:
        """
        The names of the Dims on which the size depends.
        """

class TracerBase:
    @staticmethod
    def __new__(type, *args, **kwargs):
        """
        Create and return a new object.  See help(type) for accurate signature.
        """
    @staticmethod
    def _init(*args, **kwargs): ...

class StorageBase:
    @staticmethod
    def __new__(type, *args, **kwargs):
        """
        Create and return a new object.  See help(type) for accurate signature.
        """

class Shortcut:
    def __call__(self, *args, **kwargs):
        """
        Call self as a function.
        """
    def __get__(self, instance, owner=None):
        """
        Return an attribute of instance, which is of type owner.
        """

def address_of(memory: DeviceMemory) -> int: ...
def alu_ops() -> list:
    """
    The table of scalar operations, one dict for each.
    """

def begin_profile() -> None:
    """
    Begins to record what programs do. Raises RuntimeError while another profile is taken.
    """

def broken_guards(guards: collections.abc.Sequence) -> list:
    """
    Positions of the guards (kind, holder, name, value) that do not hold.
    """

def built_in_cpu_figures() -> dict[str, float]:
    """
    The figures of the CPU that the cost model uses if none have been set.
    """

def calibration_options() -> tuple[str, str]:
    """
    RUNE_JIT_CALIBRATION and RUNE_JIT_CACHE_DIR.
    """

def call_side_by_side(
    function: collections.abc.Callable,
    count: typing.SupportsInt | typing.SupportsIndex,
    estimated_ns: typing.SupportsFloat | typing.SupportsIndex,
) -> None:
    """
    Calls function(i) for each i < count, on several cores if the estimated time of all calls on one core makes that worthwhile.
    """

def check(what: tuple, value: typing.Any) -> bool:
    """
    Checks a value that a program computed (Check in compiled_call.h) and raises the error if it fails.
    """

def compile_cuda(
    text: str, architecture: typing.SupportsInt | typing.SupportsIndex
) -> tuple[bytes, str]:
    """
    Compiles CUDA C++ with NVRTC, without a device. Returns PTX and the compiler's messages.
    """

def compile_kernel(text: str, device: str) -> Executable:
    """
    The program of one kernel of the Lowered IR.
    """

def contains_traced(*args, **kwargs):
    """
    Whether x is, or holds in nested lists, tuples, dicts and slices, a tracer or size whose value is not known while tracing.
    """

def contains_tracer(*args, **kwargs):
    """
    Whether x is a tracer, or holds one in nested lists and tuples.
    """

def count_numbers(value: typing.Any) -> int:
    """
    About how many of Python's numbers a list, tuple or dict holds, by the first item of each container in it. 1 for a number, 0 for other values.
    """

def cpu_figures() -> dict[str, float]:
    """
    The figures of the CPU that the cost model uses.
    """

def current_trace(*args, **kwargs):
    """
    The innermost trace that runs on this thread, or None.
    """

def cut(
    graph: Graph,
    device: str,
    chunks: collections.abc.Sequence[
        collections.abc.Sequence[
            collections.abc.Sequence[typing.SupportsInt | typing.SupportsIndex]
        ]
    ],
) -> Plan:
    """
    Cuts a graph into programs of blocks. `chunks` has the sizes of the chunks by argument and axis; no chunk may be empty. Raises UnsupportedOpError if the graph cannot be cut.
    """

def default_device() -> str: ...
def describe_cuda() -> str:
    """
    NVIDIA's driver, the devices and NVRTC, one line each. A missing one's line says why.
    """

def describe_options() -> str:
    """
    Environment variables, their values and meanings.
    """

def dlpack_device(memory: DeviceMemory) -> tuple[int, int] | None:
    """
    DLPack's numbers for the type of a memory's device and for the device. None if other libraries cannot use the memory.
    """

def dtypes() -> list:
    """
    NumPy's names of the dtypes that can be traced.
    """

def end_profile() -> dict:
    """
    Ends the profile and returns its records: `programs` with their `steps` and totals; `functions`; `memory` by device; `intervals`, rows of kind (0 call of a function, 1 run of a program, 2 step), number of the function or program, number of the step, begin and duration in ns, and thread; `left_out`, the number of intervals and points of memory that were not kept. Times are relative to `begin_ns`.
    """

def export_dlpack(
    memory: DeviceMemory, stream: typing.SupportsInt | typing.SupportsIndex | None, versioned: bool
) -> typing_extensions.CapsuleType:
    """
    A DLPack capsule of a memory. Later commands of `stream` wait for all launches so far.
    """

def has_dtype(device: str, dtype: numpy.dtype[typing.Any]) -> bool:
    """
    Whether a device's programs compute with a dtype.
    """

def has_host_memory(device: str) -> bool:
    """
    Whether a device computes on the host's memory. Raises for a device that cannot run here.
    """

def has_made_arrays() -> bool:
    """
    Whether there has been an Array in this process.
    """

def has_ufunc(name: str) -> bool:
    """
    Whether the NumPy ufunc of this name can be traced.
    """

def import_dlpack(
    capsule: typing_extensions.CapsuleType, device: str
) -> tuple[DeviceMemory, list[int], list[int] | None, int]:
    """
    (memory, shape, strides, first) of a DLPack capsule of a device's memory. Without strides, the memory has the shape. With strides, it has one axis; `first` is the index of the first element, and the strides count elements.
    """

def instruction_kinds() -> list[str]:
    """
    Names of the instructions of the Lowered IR.
    """

def interpret(
    kernel: str,
    arrays: collections.abc.Sequence[numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]],
    reverse_order: bool = False,
) -> None: ...
def is_disabled() -> bool: ...
def is_on_numpy() -> bool:
    """
    Whether numpy_began has been called on this thread.
    """

def is_profiling() -> bool:
    """
    Whether a profile is being taken.
    """

def is_supported_dtype(dtype: numpy.dtype[typing.Any]) -> bool: ...
def lower(
    graph: Graph,
    device: str,
    names: collections.abc.Sequence[str] = [],
    functions: collections.abc.Sequence = (),
    name: str = "",
) -> Lowered:
    """
    Runs the pipeline up to the Lowered IR for a device. Errors use the inputs' names. `functions` has a (name, callable) for each host call, in order. The callable takes read-only arrays and returns a sequence of arrays. Or it has a method `fill`, which takes a dict of the arrays that it fills, by the number of the result, followed by the read-only arrays. `name` is the program's name in profiles.
    """

def make_array(memory: typing.Any, device: typing.Any) -> typing.Any: ...
def mark_stored(builder: GraphBuilder, segment: Segment) -> None:
    """
    Makes the outputs of a segment, which has run, arguments of later ones.
    """

def measure_cpu() -> dict[str, float]:
    """
    Measures the figures of the CPU, in some 30 ms.
    """

def next_serial(*args, **kwargs):
    """
    A number that is greater than those of all storages so far.
    """

def node_kinds() -> list[str]:
    """
    Names of the node kinds of graphs.
    """

def numpy_began() -> None:
    """
    Makes jitted functions that are called on this thread run on NumPy until numpy_ended.
    """

def numpy_ended() -> None: ...
def or_numpy(rule: typing.Any, otherwise: typing.Any) -> typing.Any:
    """
    A callable that calls the rule. In a trace in segments, it calls otherwise(trace, error, args, kwargs) if the rule raises an Exception, and then Trace.after_operation.
    """

def order_of(*args, **kwargs):
    """
    The operands, in a list or tuple, that decide the order of a result in memory: none if all lie in C order.
    """

def order_streams(
    device: str, stream: typing.SupportsInt | typing.SupportsIndex, device_first: bool
) -> None:
    """
    Makes later commands of a stream wait for all launches so far. With device_first=False, makes later launches wait for all commands in the stream so far.
    """

def parse_graph(text: str) -> Graph:
    """
    Reads a graph's text. Raises ParseError with line and column.
    """

def profile_clock_ns() -> int:
    """
    The clock of profiles.
    """

def release_memory() -> None:
    """
    Returns the memory that devices keep for reuse to the system.
    """

def render_llvm(kernel: str) -> str:
    """
    LLVM IR of a kernel's text.
    """

def render_msl(kernel: str) -> str:
    """
    Metal source of a kernel's text.
    """

def reprint(text: str) -> tuple[str, list[str]]:
    """
    Reads IR text (a graph, a schedule or kernels). Returns it as it is printed again, and the verifier's violations.
    """

def require_trace(*args, **kwargs):
    """
    The current trace, with the user's line noted. Raises TracerLeakError if there is none.
    """

def resume_traces() -> None: ...
def set_array_class(type: type) -> None:
    """
    Sets the class of the arrays that programs return.
    """

def set_compile_hook(compile_module: collections.abc.Callable) -> None:
    """
    Sets the compiler of LLVM IR: compile_module(ir, names, cache, cache_dir) -> (addresses, keep_alive). The last two arguments are options.
    """

def set_cpu_figures(
    figures: collections.abc.Mapping[str, typing.SupportsFloat | typing.SupportsIndex],
) -> None:
    """
    Sets the figures of the CPU for programs that are lowered from now on. Raises ValueError for a figure that is not positive and finite.
    """

def set_cuda_module(load: collections.abc.Callable) -> None:
    """
    Sets the function that loads rune_jit.backends.cuda, whose functions the CUDA backend calls.
    """

def set_own_folders(folders: tuple) -> None:
    """
    Sets the folders of code that is not the user's. Each ends with a separator.
    """

def set_tracer_types(tracer: type, storage: type, step: type) -> None:
    """
    Sets the classes of traced arrays, of their storages and of the steps of views.
    """

def shorten_astype(rule: typing.Any) -> typing.Any:
    """
    Tracer.astype
    """

def shorten_functions(rule: typing.Any, names: dict) -> typing.Any:
    """
    A Tracer.__array_function__ that computes functions of these names without the rule.
    """

def shorten_getitem(rule: typing.Any) -> typing.Any:
    """
    Tracer.__getitem__
    """

def shorten_in_place(rule: typing.Any, ufunc: str) -> typing.Any:
    """
    A method for an operator that writes to a traced array.
    """

def shorten_method(rule: typing.Any, method: typing.Any) -> typing.Any:
    """
    A callable that calls the method for traced arrays, and the rule for traced numbers.
    """

def shorten_operand(rule: typing.Any) -> typing.Any:
    """
    Trace.operand
    """

def shorten_operator(rule: typing.Any, ufunc: str, reflected: bool) -> typing.Any:
    """
    A method for an operator of traced arrays that computes most operands without the rule.
    """

def shorten_reduction(rule: typing.Any, name: str) -> typing.Any:
    """
    A method of Tracer that computes most reductions without the rule. `name`: NumPy's function.
    """

def shorten_setitem(rule: typing.Any) -> typing.Any:
    """
    Tracer.__setitem__
    """

def shorten_stand_in(rule: typing.Any) -> typing.Any:
    """
    A method that calls the attribute _real of its object instead, unless an argument is a list or tuple that holds traced arrays.
    """

def shorten_ufuncs(rule: typing.Any, names: dict) -> typing.Any:
    """
    A Tracer.__array_ufunc__ that computes ufuncs of these names without the rule.
    """

def shorten_value_in(rule: typing.Any) -> typing.Any:
    """
    Tracer._value_in
    """

def static_leaves(leaves: collections.abc.Sequence) -> list[int]:
    """
    Positions of the leaves that are neither arrays nor numbers that a program takes.
    """

def stream_of(memory: DeviceMemory) -> int:
    """
    The stream in which programs use a memory.
    """

def stream_of_device(device: str) -> int | None:
    """
    The stream in which a device's programs run; None if it has none.
    """

def suspend_traces() -> None:
    """
    Suspends the traces of this thread until resume_traces.
    """

def synchronize(device: str) -> None:
    """
    Waits for a device's launches. Raises the error of a launch that failed.
    """

def targets() -> list[str]:
    """
    Names of the targets that programs can be lowered for.
    """

def to_host(memory: typing.Any) -> numpy.ndarray[typing.Any, numpy.dtype[typing.Any]]:
    """
    The elements as a numpy.ndarray: the memory itself, or a copy of the device's.
    """

def trace_began(trace: typing.Any) -> None:
    """
    Makes a trace the innermost one of this thread.
    """

def trace_ended() -> None: ...
def tracers_in(*args, **kwargs):
    """
    The tracers in nested lists, tuples, dicts and slices.
    """

def user_frame() -> typing.Any:
    """
    The innermost Python frame of the user's code, or None.
    """

def user_line() -> str:
    """
    File name and line of the innermost Python frame of the user's code: `file.py:12`.
    """

def user_site() -> tuple[typing.Any, int]:
    """
    File and line of the innermost Python frame of the user's code.
    """

def watch_events(events: collections.abc.Sequence[str], handler: typing.Any) -> None:
    """
    Calls `handler(event)` before each of these audit events of Python's, in threads that trace a function into one program. What it raises prevents the event.
    """

def write_array(array: typing.Any, memory: typing.Any) -> None:
    """
    Replaces the elements of an Array and of all Arrays that are views of the same array.
    """

MOST_NUMBERS: int = 256
__version__: str = "0.1.0"
