// A C-like target language, as data: words, patterns and small tables.
//
// Patterns are text with `$` and one character, which the emitter replaces: $T a type, $U the
// unsigned type in which integers of type $T wrap, $n a name, $i an index or position, $k a count,
// $x digits, $p a pointer, $V a packed vector type, $a a list of values,
// $0 $1 $2 operands.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "alu/alu.h"

namespace rune::render {

// A function or type that rendered text may use; printed before the kernels if its name occurs in
// them or in a helper that is printed. Helpers come after those that they use.
struct Helper {
  std::string name;
  std::string text;
};

template <class T>
using PerDType = std::array<T, kNumDTypes>;

inline PerDType<std::string> by_dtype(std::initializer_list<std::pair<DType, const char*>> rows) {
  PerDType<std::string> table;
  for (const auto& [dtype, text] : rows) table[static_cast<size_t>(dtype)] = text;
  return table;
}

struct Dialect {
  std::string name;          // of the language, for messages
  std::string target;        // of the device, for messages
  std::string float64_hint;  // what to do where float64 is missing

  std::string preamble;  // includes and pragmas
  std::vector<Helper> helpers;

  // Types of values; empty where the language has none. Bool is held as uint8 in memory.
  PerDType<std::string> types;
  std::string wrap32, wrap64;  // $U of integers up to 32 bits, and of 64 bits
  // Dtypes that are only stored, converted and chosen between: arithmetic on them is widened
  // before.
  std::bitset<kNumDTypes> storage_only;

  // A kernel's head: $n its name, $k the threads of a group.
  std::string kernel;
  std::string read_parameter, write_parameter;  // a buffer: $T $n $i
  // All symbolic variables of a kernel as one parameter ($i its position, $k their number), and the
  // value of variable $i.
  std::string vars_parameter, var;
  std::vector<std::string> builtin_parameters;
  int max_parameters = 1 << 16;  // buffers and the variables' parameter
  // Where buffers are more than that: two parameters fewer are buffers, and one is a structure with
  // the addresses of the others. A member's or variable's declaration ($T $n), the parameter ($n
  // its type, $i), a member's value ($n), and how many members it may have; none where this is
  // empty.
  std::string read_member, write_member, members_parameter, member;
  int max_members = 0;
  // In 32 bits. The number among all threads follows from the two others where it is empty or too
  // large.
  std::string workgroup_index, thread_index, task_index;

  // Declares a table $n of $k elements $T, $x, outside of kernels, for constant vectors of more
  // lanes than `largest_vector`; they stand as literals where it is empty.
  std::string constant_table;
  int largest_vector = 4;

  std::string shared;  // declares $k elements $T $n of a workgroup's memory
  int64_t shared_bytes = 0;
  std::string own;      // declares $k elements $T $n of a thread's own memory
  std::string barrier;  // a statement
  // The first statement of a kernel, with its buffers $a, after which they may be accessed; or
  // empty. Kernels that need early loads do without.
  std::string begin;
  // The expressions that combine $0 of the SIMD-group's threads, by operation and dtype.
  std::map<std::pair<AluOp, DType>, std::string> simd_reduce;
  // The $0 of the thread number $1 of the SIMD-group, by dtype; empty where there is none.
  PerDType<std::string> simd_shuffle;
  // The statements that combine the element $p of global memory with $0 in one step, likewise.
  std::map<std::pair<AluOp, DType>, std::string> atomics;
  int simd_width = 0;  // threads of a SIMD-group
  // Products of tiles spread over a SIMD-group, and the functions of vectors (a, b, c) for them;
  // the type of a vector of $k elements $T, and its value of the list $a.
  std::vector<std::pair<MatrixOp, std::string>> matrix_products;
  std::string fragment = "$T$k", fragment_value = "$T$k($a)";
  std::string unroll;  // the line before a loop that is to be unrolled, or empty

  // Names of vector types of $k elements; empty where accesses are made element by element.
  // packed_read and packed_write are the places $p + $i in memory, packed_value a vector of the
  // list $a. With `access_bytes` vectors are aligned as a whole, have at most so many bytes, and
  // may be in shared memory; without, they are aligned as one element.
  PerDType<std::string> packed;
  std::string packed_value = "$V($a)";
  int access_bytes = 0;
  std::string packed_read, packed_write;
  std::vector<int> packed_lanes;  // widest first

  PerDType<std::string> integer_suffix;  // of literals
  PerDType<std::string> float_literal;   // a normal number of decimal digits $x; empty: by its bits
  PerDType<std::string> float_bits;      // a float of hexadecimal digits $x
  std::string bitcast;                   // $0 as $T, of equal size
  std::map<std::pair<DType, DType>, std::string> casts;  // from, to; others as `($T)$0`

  // Operations for which the language has the C library's functions.
  std::bitset<kNumAluOps> functions;
  // Spellings that differ from those of the emitter's table. (That table has the spellings that
  // depend on the dtype and so differ from alu.def.)
  std::map<std::pair<AluOp, DType>, std::string> spellings;

  bool has(DType d) const { return !types[static_cast<int>(d)].empty(); }
  const std::string& type(DType d) const { return types[static_cast<int>(d)]; }
  const std::string& memory_type(DType d) const { return type(is_bool(d) ? DType::Uint8 : d); }
  const std::string& wrap_type(DType d) const { return size_of(d) == 8 ? wrap64 : wrap32; }
};

// The capabilities that follow from the language: dtypes, limits, and the operations between
// threads. Scalar operations are the elementary ones (alu.h), at the costs of alu.def.
Capabilities capabilities_of(const Dialect& dialect);

}  // namespace rune::render
