"""Kernels rendered as LLVM IR, compiled and run, against NumPy and against the interpreter."""

import itertools
import re
import warnings

import numpy as np
import pytest
from kernel_text import (
    DTYPES,
    FLOATS,
    INTEGERS,
    Text,
    bits,
    call,
    compiled,
    elementwise,
    padded,
    run,
    same,
    some,
    specials,
    typed,
)

from rune_jit import _core


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# Memory


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_copy_runs_only_its_tasks(dtype, lanes):
    k = Text(6)
    out, source = k.memory(dtype, 0, 6 * lanes, True), k.memory(dtype, 1, 6 * lanes)
    at = k(f"alu mul {k.task()} {k.const(lanes)} : i64")
    k.store(out, at, k(f"load {source} {at} : {typed(dtype, lanes)}"))
    x, y = some(dtype, 6 * lanes), np.zeros(6 * lanes, DTYPES[dtype])
    call(compiled(k), [y, x], 2, 5)
    expected = np.zeros_like(y)
    expected[2 * lanes : 5 * lanes] = x[2 * lanes : 5 * lanes]
    np.testing.assert_array_equal(bits(y), bits(expected))
    call(compiled(k), [y, x], 3, 3)
    call(compiled(k), [y, x], 3, 1)
    np.testing.assert_array_equal(bits(y), bits(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 15, 16, 17, 37])
