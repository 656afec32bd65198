// The text form of kernels: parse(print(k)) equals k.
//
//   kernel @k0 grid=4 local=1 {
//     %0 = define_global index=0 size=64 writable=true : ptr f32
//     %1 = special Workgroup_idx bound=4 : i64
//     %2 = const i64(16) : i64
//     %3 = alu mul %1 %2 : i64
//     %4 = load %0 %3 : f32x16
//     store nontemporal=false %0 %3 %4
//   }
//
// Ids are positions in the body. Instructions without a value also have ids.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lower/instr.h"

namespace rune::lower {

std::string print(const Kernel& kernel);
// `f32x8`, `ptr f32`
std::string type_text(const Type& type);
// The line of instruction `v`, without indentation and newline.
std::string print_instr(const Kernel& kernel, Var v);
// Throws UserError(Parse) with line and column.
Kernel parse(std::string_view text);
// Parses any number of kernels that follow each other.
std::vector<Kernel> parse_all(std::string_view text);

}  // namespace rune::lower
