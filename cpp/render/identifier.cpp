#include "render/identifier.h"

#include <cctype>

namespace rune::render {

namespace {

// Keywords of C++20; address spaces, qualifiers and types of Metal; CUDA's words; the C library's
// `main`; and the variables that kernels declare as parameters.
constexpr std::string_view kReserved =
    " "
    "alignas alignof and and_eq as_type asm atomic_bool atomic_int atomic_uint auto bfloat "
    "bitand bitor blockDim blockIdx bool break case catch char char16_t char32_t char8_t "
    "class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit constant continue decltype default delete device do double dynamic_cast else "
    "enum explicit export extern false fast float float2 float3 float4 for fragment friend "
    "gid goto gridDim half half2 half3 half4 if inline int int2 int3 int4 kernel lid long "
    "main mem_flags metal mutable namespace new noexcept not not_eq nullptr operator or or_eq "
    "precise private protected ptrdiff_t public ray_data register reinterpret_cast requires "
    "return sampler short signed simdgroup size_t sizeof static static_assert static_cast "
    "struct switch template texture this thread threadIdx thread_local threadgroup "
    "threadgroup_barrier threadgroup_imageblock throw true try typedef typeid typename uchar "
    "uint uint2 uint3 uint4 ulong union unsigned ushort using vars vec vertex virtual visible "
    "void volatile warpSize wchar_t while xor xor_eq ";

// Library functions whose names rendered text uses. Those of the C library are also used with an
// `f` at the end.
constexpr std::string_view kFunctions =
    " "
    "abs acos acosh asin asinh atan atan2 atanh cbrt ceil clamp copysign cos cosh cross dot erf "
    "exp exp10 exp2 expm1 fabs floor fma fmax fmin fmod fract hypot isfinite isinf isnan "
    "ldexp length log log10 log1p log2 max min mix modf normalize pow rint round rsqrt "
    "saturate select sign signbit sin sinh sqrt step tan tanh trunc ";

bool contains(std::string_view words, const std::string& name) {
  return words.find(' ' + name + ' ') != std::string_view::npos;
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string out;
  for (const unsigned char c : name) {
    if (std::isalnum(c)) {
      out += static_cast<char>(c);
    } else if (!out.empty() && out.back() != '_') {
      out += '_';  // never two in a row, which C++ reserves
    }
  }
  // Helper functions of the rendered text start with rune_.
  if (out.empty() || std::isdigit(out[0]) || out.starts_with("rune_")) out = "k_" + out;
  const std::string stem = out.ends_with('f') ? out.substr(0, out.size() - 1) : out;
  if (contains(kReserved, out) || contains(kFunctions, out) || contains(kFunctions, stem))
    out += '_';
  return out;
}

}  // namespace rune::render