def test_masked_tail(dtype, size):
    lanes = 16
    k = Text(-(-size // lanes))
    out, source = k.memory(dtype, 0, size, True), k.memory(dtype, 1, size)
    at = k(f"alu mul {k.task()} {k.const(lanes)} : i64")
    index = k(f"alu add {k(f'splat {at} : i64x{lanes}')} {k.iota(lanes)} : i64x{lanes}")
    valid = k(f"alu cmplt {index} {k.const(size, lanes=lanes)} : boolx{lanes}")
    value = k(f"load {source} {at} {valid} : {dtype}x{lanes}")
    k.store(out, at, value, valid)
    x = some(dtype, size)
    # What lies behind the array must stay as it is.
    memory = np.full(size + lanes, 7, DTYPES[dtype])
    expected = memory.copy()
    expected[:size] = x
    run(k, [memory[:size], x])
    np.testing.assert_array_equal(bits(memory), bits(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 8])
def test_one_mask_for_all_lanes(dtype, lanes):
    k = Text(4)
    n = 4 * lanes
    out, source, flags = k.memory(dtype, 0, n, True), k.memory(dtype, 1, n), k.memory("bool", 2, 4)
    back = k.memory(dtype, 3, n, True)
    task = k.task()
    at = k(f"alu mul {task} {k.const(lanes)} : i64")
    valid = k(f"load {flags} {task} : bool")
    value = k(f"load {source} {at} {valid} : {typed(dtype, lanes)}")
    k.store(out, at, value)
    k.store(back, at, k(f"load {source} {at} : {typed(dtype, lanes)}"), valid)
    x, flag = some(dtype, n), np.array([True, False, False, True])
    y, z = np.ones(n, DTYPES[dtype]), np.zeros(n, DTYPES[dtype])
    run(k, [y, x, flag, z])
    expected = np.where(np.repeat(flag, lanes), x, np.zeros_like(x))
    np.testing.assert_array_equal(bits(y), bits(expected))
    np.testing.assert_array_equal(bits(z), bits(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index_dtype", ["i32", "i64", "u32", "u8"])
@pytest.mark.parametrize("masked", [False, True])
def test_gather_and_scatter(dtype, index_dtype, masked):
    lanes, n = 16, 50
    k = Text(1)
    out, source = k.memory(dtype, 0, n, True), k.memory(dtype, 1, n)
    back, places = k.memory(dtype, 2, n, True), k.memory(index_dtype, 3, lanes)
    flags = k.memory("bool", 4, lanes)
    zero = k.const(0)
    index = k(f"load {places} {zero} : {index_dtype}x{lanes}")
    valid = k(f"load {flags} {zero} : boolx{lanes}") if masked else ""
    value = k(f"load {source} {index} {valid} : {dtype}x{lanes}".replace("  ", " "))
    k.store(out, zero, value)
    k.store(back, index, value, valid)
    x = some(dtype, n)
    place = np.random.default_rng(1).permutation(n)[:lanes].astype(DTYPES[index_dtype])
    flag = np.arange(lanes) % 3 != 0
    if masked:
        place[~flag] = 200  # beyond the memory: must not be touched
    y, z = np.zeros(n, DTYPES[dtype]), np.zeros(n, DTYPES[dtype])
    run(k, [y, x, z, place, flag])
    use = flag if masked else np.ones(lanes, bool)
    expected = np.zeros(lanes, DTYPES[dtype])
    expected[use] = x[place[use]]
    np.testing.assert_array_equal(bits(y[:lanes]), bits(expected))
    scattered = np.zeros(n, DTYPES[dtype])
    scattered[place[use]] = expected[use]
    np.testing.assert_array_equal(bits(z), bits(scattered))


@pytest.mark.parametrize(
    "dtype,lanes", [("f32", 16), ("f64", 8), ("i8", 64), ("f32", 4), ("i16", 3)]
)
def test_nontemporal(dtype, lanes):
    k = Text(4)
    size = 4 * lanes
    out, source = k.memory(dtype, 0, size, True), k.memory(dtype, 1, size)
    at = k(f"alu mul {k.task()} {k.const(lanes)} : i64")
    k.store(out, at, k(f"load {source} {at} : {dtype}x{lanes}"), nontemporal=True)
    memory = np.zeros(size + 64, DTYPES[dtype])
    skip = (-memory.ctypes.data % 64) // memory.itemsize
    result, x = memory[skip : skip + size], some(dtype, size)
    run(k, [result, x])
    np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize("dtype", ["bool", "i16", "f32", "f64"])
def test_local_memory(dtype):
    """Reverses rows of 8 by way of scratch memory, in two tasks."""
    k = Text(2)
    out, source = k.memory(dtype, 0, 16, True), k.memory(dtype, 1, 16)
    scratch = k(f"local size=8 : ptr {dtype}")
    base = k(f"alu mul {k.task()} {k.const(8)} : i64")
    i = k(f"range {k.const(8)} : i64")
    value = k(f"load {source} {k(f'alu add {base} {i} : i64')} : {dtype}")
    k.store(scratch, k(f"alu sub {k.const(7)} {i} : i64"), value)
    k("endrange")
    k("barrier")
    k.store(out, base, k(f"load {scratch} {k.const(0)} : {dtype}x8"))
    x, y = some(dtype, 16), np.zeros(16, DTYPES[dtype])
    run(k, [y, x])
    np.testing.assert_array_equal(y, x.reshape(2, 8)[:, ::-1].ravel())


# Loops, branches, accumulators


@pytest.mark.parametrize("count", [0, 1, 2, 31])
def test_several_accumulators(count):
    """A sum, a maximum and a conditional count over rows of 16, with a bound known at run time."""
    k = Text(1)
    sums, tops = k.memory("f32", 0, 16, True), k.memory("f32", 1, 16, True)
    evens, source = k.memory("i64", 2, 1, True), k.memory("f32", 3, 31 * 16)
    total = k(f"acc {k.const(0.0, 'f32', 16)} : f32x16")
    top = k(f"acc {k.const('-inf', 'f32', 16)} : f32x16")
    even = k(f"acc {k.const(0)} : i64")
    bound = k('define_var {name="n" min=0 max=31} : i64')
    i = k(f"range {bound} : i64")
    row = k(f"load {source} {k(f'alu mul {i} {k.const(16)} : i64')} : f32x16")
    k(f"assign {total} {k(f'alu add {total} {row} : f32x16')}")
    k(f"assign {top} {k(f'alu max {top} {row} : f32x16')}")
    low = k(f"alu and {i} {k.const(1)} : i64")
    k(f"if {k(f'alu cmpeq {low} {k.const(0)} : bool')}")
    k(f"assign {even} {k(f'alu add {even} {k.const(1)} : i64')}")
    k("endif")
    k("endrange")
    zero = k.const(0)
    for memory, value in ((sums, total), (tops, top), (evens, even)):
        k.store(memory, zero, value)
    x = some("f32", 31 * 16)
    s, m, e = np.ones(16, np.float32), np.ones(16, np.float32), np.ones(1, np.int64)
    run(k, [s, m, e, x], [count])
    rows = x.reshape(31, 16)[:count]
    np.testing.assert_array_equal(s, rows.sum(0))
    np.testing.assert_array_equal(m, rows.max(0, initial=-np.inf))
    assert e[0] == (count + 1) // 2


@pytest.mark.parametrize("index_dtype", ["i32", "i64", "u32"])
def test_nested_loops(index_dtype):
    """For each task a sum over a triangle, with an inner Acc and an If between the loops."""
    k = Text(3)
    out = k.memory("i64", 0, 3, True)
    task = k.task()
    limit = k.const(5, index_dtype)
    outer_sum = k(f"acc {task} : i64")
    i = k(f"range {limit} : {index_dtype}")
    inner_sum = k(f"acc {k.const(0)} : i64")
    j = k(f"range {i} : {index_dtype}")
    wide = k(f"cast {j} : i64") if index_dtype != "i64" else j
    k(f"assign {inner_sum} {k(f'alu add {inner_sum} {wide} : i64')}")
    k("endrange")
    two = k.const(2, index_dtype)
    k(f"if {k(f'alu cmplt {two} {i} : bool')}")
    k(f"assign {outer_sum} {k(f'alu add {outer_sum} {inner_sum} : i64')}")
    again = k(f"range {k.const(2)} : i64")
    k(f"assign {outer_sum} {k(f'alu add {outer_sum} {again} : i64')}")
    k("endrange")
    k("endif")
    k("endrange")
    k.store(out, task, outer_sum)
    result = np.zeros(3, np.int64)
    run(k, [result])
    per_task = sum(sum(range(i)) + 1 for i in range(5) if i > 2)
    np.testing.assert_array_equal(result, np.arange(3) + per_task)


@pytest.mark.parametrize("bound", [-3, 0, 4])
def test_constant_bounds(bound):
    k = Text(1)
    out = k.memory("i64", 0, 1, True)
    a, b = k(f"acc {k.const(1)} : i64"), k(f"acc {k.const(2)} : i64")
    k(f"range {k.const(bound)} : i64")
    old = k(f"alu add {a} {k.const(0)} : i64")
    k(f"assign {a} {b}")  # the two change places
    k(f"assign {b} {k(f'alu add {old} {k.const(1)} : i64')}")
    k("endrange")
    zero = k.const(0)
    k.store(out, zero, k(f"alu add {k(f'alu mul {a} {k.const(100)} : i64')} {b} : i64"))
    result = np.zeros(1, np.int64)
    run(k, [result])
    a, b = 1, 2
    for _ in range(bound):
        a, b = b, a + 1
    assert result[0] == 100 * a + b


def test_branch_with_store():
    k = Text(8)
    out, source = k.memory("i32", 0, 8, True), k.memory("i32", 1, 8)
    task = k.task()
    value = k(f"load {source} {task} : i32")
    fifty = k.const(50, "i32")
    k(f"if {k(f'alu cmplt {fifty} {value} : bool')}")
    k.store(out, task, value)
    k("endif")
    x, y = some("i32", 8), np.full(8, -1, np.int32)
    run(k, [y, x])
    np.testing.assert_array_equal(y, np.where(x > 50, x, -1))


# Values


BOTH = ["add", "sub", "mul", "max", "min", "neg", "abs", "sign", "mulacc"]
BITWISE = ["xor", "or", "and", "not"]
COMPARE = ["cmplt", "cmple", "cmpeq", "cmpne"]
FLOAT_ONLY = ["fdiv", "fmod", "fmax", "fmin", "copysign", "recip", "sqrt", "floor", "ceil", "trunc"]
FLOAT_ONLY += ["ldexp", "rint", "isnan", "isinf", "isfinite", "signbit"]
LIBM = ["pow", "atan2", "hypot", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"]
LIBM += ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"]
LIBM += ["atanh", "erf"]
UNARY = {"neg", "abs", "sign", "not", "recip", "sqrt", "floor", "ceil", "trunc", "rint", "isnan"}
UNARY |= {"isinf", "isfinite", "signbit"} | (set(LIBM) - {"pow", "atan2", "hypot"})
CASES = [(op, d) for op in BOTH for d in INTEGERS + FLOATS]
CASES += [(op, "bool") for op in ["max", "min"]]
CASES += [(op, d) for op in BITWISE for d in ["bool", *INTEGERS]]
CASES += [(op, d) for op in [*COMPARE, "where"] for d in DTYPES]
CASES += [(op, d) for op in ["div", "fmod", "shl", "shr"] for d in INTEGERS]
CASES += [(op, d) for op in FLOAT_ONLY for d in FLOATS]
CASES += [(op, "f64") for op in LIBM]


def columns_of(op, dtype):
    s = specials(dtype)
    if op in UNARY:
        return [s]
    if op == "mulacc":
        few = np.random.default_rng(3).choice(s, min(len(s), 12), replace=False)
        triples = zip(*itertools.product(few, repeat=3), strict=True)
        return [np.array(column, DTYPES[dtype]) for column in triples]
    a, b = np.repeat(s, len(s)), np.tile(s, len(s))
    if op == "where":
        return [np.arange(len(a)) % 3 == 0, a, b]
    keep = np.ones(len(a), bool)
    if op in ("div", "fmod") and dtype in INTEGERS:
        lowest = np.iinfo(DTYPES[dtype]).min
        keep = (b != 0) & ~((a == lowest) & (b.astype(np.int64) == -1) & (lowest < 0))
    if op in ("shl", "shr"):
        keep = (b >= 0) & (b.astype(np.float64) < 8 * b.itemsize)
    if op == "ldexp":
        with np.errstate(invalid="ignore"):
            keep = np.isnan(a) | ((np.trunc(b) == b) & (np.abs(b).astype(np.float64) < 2**31))
    return [a[keep], b[keep]]


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("op,dtype", CASES)
def test_alu(op, dtype, lanes):
    columns = padded(columns_of(op, dtype), lanes)
    is_predicate = op in COMPARE or op in ("isnan", "isinf", "isfinite", "signbit")
    result = "bool" if is_predicate else dtype
    operands = [dtype] * len(columns)
    if op == "where":
        operands[0] = "bool"
    count = len(columns[0])
    k = elementwise(operands, result, f"alu {op}", count, lanes)
    ours, reference = np.zeros(count, DTYPES[result]), np.zeros(count, DTYPES[result])
    call(compiled(k), [ours, *columns], 0, count // lanes)
    _core.interpret(str(k), [reference, *columns])
    equal = same(ours, reference)
    if op in ("max", "min", "fmax", "fmin"):
        equal |= ours == reference  # which of two zeros is larger is open, as in NumPy
    wrong = np.flatnonzero(~equal)[:3]
    assert equal.all(), [(*(c[i] for c in columns), ours[i], reference[i]) for i in wrong]


def test_max_and_min_of_zeros_as_numpy():
    a, b = np.array([0.0, -0.0] * 8, np.float32), np.array([-0.0, 0.0] * 8, np.float32)
    for op, function in (("max", np.maximum), ("min", np.minimum)):
        ours = np.zeros(16, np.float32)
        k = elementwise(["f32", "f32"], "f32", f"alu {op}", 16, 16)
        call(compiled(k), [ours, a, b])
        np.testing.assert_array_equal(bits(ours), bits(function(a, b)))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", ["max", "min", "fmax", "fmin"])
@pytest.mark.parametrize("limit", ["0.0", "-0.0", "1.5", "-inf", "inf", "nan"])
@pytest.mark.parametrize("limit_first", [False, True])
def test_extremum_with_constant(dtype, op, limit, limit_first):
    (x,) = padded([specials(dtype)], 16)
    k = Text(len(x) // 16)
    out, source = k.memory(dtype, 0, len(x), True), k.memory(dtype, 1, len(x))
    at = k(f"alu mul {k.task()} {k.const(16)} : i64")
    value, constant = k(f"load {source} {at} : {dtype}x16"), k.const(limit, dtype, 16)
    first, second = (constant, value) if limit_first else (value, constant)
    k.store(out, at, k(f"alu {op} {first} {second} : {dtype}x16"))
    ours = np.zeros_like(x)
    call(compiled(k), [ours, x], 0, len(x) // 16)
    functions = {"max": np.maximum, "min": np.minimum, "fmax": np.fmax, "fmin": np.fmin}
    constants = np.full_like(x, float(limit))
    expected = functions[op](*((constants, x) if limit_first else (x, constants)))
    assert (same(ours, expected) | (ours == expected)).all()
    if op in ("max", "min"):  # the sign of zeros, too
        bulk = slice(0, 16)  # NumPy's scalar remainder differs
        assert same(ours[bulk], expected[bulk]).all()


def cast_inputs(dtype):
    rng = np.random.default_rng(5)
    values = [specials(dtype)]
    if dtype == "f64":
        values.append(rng.normal(size=1024) * 10.0 ** rng.integers(-9, 22, 1024))
        # Near the middle between two float16: a second rounding would show.
        odd = (rng.integers(0, 2**11, 1024) * 2 + 1) * 2.0**-12
        values.append(odd * (1 + rng.integers(-1, 2, 1024) * 2.0**-45))
    if dtype != "bool":
        values.append(np.frombuffer(rng.bytes(DTYPES[dtype].itemsize * 1024), DTYPES[dtype]))
    return np.concatenate([v.astype(DTYPES[dtype]) for v in values])


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("source,target", itertools.permutations(DTYPES, 2))
def test_cast(source, target, lanes):
    (x,) = padded([cast_inputs(source)], lanes)
    k = elementwise([source], target, "cast", len(x), lanes)
    ours, reference = np.zeros(len(x), DTYPES[target]), np.zeros(len(x), DTYPES[target])
    call(compiled(k), [ours, x], 0, len(x) // lanes)
    _core.interpret(str(k), [reference, x])
    wrong = np.flatnonzero(~same(ours, reference))[:3]
    assert not len(wrong), [(x[i], ours[i], reference[i]) for i in wrong]
    equal = same(ours, x.astype(DTYPES[target]))
    if target == "u32" and source in FLOATS:
        # NumPy's own answers to values that do not fit depend on the array's length.
        equal |= ~((x > -1) & (x.astype(np.float64) < 2.0**32))
    if source == "bf16" and target in INTEGERS:
        # ml_dtypes gives 0 for these, and so does the graph that makes such a cast.
        limits = np.iinfo(DTYPES[target])
        wide = x.astype(np.float64)
        equal |= ~((wide >= limits.min) & (wide < limits.max + 1.0))
    wrong = np.flatnonzero(~equal)[:3]
    assert not len(wrong), [(x[i], ours[i], x[i].astype(DTYPES[target])) for i in wrong]


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("lanes", [1, 16])
def test_bitcast(source, lanes):
    size = DTYPES[source].itemsize
    for target in (d for d in DTYPES if DTYPES[d].itemsize == size and d not in (source, "bool")):
        (x,) = padded([specials(source)], lanes)
        ours = np.zeros(len(x), DTYPES[target])
        k = elementwise([source], target, "bitcast", len(x), lanes)
        call(compiled(k), [ours, x], 0, len(x) // lanes)
        assert same(ours, x.view(DTYPES[target])).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_lanes(dtype):
    """Shuffle, Splat, Vconst."""
    k = Text(1)
    out, source = k.memory(dtype, 0, 32, True), k.memory(dtype, 1, 8)
    x = k(f"load {source} {k.const(0)} : {dtype}x8")
    reverse = k(f"shuffle indices=[7,6,5,4,3,2,1,0] {x} : {dtype}x8")
    k.store(out, k.const(0), reverse)
    third, fifth = k(f"shuffle indices=[3] {x} : {dtype}"), k(f"shuffle indices=[5] {x} : {dtype}")
    k.store(out, k.const(8), k(f"shuffle indices=[0,1,0,1] {third} {fifth} : {dtype}x4"))
    k.store(out, k.const(12), k(f"splat {fifth} : {dtype}x4"))
    one = "true" if dtype == "bool" else "1.0" if dtype in FLOATS else "1"
    zero = "false" if dtype == "bool" else "-0.0" if dtype in FLOATS else "0"
    constants = ",".join(f"{dtype}({v})" for v in [one, zero] * 4)
    k.store(out, k.const(16), k(f"vconst [{constants}] : {dtype}x8"))
    k.store(out, k.const(24), k.const(one, dtype, 8))
    x, y = some(dtype, 8), np.zeros(32, DTYPES[dtype])
    run(k, [y, x])
    ones = np.ones(8, DTYPES[dtype])
    mixed = ones.copy()
    mixed[1::2] = np.copysign(0.0, -1) if dtype in FLOATS else 0
    expected = [x[::-1], x[[3, 5, 3, 5]], x[[5] * 4], mixed, ones]
    np.testing.assert_array_equal(bits(y), bits(np.concatenate(expected)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_are_exact(dtype):
    def literal(v):
        if dtype == "bool":
            return "true" if v else "false"
        return repr(float(v)) if dtype in FLOATS else str(int(v))

    x = specials(dtype)
    k = Text(1)
    out = k.memory(dtype, 0, len(x), True)
    for i, v in enumerate(x):
        k.store(out, k.const(i), k.const(literal(v), dtype))
    ours = np.zeros(len(x), DTYPES[dtype])
    run(k, [ours])
    assert same(ours, x).all()


def test_float64_functions_are_libm_calls():
    k = elementwise(["f64"], "f64", "alu erf", 8, 8)
    ir = _core.render_llvm(str(k))
    assert len(re.findall(r"call double @erf\(", ir)) == 8
