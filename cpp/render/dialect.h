// A C-like target language, as data: words, patterns and small tables.
//
// Patterns are text with placeholders: `$` and one character. $T is a type, $U the unsigned type in
// which integers of type $T wrap, $n a name, $i an index or position, $k a count, $x digits, $p a
// pointer, $V a packed vector type, $a a list of values, and $0 $1 $2 are operands.
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

// A function or type that rendered text may use. It is printed before the kernels if its name
// occurs in them or in a printed helper. A helper comes after those that it uses.
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

  // Types of values, empty for dtypes that the language lacks. Bool is held as uint8 in memory.
  PerDType<std::string> types;
  std::string wrap32, wrap64;  // $U of integers up to 32 bits, and of 64 bits
  // Dtypes whose values are only stored, converted and selected. Arithmetic on them has been
  // widened before.
  std::bitset<kNumDTypes> storage_only;

  // A kernel's head: $n its name, $k the threads of a group.
  std::string kernel;
  std::string read_parameter, write_parameter;  // a buffer: $T $n $i
  // The parameter that holds all symbolic variables of a kernel ($i is its position, $k the number
  // of variables), and the value of variable $i.
  std::string vars_parameter, var;
  std::vector<std::string> builtin_parameters;
  int max_parameters = 1 << 16;  // buffers and the variables' parameter
  // If a kernel has more buffers than that, all but max_parameters - 2 of them are passed as
  // members of one structure of addresses. The patterns are the declaration of a member or variable
  // ($T $n), the parameter ($n its type, $i) and a member's value ($n). max_members is the
  // structure's limit. A language without such structures leaves these empty.
  std::string read_member, write_member, members_parameter, member;
  int max_members = 0;
  // Numbers in 32 bits: of the workgroup, of the thread in it, and of the thread among all. If the
  // last one is empty or may exceed 32 bits, it is computed from the two others.
  std::string workgroup_index, thread_index, task_index;

  // Declares a table $n of $k elements of type $T, with the values $x, outside of kernels. It holds
  // a constant vector of more lanes than `largest_vector`. If the pattern is empty, such vectors
  // are written as literals.
  std::string constant_table;
  int largest_vector = 4;

  std::string shared;  // declares $n, $k elements of type $T in a workgroup's memory
  int64_t shared_bytes = 0;
  std::string own;      // declares $n, $k elements of type $T in a thread's own memory
  std::string barrier;  // a statement
  // The first statement of a kernel, or empty. Its buffers $a may be accessed only after it.
  // Kernels that need early loads do without it.
  std::string begin;
  // Expressions that combine the values $0 of a SIMD-group's threads, by operation and dtype.
  std::map<std::pair<AluOp, DType>, std::string> simd_reduce;
  // Expressions for the value $0 of thread $1 of the SIMD-group, by dtype. Empty where the language
  // has none.
  PerDType<std::string> simd_shuffle;
  // Statements that combine the element $p of global memory with $0 in one atomic step, by
  // operation and dtype.
  std::map<std::pair<AluOp, DType>, std::string> atomics;
  int simd_width = 0;  // threads of a SIMD-group
  // Products of tiles that are spread over a SIMD-group, each with its function of vectors (a, b,
  // c). Then the type of a vector of $k elements of type $T, and the vector of the values $a.
  std::vector<std::pair<MatrixOp, std::string>> matrix_products;
  std::string fragment = "$T$k", fragment_value = "$T$k($a)";
  std::string unroll;  // the line before a loop that is to be unrolled, or empty

  // Names of vector types of $k elements, for accesses to memory. Dtypes without one are accessed
  // element by element. packed_read and packed_write are the place $p + $i in memory, and
  // packed_value is the vector of the values $a. If `access_bytes` is set, vectors have at most
  // that many bytes, are aligned as a whole and may be in shared memory. If it is 0, they are
  // aligned as one element.
  PerDType<std::string> packed;
  std::string packed_value = "$V($a)";
  int access_bytes = 0;
  std::string packed_read, packed_write;
  std::vector<int> packed_lanes;  // widest first

  PerDType<std::string> integer_suffix;  // of a literal
  PerDType<std::string> float_literal;   // a normal number, from decimal digits $x; may be empty
  PerDType<std::string> float_bits;      // any float, from the hexadecimal digits $x of its bits
  std::string bitcast;                   // $0 as $T, of equal size
  std::map<std::pair<DType, DType>, std::string> casts;  // by (from, to); others are `($T)$0`

  // Operations for which the language has the C library's functions.
  std::bitset<kNumAluOps> functions;
  // Spellings that differ from those of the emitter's table. (That table has the spellings that
  // depend on the dtype. All others are those of alu.def.)
  std::map<std::pair<AluOp, DType>, std::string> spellings;

  bool has(DType d) const { return !types[static_cast<int>(d)].empty(); }
  const std::string& type(DType d) const { return types[static_cast<int>(d)]; }
  const std::string& memory_type(DType d) const { return type(is_bool(d) ? DType::Uint8 : d); }
  const std::string& wrap_type(DType d) const { return size_of(d) == 8 ? wrap64 : wrap32; }
};

// The capabilities that follow from the language: dtypes, limits, and the operations between
// threads. The native scalar operations are the elementary ones (alu.h), with the costs of alu.def.
Capabilities capabilities_of(const Dialect& dialect);

}  // namespace rune::render
