#include "render/cuda.h"

#include "base/error.h"
#include "render/c_like.h"

namespace rune::render {

namespace {

constexpr const char* kBitcast = R"(template <class To, class From>
__device__ inline To rune_bitcast(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
)";
constexpr const char* kHalf = "struct rune_half { unsigned short bits; };\n";
constexpr const char* kBfloat = "struct rune_bfloat { unsigned short bits; };\n";
constexpr const char* kVector = R"(template <class T, int N>
struct __align__(sizeof(T) * N) rune_vector {
  T v[N];
  __device__ const T& operator[](int i) const { return v[i]; }
};
)";
constexpr const char* kVars = "template <int N>\nstruct rune_vars { long long v[N]; };\n";
constexpr const char* kFromHalf = R"(__device__ inline float rune_from_half(rune_half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
)";
constexpr const char* kToHalf = R"(__device__ inline rune_half rune_to_half(float x) {
  rune_half y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
__device__ inline rune_half rune_to_half(double x) {
  rune_half y;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
  return y;
}
)";
constexpr const char* kFromBfloat = R"(__device__ inline float rune_from_bfloat(rune_bfloat x) {
  return rune_bitcast<float>((unsigned)x.bits << 16);
}
)";
// Rounds to nearest even. Every NaN becomes the quiet one. A double is rounded to odd first, to the
// float towards zero, whose last bit says whether it is inexact.
constexpr const char* kToBfloat = R"(__device__ inline rune_bfloat rune_to_bfloat(float x) {
  const unsigned bits = rune_bitcast<unsigned>(x);
  if (x != x) return rune_bfloat{(unsigned short)((bits >> 16 & 0x8000u) | 0x7fc0u)};
  return rune_bfloat{(unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
__device__ inline rune_bfloat rune_to_bfloat(double x) {
  const float y = (float)x;
  if (y == x || x != x) return rune_to_bfloat(y);
  const unsigned above = (y > x) == (x > 0);
  return rune_to_bfloat(rune_bitcast<float>((rune_bitcast<unsigned>(y) - above) | 1u));
}
)";
constexpr const char* kMax = R"(template <class T>
__device__ inline T rune_max(T a, T b) { return a != a || a > b ? a : b; }
)";
constexpr const char* kMin = R"(template <class T>
__device__ inline T rune_min(T a, T b) { return a != a || a < b ? a : b; }
)";
constexpr const char* kFmax = R"(template <class T>
__device__ inline T rune_fmax(T a, T b) { return b != b || a > b ? a : b; }
)";
constexpr const char* kFmin = R"(template <class T>
__device__ inline T rune_fmin(T a, T b) { return b != b || a < b ? a : b; }
)";
// NumPy's conversions: NaN and values that do not fit give the lowest integer.
constexpr const char* kToInt = R"(template <class T>
__device__ inline int rune_to_int(T x) {
  return x > (T)-2147483648.0 && x < (T)2147483648.0 ? (int)x : (int)0x80000000u;
}
)";
constexpr const char* kToLong = R"(template <class T>
__device__ inline long long rune_to_long(T x) {
  return x > (T)-9223372036854775808.0 && x < (T)9223372036854775808.0 ? (long long)x
                                                                       : (long long)0x8000000000000000ull;
}
)";
constexpr const char* kToUlong = R"(template <class T>
__device__ inline unsigned long long rune_to_ulong(T x) {
  if (x >= (T)9223372036854775808.0)
    return (unsigned long long)rune_to_long(x - (T)9223372036854775808.0) ^ 0x8000000000000000ull;
  return (unsigned long long)rune_to_long(x);
}
)";

// rune_begin() waits until earlier kernels have ended and their writes can be read. If there are
// few workgroups, it also lets those of the next kernel begin, and wait, before these end. For many
// workgroups it does not, because that takes 0.5 ns each. rune_written() makes the compiler assume
// that the memory changes. Otherwise the compiler moves loads of constant memory before the wait.
constexpr const char* kWritten = R"(__device__ inline void rune_written(const void* memory) {
#if __CUDA_ARCH__ >= 900
  asm volatile("// %0;" ::"l"(memory) : "memory");
#endif
}
)";
constexpr const char* kBegin = R"(template <class... T>
__device__ inline void rune_begin(T*... memory) {
#if __CUDA_ARCH__ >= 900
  if (gridDim.x <= 256) asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  (rune_written(memory), ...);
}
)";

// Exchanges values between the threads of a warp. All of them must call it.
constexpr const char* kShuffle = R"(template <class T>
__device__ inline T rune_shuffle(T x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
)";
constexpr const char* kSimdReduce = R"(template <class T>
__device__ inline T $n(T x) {
  for (int mask = 16; mask > 0; mask >>= 1) {
    const T y = rune_shuffle(x, mask);
    x = $x;
  }
  return x;
}
)";

