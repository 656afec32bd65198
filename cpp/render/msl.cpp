#include "render/msl.h"

#include <tuple>

#include "base/error.h"
#include "render/c_like.h"

namespace rune::render {

namespace {

// Metal contracts products and sums even in its safe mode. Only this pragma, which every version of
// the language has, prevents that.
constexpr const char* kPreamble = R"(#include <metal_stdlib>
#pragma METAL fp contract(off)
#if __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#endif
using namespace metal;
)";

constexpr const char* kMax =
    R"(inline float rune_max(float a, float b) { return a != a || a > b ? a : b; }
inline half rune_max(half a, half b) { return a != a || a > b ? a : b; }
)";
constexpr const char* kMin =
    R"(inline float rune_min(float a, float b) { return a != a || a < b ? a : b; }
inline half rune_min(half a, half b) { return a != a || a < b ? a : b; }
)";
constexpr const char* kFmax =
    R"(inline float rune_fmax(float a, float b) { return b != b || a > b ? a : b; }
inline half rune_fmax(half a, half b) { return b != b || a > b ? a : b; }
)";
constexpr const char* kFmin =
    R"(inline float rune_fmin(float a, float b) { return b != b || a < b ? a : b; }
inline half rune_fmin(half a, half b) { return b != b || a < b ? a : b; }
)";

// NumPy's conversions: NaN and values that do not fit give the lowest integer.
constexpr const char* kToInt =
    R"(inline int rune_to_int(float x) { return fabs(x) < 2147483648.0f ? (int)x : (int)0x80000000u; }
)";
constexpr const char* kToLong = R"(inline long rune_to_long(float x) {
  return fabs(x) < 9223372036854775808.0f ? (long)x : (long)0x8000000000000000ul;
}
)";
constexpr const char* kToUlong = R"(inline ulong rune_to_ulong(float x) {
  if (x >= 9223372036854775808.0f)
    return (ulong)rune_to_long(x - 9223372036854775808.0f) ^ 0x8000000000000000ul;
  return (ulong)rune_to_long(x);
}
)";

// Exchanges values between threads of a SIMD-group. Metal's own reductions lack types of 8 bytes,
// and lose NaN and the signs of zeros, so a butterfly of shuffles replaces them for these.
constexpr const char* kShuffle =
    R"(inline float rune_shuffle(float x, ushort mask) { return simd_shuffle_xor(x, mask); }
inline half rune_shuffle(half x, ushort mask) { return simd_shuffle_xor(x, mask); }
inline long rune_shuffle(long x, ushort mask) {
  return as_type<long>(simd_shuffle_xor(as_type<uint2>(x), mask));
}
inline ulong rune_shuffle(ulong x, ushort mask) {
  return as_type<ulong>(simd_shuffle_xor(as_type<uint2>(x), mask));
}
)";

// A butterfly reduction as functions of several types. `combine` combines x and y.
std::string butterfly(const std::string& name, std::initializer_list<const char*> types,
                      const std::string& combine) {
  std::string text;
  for (const char* type : types)
    text +=
        c_like::expand(R"(inline $T $n($T x) {
  for (ushort mask = 16; mask > 0; mask >>= 1) {
    const $T y = rune_shuffle(x, mask);
    x = $x;
  }
  return x;
}
)",
                       {{'T', type}, {'n', name}, {'x', c_like::expand(combine, {{'T', type}})}});
  return text;
}

// The matrix unit multiplies tiles of 8 x 8. Each thread of the SIMD-group holds two adjacent
// elements of a row: threads 0, 1, 8, 9 hold the first row, 2, 3, 10, 11 the second, 16 and so on
// the fifth. Metal's specification leaves the order open. All of Apple's GPUs so far have this one.
const Ints kMatrixSpread = {2, 8, 16, 4, 32, 1};

std::string matmul(const std::string& name, const std::string& from, const std::string& to) {
  return c_like::expand(R"(inline $T2 $n($F2 a, $F2 b, $T2 c) {
  simdgroup_$F8x8 x, y;
  simdgroup_$T8x8 z;
  for (int i = 0; i < 2; ++i) {
    x.thread_elements()[i] = a[i];
    y.thread_elements()[i] = b[i];
    z.thread_elements()[i] = c[i];
  }
  simdgroup_multiply_accumulate(z, x, y, z);
  return $T2(z.thread_elements()[0], z.thread_elements()[1]);
}
)",
                        {{'n', name}, {'F', from}, {'T', to}});
}

