// The Lowered IR: one kernel as a list of scalar and vector instructions with structured loops.
//
// A kernel runs once for every point of its launch: `grid` workgroups of `local` threads each. An
// instruction's value is named by its position in the body. Values are scalars or vectors of
// `lanes`; operands of one instruction have equal lanes unless said otherwise. Memory is indexed in
// elements. Values defined inside a Range or If are not visible outside; Acc carries values out.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "alu/alu.h"
#include "types/scalar.h"
#include "types/shape.h"

namespace rune::lower {

struct Var {
  uint32_t id = ~uint32_t{0};
  bool valid() const { return id != ~uint32_t{0}; }
  auto operator<=>(const Var&) const = default;
};

struct Type {
  DType dtype = DType::Float32;
  int lanes = 1;
  bool pointer = false;  // memory of this dtype: Local, Private, Define_Global
  bool operator==(const Type&) const = default;
};

enum class SpecialKind : uint8_t {
  Global_task_idx,
  Local_thread_idx,
  Workgroup_idx,
  Previous_workgroup_idx
};
const char* name_of(SpecialKind kind);

// Memory that the threads of a workgroup share. At the start it has the contents that workgroup
// Previous_workgroup_idx left. If there is none, or if the kernel does not ask for its number, the
// contents are undefined.
struct Local {
  int64_t size = 0;
  RUNE_FIELDS(Local, f("size", size))
};
// Memory of one thread alone. Its contents are undefined at the start.
struct Private {
  int64_t size = 0;
  RUNE_FIELDS(Private, f("size", size))
};
// A mutable register. Args: (initial value). Reading the Acc gives its current value.
struct Acc : text::NoFields {};
// Argument number `index` of the kernel: memory of `size` elements.
struct Define_Global {
  int64_t index = 0;
  int64_t size = 0;
  bool writable = false;
  RUNE_FIELDS(Define_Global, f("index", index), f("size", size), f("writable", writable))
};
struct Const {
  Scalar value;
  RUNE_FIELDS(Const, f("", value))
};
// A vector constant, one value a lane.
struct Vconst {
  std::vector<Scalar> values;
  RUNE_FIELDS(Vconst, f("", values))
};
// A position in the launch, an integer in [0, bound). Workgroup_idx is the number of the workgroup,
// Local_thread_idx is that of the thread in it, and Global_task_idx is group * local + thread.
// Previous_workgroup_idx is the number of the workgroup of this launch that has used the Local
// memory before, or -1 if there is none. Only kernels with one thread a workgroup may ask for it.
struct Special {
  SpecialKind kind = SpecialKind::Workgroup_idx;
  int64_t bound = 1;
  RUNE_FIELDS(Special, f("", kind), f("bound", bound))
};
// The run-time value of a symbolic variable, an integer.
struct Define_Var {
  SymVar var;
  RUNE_FIELDS(Define_Var, f("", var))
};
// Args: (bound). Runs the body, up to the matching EndRange, once for each integer in [0, bound),
// in order. The value of the instruction is that integer.
struct Range : text::NoFields {};
struct EndRange : text::NoFields {};
// Args: (condition), a scalar bool. If the condition is true, ends the Range: neither the rest of
// the body runs nor another iteration. It stands directly in a Range, not in an If within it.
struct Break : text::NoFields {};
// Args: (condition), a scalar bool. The body ends at the matching EndIf.
struct If : text::NoFields {};
struct EndIf : text::NoFields {};
// Waits until all threads of the workgroup have reached it. Afterwards, the whole workgroup sees
// what they have written to Local and global memory.
struct Barrier : text::NoFields {};
// A Range of `iterations` that the target's compiler should unroll. Ends at EndRange.
struct Unroll {
  int64_t iterations = 0;
  RUNE_FIELDS(Unroll, f("iterations", iterations))
};
// Args: (memory, index[, valid]). With a scalar index and a result of n lanes, reads the elements
// index to index+n-1. With an index of n lanes, reads one element for each lane. `valid` has n
// lanes, or one for all of them. A lane for which it is false reads nothing and gives 0.
struct Load : text::NoFields {};
// Args: (memory, index, value[, valid]), which select elements as those of Load do. `nontemporal`
// says that the data is not read again soon. With the operation `atomic`, the element becomes
// `element op value` in one step, also if other threads store to it atomically at the same time.
struct Store {
  bool nontemporal = false;
  std::optional<AluOp> atomic = std::nullopt;
  RUNE_FIELDS(Store, f("nontemporal", nontemporal), f("atomic", atomic))
};
// Args: (memory, index), which select elements as those of Load do. A hint that these elements may
// be loaded soon. It changes no value, and does nothing if the index is outside of the memory.
struct Prefetch : text::NoFields {};
// A scalar operation, lane by lane.
struct Alu {
  AluOp op = AluOp::Add;
  RUNE_FIELDS(Alu, f("", op))
};
// Args: vectors of one type, whose lanes are numbered from the first vector's to the last one's.
// The result consists of the lanes `indices`, in this order. A single lane gives a scalar.
struct Shuffle {
  Ints indices;
  RUNE_FIELDS(Shuffle, f("indices", indices))
};
// A scalar in all lanes of the type.
struct Splat : text::NoFields {};
// Args: (a, b, c), tiles a[m,k], b[k,n], c[m,n]. The result is a @ b + c. The T threads of a
// SIMD-group share each tile, and each thread holds some lanes of it. `spread` has a list of
// strides for each tile: lane l of thread t holds the element whose row-major position is the sum
// of strides[i] over the bits i that are set in t + T * l. All threads of the workgroup execute the
// instruction together, as they do Simd_reduce.
struct Wmma {
  int64_t m = 0, n = 0, k = 0;
  std::vector<Ints> spread;
  RUNE_FIELDS(Wmma, f("m", m), f("n", n), f("k", k), f("spread", spread))
  // The number of threads that share a tile, if each holds this many lanes of the result.
  int64_t threads(int lanes) const { return m * n / lanes; }
};
// The position of element `number` (t + T * l) of a tile that is spread by these strides.
int64_t spread_position(const Ints& strides, int64_t number);
// Args: (x), a scalar. The threads of a workgroup, numbered along the x axis first, form
// SIMD-groups of `width` threads. `op` combines the values of each SIMD-group in an order that the
// target chooses, and each of its threads gets the result. All threads of the workgroup execute it
// together, as they do a Barrier, but it orders no accesses to memory.
struct Simd_reduce {
  AluOp op = AluOp::Add;
  int64_t width = 32;
  RUNE_FIELDS(Simd_reduce, f("", op), f("width", width))
};
// Args: (x, lane), scalars. SIMD-groups are those of Simd_reduce. Each thread gets the x of thread
// number `lane` of its SIMD-group; `lane` is in [0, width). All threads of the workgroup execute it
// together, as they do a Barrier, but it orders no accesses to memory.
struct Simd_shuffle {
  int64_t width = 32;
  RUNE_FIELDS(Simd_shuffle, f("width", width))
};
// Converts the operand to the type's dtype, as NumPy's astype does; see Scalar::cast.
struct Cast : text::NoFields {};
// Reinterprets the operand's bits as the type's dtype, which has the same size.
struct Bitcast : text::NoFields {};
// Args: (acc, value). Gives the Acc a new value.
struct Assign : text::NoFields {};
// User-supplied source, lane by lane. `text` is an expression of the target's language; for LLVM it
// is an instruction without `%name =`. In it, $0 $1 ... are the operands and $T0 $T1 ... their
// types, $T is the result's type, and $M is that type in the names of LLVM's intrinsics.
struct Custom {
  std::string op_name;
  std::string text;
  RUNE_FIELDS(Custom, f("", op_name), f("text", text))
};

// RUNE_INSTR(Kind, text, fewest args, most args (-1: any), has a value)
#define RUNE_LOWERED_INSTRS(RUNE_INSTR)                  \
  RUNE_INSTR(Local, "local", 0, 0, true)                 \
  RUNE_INSTR(Private, "private", 0, 0, true)             \
  RUNE_INSTR(Acc, "acc", 1, 1, true)                     \
  RUNE_INSTR(Define_Global, "define_global", 0, 0, true) \
  RUNE_INSTR(Const, "const", 0, 0, true)                 \
  RUNE_INSTR(Vconst, "vconst", 0, 0, true)               \
  RUNE_INSTR(Special, "special", 0, 0, true)             \
  RUNE_INSTR(Define_Var, "define_var", 0, 0, true)       \
  RUNE_INSTR(Range, "range", 1, 1, true)                 \
  RUNE_INSTR(EndRange, "endrange", 0, 0, false)          \
  RUNE_INSTR(Break, "break", 1, 1, false)                \
  RUNE_INSTR(If, "if", 1, 1, false)                      \
  RUNE_INSTR(EndIf, "endif", 0, 0, false)                \
  RUNE_INSTR(Barrier, "barrier", 0, 0, false)            \
  RUNE_INSTR(Unroll, "unroll", 0, 0, true)               \
  RUNE_INSTR(Load, "load", 2, 3, true)                   \
  RUNE_INSTR(Store, "store", 3, 4, false)                \
  RUNE_INSTR(Prefetch, "prefetch", 2, 2, false)          \
  RUNE_INSTR(Alu, "alu", 1, 3, true)                     \
  RUNE_INSTR(Shuffle, "shuffle", 1, -1, true)            \
  RUNE_INSTR(Splat, "splat", 1, 1, true)                 \
  RUNE_INSTR(Wmma, "wmma", 3, 3, true)                   \
  RUNE_INSTR(Simd_reduce, "simd_reduce", 1, 1, true)     \
  RUNE_INSTR(Simd_shuffle, "simd_shuffle", 2, 2, true)   \
  RUNE_INSTR(Cast, "cast", 1, 1, true)                   \
  RUNE_INSTR(Bitcast, "bitcast", 1, 1, true)             \
  RUNE_INSTR(Assign, "assign", 2, 2, false)              \
  RUNE_INSTR(Custom, "custom", 0, -1, true)

enum class InstrKind : uint8_t {
#define RUNE_INSTR(Name, text, least, most, value) Name,
  RUNE_LOWERED_INSTRS(RUNE_INSTR)
#undef RUNE_INSTR
};

namespace detail {
template <class Unused, class... Kinds>
using Variant = std::variant<Kinds...>;
}
// clang-format off
using AnyInstr = detail::Variant<void
#define RUNE_INSTR(Name, text, least, most, value) , Name
  RUNE_LOWERED_INSTRS(RUNE_INSTR)
#undef RUNE_INSTR
>;
// clang-format on
inline constexpr int kNumInstrKinds = std::variant_size_v<AnyInstr>;

// The fields of an instruction. It is a class, so that only instr.cpp instantiates the copies,
// moves and comparisons of all kinds.
struct Payload : AnyInstr {
  using AnyInstr::AnyInstr;
  Payload();
  Payload(const Payload&);
  Payload(Payload&&) noexcept;
  Payload& operator=(const Payload&);
  Payload& operator=(Payload&&) noexcept;
  ~Payload();
  bool operator==(const Payload& o) const;
};

// A row of the table RUNE_LOWERED_INSTRS.
struct InstrInfo {
  const char* text;
  int fewest_args, most_args;  // -1: any number
  bool has_value;
};
const InstrInfo& info(InstrKind kind);
inline const char* name_of(InstrKind kind) {
  return info(kind).text;
}
inline bool has_value(InstrKind kind) {
  return info(kind).has_value;
}

struct Instr {
  Payload payload;
  std::vector<Var> args;
  Type type;  // of the value; not used or compared if there is none
  bool operator==(const Instr& o) const {
    return payload == o.payload && args == o.args && (!has_value(kind()) || type == o.type);
  }
  InstrKind kind() const { return static_cast<InstrKind>(payload.index()); }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&payload);
  }
};

