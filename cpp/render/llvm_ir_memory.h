// Loads and stores for the LLVM IR renderer.
#pragma once

#include "render/llvm_ir_writer.h"

namespace rune::render::llvm {

struct Memory {
  std::string pointer;
  int64_t size = 0;  // elements
  bool read_only = false;
};

// Emits a lower::Load. `valid` may be null.
Value emit_load(Writer& w, const Memory& memory, DType dtype, int lanes, const Value& index,
                const Value* valid);
// Emits a lower::Load whose lanes all read the element at this scalar index. `valid` may be null.
Value emit_shared_load(Writer& w, const Memory& memory, DType dtype, int lanes, const Value& index,
                       const Value* valid);
// Emits a lower::Store. `valid` may be null.
void emit_store(Writer& w, const Memory& memory, const Value& index, Value value,
                const Value* valid, bool nontemporal);
// Emits a lower::Prefetch.
void emit_prefetch(Writer& w, const Memory& memory, DType dtype, const Value& index);

}  // namespace rune::render::llvm