void set_matrix_products(Dialect& d) {
  const DType to = DType::Float32;
  for (const DType from : {DType::Float32, DType::Float16, DType::Bfloat16}) {
    const std::string name = "rune_simd_matmul_" + d.type(from);
    d.matrix_products.push_back({{8, 8, 8, from, to, std::vector<Ints>(3, kMatrixSpread)}, name});
    d.helpers.push_back({name, matmul(name, d.type(from), d.type(to))});
  }
}

void set_types(Dialect& d) {
  d.types = by_dtype({{DType::Int8, "char"},
                      {DType::Int16, "short"},
                      {DType::Int32, "int"},
                      {DType::Uint8, "uchar"},
                      {DType::Uint16, "ushort"},
                      {DType::Uint32, "uint"},
                      {DType::Float16, "half"},
                      {DType::Bfloat16, "bfloat"},
                      {DType::Float32, "float"}});
  for (size_t i = 0; i < d.types.size(); ++i)
    if (!d.types[i].empty()) d.packed[i] = "packed_" + d.types[i] + "$k";
  d.types[static_cast<size_t>(DType::Bool)] = "bool";
  d.types[static_cast<size_t>(DType::Int64)] = "long";
  d.types[static_cast<size_t>(DType::Uint64)] = "ulong";
  d.wrap32 = "uint";
  d.wrap64 = "ulong";
  d.storage_only.set(static_cast<int>(DType::Bfloat16));
}

void set_literals(Dialect& d) {
  d.integer_suffix = by_dtype({{DType::Uint32, "u"}, {DType::Int64, "L"}, {DType::Uint64, "UL"}});
  d.float_literal = by_dtype({{DType::Float32, "$xf"}, {DType::Float16, "(half)$xf"}});
  d.float_bits = by_dtype({{DType::Float32, "as_type<float>(0x$xu)"},
                           {DType::Float16, "as_type<half>((ushort)0x$x)"},
                           {DType::Bfloat16, "as_type<bfloat>((ushort)0x$x)"}});
  d.bitcast = "as_type<$T>($0)";
}

// precise:: names the accurate variant where Metal has several. half is computed in float, whose
// exact or correctly rounded results round to the correctly rounded half.
void set_spellings(Dialect& d) {
  for (const AluOp op :
       {AluOp::Copysign, AluOp::Abs, AluOp::Floor, AluOp::Ceil, AluOp::Trunc, AluOp::Rint,
        AluOp::Isnan, AluOp::Isinf, AluOp::Isfinite, AluOp::Signbit, AluOp::Mulacc})
    d.functions.set(static_cast<size_t>(op));
  d.spellings[{AluOp::Fmod, DType::Float32}] = "precise::fmod($0, $1)";
  d.spellings[{AluOp::Fmod, DType::Float16}] = "((half)precise::fmod((float)$0, (float)$1))";
  d.spellings[{AluOp::Sqrt, DType::Float32}] = "precise::sqrt($0)";
  d.spellings[{AluOp::Sqrt, DType::Float16}] = "((half)precise::sqrt((float)$0))";
  d.spellings[{AluOp::Fdiv, DType::Float16}] = "((half)((float)$0 / (float)$1))";
  d.spellings[{AluOp::Recip, DType::Float16}] = "((half)(1.0f / (float)$0))";
  d.spellings[{AluOp::Recip, DType::Float32}] = "(1.0f / $0)";
}

void set_simd_reductions(Dialect& d) {
  d.simd_width = 32;
  const auto add = [&](AluOp op, DType dtype, const char* text) {
    d.simd_reduce[{op, dtype}] = text;
  };
  add(AluOp::Max, DType::Bool, "simd_any($0)");
  add(AluOp::Min, DType::Bool, "simd_all($0)");
  for (const DType dtype : {DType::Float32, DType::Float16}) {
    add(AluOp::Add, dtype, "simd_sum($0)");
    add(AluOp::Mul, dtype, "simd_product($0)");
    add(AluOp::Max, dtype, "rune_simd_max($0)");
    add(AluOp::Min, dtype, "rune_simd_min($0)");
  }
  for (const DType dtype : {DType::Int64, DType::Uint64}) {
    add(AluOp::Add, dtype, "rune_simd_add($0)");
    add(AluOp::Mul, dtype, "rune_simd_mul($0)");
    add(AluOp::Max, dtype, "rune_simd_max($0)");
    add(AluOp::Min, dtype, "rune_simd_min($0)");
  }
  for (const DType dtype :
       {DType::Int8, DType::Int16, DType::Int32, DType::Uint8, DType::Uint16, DType::Uint32}) {
    add(AluOp::Max, dtype, "simd_max($0)");
    add(AluOp::Min, dtype, "simd_min($0)");
  }
  add(AluOp::Add, DType::Uint32, "simd_sum($0)");
  add(AluOp::Mul, DType::Uint32, "simd_product($0)");
  add(AluOp::Add, DType::Int32, "(int)simd_sum((uint)$0)");  // wraps
  add(AluOp::Mul, DType::Int32, "(int)simd_product((uint)$0)");
}