void set_types(Dialect& d) {
  d.types = by_dtype({{DType::Bool, "bool"},
                      {DType::Int8, "signed char"},
                      {DType::Int16, "short"},
                      {DType::Int32, "int"},
                      {DType::Int64, "long long"},
                      {DType::Uint8, "unsigned char"},
                      {DType::Uint16, "unsigned short"},
                      {DType::Uint32, "unsigned"},
                      {DType::Uint64, "unsigned long long"},
                      {DType::Float16, "rune_half"},
                      {DType::Bfloat16, "rune_bfloat"},
                      {DType::Float32, "float"},
                      {DType::Float64, "double"}});
  d.wrap32 = "unsigned";
  d.wrap64 = "unsigned long long";
  d.storage_only.set(static_cast<int>(DType::Float16));
  d.storage_only.set(static_cast<int>(DType::Bfloat16));
}

void set_literals_and_casts(Dialect& d) {
  d.integer_suffix = by_dtype({{DType::Uint32, "u"}, {DType::Int64, "ll"}, {DType::Uint64, "ull"}});
  d.float_literal = by_dtype({{DType::Float32, "$xf"}, {DType::Float64, "$x"}});
  d.float_bits = by_dtype({{DType::Float32, "rune_bitcast<float>(0x$xu)"},
                           {DType::Float64, "rune_bitcast<double>(0x$xull)"},
                           {DType::Float16, "rune_half{0x$x}"},
                           {DType::Bfloat16, "rune_bfloat{0x$x}"}});
  d.bitcast = "rune_bitcast<$T>($0)";
  d.casts[{DType::Float16, DType::Float32}] = "rune_from_half($0)";
  d.casts[{DType::Float32, DType::Float16}] = "rune_to_half($0)";
  d.casts[{DType::Float64, DType::Float16}] = "rune_to_half($0)";
  d.casts[{DType::Bfloat16, DType::Float32}] = "rune_from_bfloat($0)";
  d.casts[{DType::Float32, DType::Bfloat16}] = "rune_to_bfloat($0)";
  d.casts[{DType::Float64, DType::Bfloat16}] = "rune_to_bfloat($0)";
}

// The math library has a float version of every double function, whose name ends with an f.
void set_spellings(Dialect& d) {
  d.functions.set();
  for (const AluInfo& row : all_alu_ops()) {
    std::string text = row.c;
    // Operations that the emitter spells itself, or whose functions are overloaded.
    const bool other = text.empty() || text[0] == '(' || row.result == AluResult::Bool ||
                       row.op == AluOp::Fmax || row.op == AluOp::Fmin;
    if (!other) d.spellings[{row.op, DType::Float32}] = text.insert(text.find('('), "f");
  }
}

// Combines the values of a warp by a butterfly of shuffles, so that all threads get the result.
void set_simd_reductions(Dialect& d) {
  d.simd_width = 32;
  const auto add = [&](AluOp op, DType dtype, const std::string& text) {
    d.simd_reduce[{op, dtype}] = text;
  };
  add(AluOp::Max, DType::Bool, "(__any_sync(0xffffffffu, $0) != 0)");
  add(AluOp::Min, DType::Bool, "(__all_sync(0xffffffffu, $0) != 0)");
  for (const DType dtype :
       {DType::Int8, DType::Int16, DType::Int32, DType::Int64, DType::Uint8, DType::Uint16,
        DType::Uint32, DType::Uint64, DType::Float32, DType::Float64}) {
    const std::string& type = d.type(dtype);
    const bool is_small = size_of(dtype) < 4;
    const std::string operand = is_small ? "(int)$0" : "$0";
    const std::string result = is_small ? "(" + type + ")" : "";
    const char* const order = is_float(dtype) ? "" : "_integer";
    add(AluOp::Max, dtype, concat(result, "rune_simd_max", order, "(", operand, ")"));
    add(AluOp::Min, dtype, concat(result, "rune_simd_min", order, "(", operand, ")"));
    if (is_small) continue;
    const bool is_signed = kind(dtype) == Kind::Int;  // sums and products wrap
    for (const auto& [op, name] :
         {std::pair{AluOp::Add, "rune_simd_add"}, {AluOp::Mul, "rune_simd_mul"}})
      add(op, dtype,
          is_signed ? concat("(", type, ")", name, "((", d.wrap_type(dtype), ")$0)")
                    : concat(name, "($0)"));
  }
}

void set_simd_shuffles(Dialect& d) {
  for (const DType dtype :
       {DType::Int32, DType::Int64, DType::Uint32, DType::Uint64, DType::Float32, DType::Float64})
    d.simd_shuffle[static_cast<size_t>(dtype)] = "__shfl_sync(0xffffffffu, $0, $1)";
}

// Products of tensor cores. $n is the function's name, $T the operands' type, and $x the type's
// name in PTX. A register holds two adjacent elements.
constexpr const char* kMatrixProduct = R"(__device__ inline rune_vector<float, 4> $n(
    rune_vector<$T, 8> a, rune_vector<$T, 4> b, rune_vector<float, 4> c) {
  const auto pair = [](unsigned short low, unsigned short high) {
    return (unsigned)low | (unsigned)high << 16;
  };
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.$x.$x.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
      : "r"(pair(a[0].bits, a[1].bits)), "r"(pair(a[2].bits, a[3].bits)),
        "r"(pair(a[4].bits, a[5].bits)), "r"(pair(a[6].bits, a[7].bits)),
        "r"(pair(b[0].bits, b[1].bits)), "r"(pair(b[2].bits, b[3].bits)));
  return c;
}
)";