// Whether the instruction opens a scope (Range, Unroll or If), and whether it closes one.
inline bool opens_scope(InstrKind kind) {
  return kind == InstrKind::Range || kind == InstrKind::Unroll || kind == InstrKind::If;
}
inline bool closes_scope(InstrKind kind) {
  return kind == InstrKind::EndRange || kind == InstrKind::EndIf;
}

// The number of elements in the memory that a Local, Private or Define_Global defines.
int64_t size_of_memory(const Instr& memory);

// Whether all threads of a workgroup execute the instruction together.
bool is_collective(const Instr& instr);

using Instrs = std::vector<Instr>;

struct Kernel {
  std::string name;
  int64_t grid = 1;   // workgroups
  int64_t local = 1;  // threads of a workgroup
  Instrs body;
  std::vector<int64_t> arguments{};  // the values of the last Define_Vars in one launch, if known
  bool operator==(const Kernel&) const = default;
  const Instr& operator[](Var v) const { return body[v.id]; }
  // The Define_Global instructions, ordered by index.
  std::vector<Var> globals() const;
  // The offset of each Local, in the order of the body, in the memory that a workgroup needs for
  // all of them. Last comes the size of that memory. All are bytes, in multiples of 64.
  std::vector<int64_t> local_offsets() const;
  // Whether threads use only their number among all threads. A launch may then divide them into
  // workgroups of any size.
  bool has_independent_threads() const;
  // Whether loads should move in front of stores: loops store, and there are too few threads to
  // hide the latency of loads.
  bool needs_early_loads() const;
};

}  // namespace rune::lower

RUNE_ENUM_CODEC(rune::lower::SpecialKind, 4, rune::lower::name_of);

template <>
struct rune::text::Codec<rune::lower::Var> {
  static void print(std::string& out, rune::lower::Var v) { out += '%' + std::to_string(v.id); }
  static rune::lower::Var parse(Lexer& lexer) { return {lexer.value_id()}; }
};
