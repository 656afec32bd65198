// The interpreter's compact form of a kernel. Private to the interpreter.
//
// Each thread has a register file of words (alu/eval.h), with one word for each lane.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "alu/eval.h"
#include "lower/instr.h"

namespace rune::lower::interpreter {

enum class Code : uint8_t {
  Lanes,     // fn over all lanes
  Copy,      // dst = a
  Splat,     // each lane of dst = a
  Gather,    // lanes of dst from the registers in Program::gathers[extra]
  Position,  // dst = the SpecialKind `extra`
  Range,     // dst = 0; b = a; goes to `target` unless dst < b
  EndRange,  // ++dst; goes to `target` if dst < b
  Break,     // goes to `target` if a
  If,        // goes to `target` unless a
  Load,
  Store,
  Barrier,
  SimdReduce,   // dst = fn over the values a of each `extra` threads; waits like Barrier
  SimdShuffle,  // dst = a of the thread with number b of each `extra` threads; waits like Barrier
  Wmma,         // waits like Barrier
  End,
};

// In Load and Store, a is the index, b is the mask, and c is the stored value. If the store is
// atomic, fn combines the value with the element.
struct Op {
  Code code = Code::End;
  DType dtype = DType::Float32;  // of memory, its elements
  bool masked = false;
  uint8_t index_stride = 0;  // words between the lanes' indices: 0 or 1
  uint8_t mask_stride = 0;
  uint32_t lanes = 1;
  uint32_t dst = 0, a = 0, b = 0, c = 0;  // positions in the register file
  uint32_t target = 0;                    // the position of an op
  uint32_t extra = 0;                     // for memory, its position in Program::memories
  uint32_t source = 0;                    // the instruction's id
  WordFunction fn = nullptr;
};

struct MemoryInfo {
  bool global = false;      // else the memory of a workgroup
  bool is_private = false;  // each thread has its own
  DType dtype = DType::Float32;
  int64_t size = 0;
  int64_t index = 0;  // of global memory
  bool written = false;
  uint32_t source = 0;
};

struct WmmaInfo {
  uint32_t m = 0, n = 0, k = 0;
  Op cast_a, cast_b;  // cast to the accumulator's dtype, into separate registers
  WordFunction multiply_add;
  // The number of threads that hold a tile. For each of the tiles a, b and c: the position of the
  // element in lane l of thread t, at t + threads * l.
  uint32_t threads = 1;
  std::array<std::vector<uint32_t>, 3> positions;
};

struct VarInfo {
  SymVar var;
  std::vector<uint32_t> registers;
};

struct Program {
  Kernel kernel;
  std::vector<Op> ops;
  std::vector<uint64_t> image;  // a register file with the constants
  std::vector<MemoryInfo> memories;
  std::vector<std::vector<uint32_t>> gathers;
  std::vector<WmmaInfo> wmmas;
  std::vector<VarInfo> vars;
  std::vector<std::vector<uint32_t>> barrier_loops;  // by barrier: registers of its outer loops
  bool has_barrier = false;
  bool asks_for_previous = false;  // for the previous workgroup
};

Program decode(Kernel kernel);

// Converts elements of memory to words, and back.
void read_elements(DType dtype, const std::byte* from, uint64_t* to, uint32_t count);
void write_elements(DType dtype, const uint64_t* from, std::byte* to, uint32_t count);

}  // namespace rune::lower::interpreter