// How mma.m16n8k16 spreads its tiles: a thread has pairs of adjacent elements, in a row of a and c
// and in a column of b.
void set_matrix_products(Dialect& d) {
  const std::vector<Ints> spread{
      {2, 4, 16, 32, 64, 1, 128, 8}, {16, 32, 1, 2, 4, 8, 64}, {2, 4, 8, 16, 32, 1, 64}};
  for (const auto& [from, ptx] : {std::pair{DType::Float16, "f16"}, {DType::Bfloat16, "bf16"}}) {
    const std::string name = "rune_matmul_" + std::string(ptx);
    d.matrix_products.push_back({{16, 8, 16, from, DType::Float32, spread}, name});
    d.helpers.push_back(
        {name, c_like::expand(kMatrixProduct, {{'n', name}, {'T', d.type(from)}, {'x', ptx}})});
  }
}

// Addition wraps, so it is the same for signed and unsigned integers.
void set_atomics(Dialect& d) {
  for (const DType dtype : {DType::Uint32, DType::Uint64, DType::Float32, DType::Float64})
    d.atomics[{AluOp::Add, dtype}] = "atomicAdd(&$p, $0)";
  for (const DType dtype : {DType::Int32, DType::Int64}) {
    const std::string& wraps = d.wrap_type(dtype);
    d.atomics[{AluOp::Add, dtype}] = "atomicAdd((" + wraps + "*)&$p, (" + wraps + ")$0)";
  }
  for (const DType dtype : {DType::Int32, DType::Int64, DType::Uint32, DType::Uint64}) {
    d.atomics[{AluOp::Max, dtype}] = "atomicMax(&$p, $0)";
    d.atomics[{AluOp::Min, dtype}] = "atomicMin(&$p, $0)";
  }
}

Dialect make_dialect() {
  Dialect d;
  d.name = "CUDA C++";
  d.target = "cuda";
  d.helpers = {{"rune_half", kHalf},
               {"rune_bfloat", kBfloat},
               {"rune_vars", kVars},
               {"rune_vector", kVector},
               {"rune_bitcast", kBitcast},
               {"rune_from_half", kFromHalf},
               {"rune_to_half", kToHalf},
               {"rune_from_bfloat", kFromBfloat},
               {"rune_to_bfloat", kToBfloat},
               {"rune_max", kMax},
               {"rune_min", kMin},
               {"rune_fmax", kFmax},
               {"rune_fmin", kFmin},
               {"rune_to_int", kToInt},
               {"rune_to_long", kToLong},
               {"rune_to_ulong", kToUlong},
               {"rune_written", kWritten},
               {"rune_begin", kBegin},
               {"rune_shuffle", kShuffle}};
  for (const auto& [name, combine] : {std::pair{"rune_simd_add", "x + y"},
                                      {"rune_simd_mul", "x * y"},
                                      {"rune_simd_max_integer", "x > y ? x : y"},
                                      {"rune_simd_min_integer", "x < y ? x : y"},
                                      {"rune_simd_max", "rune_max(x, y)"},
                                      {"rune_simd_min", "rune_min(x, y)"}})
    d.helpers.push_back({name, c_like::expand(kSimdReduce, {{'n', name}, {'x', combine}})});
  set_types(d);
  d.kernel = "extern \"C\" __global__ void __launch_bounds__($k)\n$n";
  d.read_parameter = "const $T* __restrict__ $n";
  d.write_parameter = "$T* __restrict__ $n";
  for (size_t i = 0; i < d.types.size(); ++i)
    if (!d.types[i].empty()) d.packed[i] = "rune_vector<" + d.types[i] + ", $k>";
  d.packed_lanes = {8, 4, 2};
  d.packed_read = "*(const $V*)($p + $i)";
  d.packed_write = "*($V*)($p + $i)";
  d.packed_value = "$V{{$a}}";
  d.fragment = "rune_vector<$T, $k>";
  d.fragment_value = "rune_vector<$T, $k>{{$a}}";
  d.access_bytes = 16;
  d.vars_parameter = "const rune_vars<$k> vars";
  d.var = "vars.v[$i]";
  d.max_parameters = 256;
  d.workgroup_index = "blockIdx.x";
  d.thread_index = "threadIdx.x";
  d.shared = "__shared__ __align__(16) $T $n[$k];";  // accessed by vectors of 16 bytes
  d.shared_bytes = 48 << 10;
  d.own = "__align__(16) $T $n[$k];";
  d.barrier = "__syncthreads();";
  d.begin = "rune_begin($a);";
  d.unroll = "#pragma unroll";
  set_literals_and_casts(d);
  set_spellings(d);
  set_simd_reductions(d);
  set_simd_shuffles(d);
  set_matrix_products(d);
  set_atomics(d);
  return d;
}

}  // namespace

const Dialect& cuda_dialect() {
  static const Dialect dialect = make_dialect();
  return dialect;
}

}  // namespace rune::render