void set_simd_shuffles(Dialect& d) {
  for (const DType dtype : {DType::Int32, DType::Uint32, DType::Float32, DType::Float16})
    d.simd_shuffle[static_cast<size_t>(dtype)] = "simd_shuffle($0, (ushort)$1)";
}

// Atomic operations on floats need MSL 3.0.
void set_atomics(Dialect& d) {
  const auto add = [&](AluOp op, DType dtype, const char* function) {
    d.atomics[{op, dtype}] = concat("atomic_fetch_", function, "_explicit((device atomic_",
                                    d.type(dtype), "*)&$p, $0, memory_order_relaxed)");
  };
  add(AluOp::Add, DType::Float32, "add");
  for (const DType dtype : {DType::Int32, DType::Uint32}) {
    add(AluOp::Add, dtype, "add");
    add(AluOp::Max, dtype, "max");
    add(AluOp::Min, dtype, "min");
  }
}

Dialect make_dialect() {
  Dialect d;
  d.name = "MSL";
  d.target = "metal";
  d.float64_hint =
      "cast to float32 with .astype(numpy.float32), or run on the CPU with device=\"cpu\"";
  d.preamble = kPreamble;
  d.helpers = {{"rune_max", kMax},          {"rune_min", kMin},        {"rune_fmax", kFmax},
               {"rune_fmin", kFmin},        {"rune_to_int", kToInt},   {"rune_to_long", kToLong},
               {"rune_to_ulong", kToUlong}, {"rune_shuffle", kShuffle}};
  const auto butterflies = {
      std::tuple{"rune_simd_add", "", "($T)((ulong)x + (ulong)y)"},
      std::tuple{"rune_simd_mul", "", "($T)((ulong)x * (ulong)y)"},
      std::tuple{"rune_simd_max", "rune_max(x, y)", "x > y ? x : y"},
      std::tuple{"rune_simd_min", "rune_min(x, y)", "x < y ? x : y"},
  };
  for (const auto& [name, of_floats, of_integers] : butterflies) {
    const std::string floats = *of_floats ? butterfly(name, {"float", "half"}, of_floats) : "";
    d.helpers.push_back({name, floats + butterfly(name, {"long", "ulong"}, of_integers)});
  }
  set_types(d);
  d.kernel = "[[kernel, max_total_threads_per_threadgroup($k)]]\nvoid $n";
  d.read_member = "device const $T* $n";
  d.write_member = "device $T* $n";
  d.read_parameter = d.read_member + " [[buffer($i)]]";
  d.write_parameter = d.write_member + " [[buffer($i)]]";
  d.members_parameter = "constant $n* more [[buffer($i)]]";
  d.member = "more->$n";
  d.max_members = 512;  // 4 KiB of addresses
  d.vars_parameter = "constant long* vars [[buffer($i)]]";
  d.var = "vars[$i]";
  d.builtin_parameters = {"uint3 gid [[threadgroup_position_in_grid]]",
                          "uint3 lid [[thread_position_in_threadgroup]]",
                          "uint3 tid [[thread_position_in_grid]]"};
  d.max_parameters = 31;
  d.workgroup_index = "gid.x";
  d.thread_index = "lid.x";
  d.task_index = "tid.x";
  d.constant_table = "constant $T $n[$k] = {$x};";
  d.shared = "threadgroup $T $n[$k];";
  d.shared_bytes = 32 << 10;
  d.own = "thread $T $n[$k];";
  d.barrier = "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);";
  d.unroll = "#pragma clang loop unroll(full)";
  d.packed_read = "*(device const $V*)($p + $i)";
  d.packed_write = "*(device $V*)($p + $i)";
  d.packed_lanes = {4, 2};
  set_literals(d);
  set_spellings(d);
  set_simd_reductions(d);
  set_simd_shuffles(d);
  set_atomics(d);
  set_matrix_products(d);
  return d;
}

}  // namespace

const Dialect& msl_dialect() {
  static const Dialect dialect = make_dialect();
  return dialect;
}

}  // namespace rune::render
