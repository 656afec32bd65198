#include "render/llvm_ir_memory.h"

namespace rune::render::llvm {

namespace {

Value wide_index(Writer& w, const Value& index) {
  Value wide = size_of(index.dtype) == 8 ? index : emit_cast(w, index, DType::Int64);
  wide.dtype = DType::Int64;
  wide.displacement = index.displacement;
  return wide;
}

// The index with its displacement added, for uses other than an address.
Value whole_index(Writer& w, const Value& index) {
  Value wide = wide_index(w, index);
  const int64_t displacement = std::exchange(wide.displacement, 0);
  if (displacement == 0) return wide;
  return w.binary("add", wide, constant(DType::Int64, displacement, wide.lanes));
}

// The address of an element. The displacement is added last, to an address that adjacent elements
// share. LLVM takes a tenth less time if it sees the difference of addresses.
std::string offset(Writer& w, const std::string& pointer, DType dtype, const Value& index) {
  const std::string element = memory_type_text(dtype);
  std::string address = w.emit_once("getelementptr ", element, ", ptr ", pointer, ", ",
                                    type_text(index), ' ', index.text);
  if (index.displacement == 0) return address;
  return w.emit_once("getelementptr ", element, ", ptr ", address, ", i64 ", index.displacement);
}

std::string address_of(Writer& w, const Memory& memory, DType dtype, const Value& index) {
  return offset(w, memory.pointer, dtype, wide_index(w, index));
}

Value zero_of(DType dtype, int lanes) {
  return constant(Scalar::zero(dtype), lanes);
}

// The dtype that has the representation of this dtype in memory.
DType memory_dtype(DType dtype) {
  return is_bool(dtype) ? DType::Uint8 : dtype;
}

Value from_memory(Writer& w, const Value& raw, DType dtype) {
  return is_bool(dtype) ? emit_cast(w, raw, dtype) : raw;
}

std::string alignment(DType dtype) {
  return std::to_string(size_of(dtype));
}

// Loads an element without a branch: if it is masked, element 0 is read, and a select gives 0.
Value load_raw(Writer& w, const Memory& memory, DType raw_dtype, Value index, const Value* valid) {
  if (valid) {
    index = whole_index(w, index);
    index = w.select(*valid, index, zero_of(index.dtype, 1));
  }
  const std::string address = address_of(w, memory, raw_dtype, index);
  const Value raw =
      w.value(raw_dtype, 1, "load ", type_text(raw_dtype), ", ptr ", address, ", align ",
              alignment(raw_dtype), memory.read_only ? ", !invariant.load !0" : "");
  return valid ? w.select(*valid, raw, zero_of(raw_dtype, 1)) : raw;
}

Value load_scalar(Writer& w, const Memory& memory, DType dtype, const Value& index,
                  const Value* valid) {
  return from_memory(w, load_raw(w, memory, memory_dtype(dtype), index, valid), dtype);
}

// The mask of lanes, in a form whose value LLVM cannot know. LLVM divides masked loads and stores
// that are wider than a register. If it knows the mask of a part, it treats the part as an unmasked
// access of unknown size: LLVM 22 then loads a part without valid lanes, and fails when it compares
// such a part with another.
Value lane_mask(Writer& w, const Value& valid, DType dtype, int lanes) {
  Value mask = w.splat(valid, lanes);
  if (valid.lanes == 1 || lanes * size_of(dtype) <= w.register_bytes()) return mask;
  const std::string zero = w.emit_once("call i32 asm \"\", \"=r,0\"(i32 0)");
  const Value never{w.emit_once("trunc i32 ", zero, " to i1"), DType::Bool, 1};
  return w.binary("or", mask, w.splat(never, lanes));
}

// Whether any lane is valid.
Value any_of(Writer& w, const Value& valid) {
  if (valid.lanes == 1) return valid;
  const std::string name = "llvm.vector.reduce.or.v" + std::to_string(valid.lanes) + "i1";
  return w.call(name, DType::Bool, 1, {valid});
}

// A masked load. If no lane is valid, it loads from the memory's start: a masked load from a page
// that is not mapped takes hundreds of cycles on x86, even though it loads nothing.
Value load_masked(Writer& w, const std::string& memory, DType dtype, int lanes,
                  const std::string& address, const Value& valid) {
  const Value mask = lane_mask(w, valid, dtype, lanes);
  std::string here = address;
  if (mask.text[0] == '%') {  // else LLVM knows the mask, and drops the load if no lane is valid
    const Value any = valid.lanes == 1 ? valid : any_of(w, mask);
    here = w.emit("select i1 ", any.text, ", ptr ", address, ", ptr ", memory);
  }
  const std::string type = type_text(dtype, lanes);
  const std::string raw = w.call_raw("llvm.masked.load." + mangled(dtype, lanes) + ".p0", type,
                                     {{"ptr", here},
                                      {"i32", alignment(dtype)},
                                      {type_text(mask), mask.text},
                                      {type, "zeroinitializer"}});
  return {raw, dtype, lanes};
}

Value load_contiguous(Writer& w, const Memory& memory, DType dtype, int lanes, const Value& index,
                      const Value* valid) {
  const DType raw_dtype = memory_dtype(dtype);
  const std::string address = address_of(w, memory, dtype, index);
  const Value raw =
      valid ? load_masked(w, memory.pointer, raw_dtype, lanes, address, *valid)
            : w.value(raw_dtype, lanes, "load ", type_text(raw_dtype, lanes), ", ptr ", address,
                      ", align ", alignment(dtype), memory.read_only ? ", !invariant.load !0" : "");
  return from_memory(w, raw, dtype);
}

// Gathers elements that the CPU can gather.
Value gather_whole(Writer& w, DType dtype, const std::string& pointers, const Value& mask) {
  const std::string type = type_text(dtype, mask.lanes), lanes = std::to_string(mask.lanes);
  const std::string raw =
      w.call_raw("llvm.masked.gather." + mangled(dtype, mask.lanes) + ".v" + lanes + "p0", type,
                 {{vector_type("ptr", mask.lanes), pointers},
                  {"i32", alignment(dtype)},
                  {type_text(mask), mask.text},
                  {type, "zeroinitializer"}});
  return {raw, dtype, mask.lanes};
}

// Takes elements of less than 32 bits out of aligned words. Such a word may reach beyond the array,
// but not beyond the element's page. Elements are aligned, so none reaches into a second word.
Value gather_from_words(Writer& w, const Memory& memory, DType dtype, const Value& index,
                        const Value& mask) {
  const int lanes = index.lanes;
  const auto number = [&](DType of, int64_t n) { return constant(of, n, lanes); };
  const Value start{w.emit_once("ptrtoint ptr ", memory.pointer, " to i64"), DType::Int64, 1};
  Value offset = whole_index(w, index);
  if (size_of(dtype) == 2) offset = w.binary("shl", offset, number(DType::Int64, 1));
  const Value address = w.binary("add", w.splat(start, lanes), offset);
  const Value word = w.binary("and", address, number(DType::Int64, -4));
  const std::string pointers =
      w.emit("inttoptr ", type_text(word), ' ', word.text, " to ", vector_type("ptr", lanes));
  const Value words = gather_whole(w, DType::Uint32, pointers, mask);
  const Value byte =
      w.binary("and", w.convert("trunc", address, DType::Uint32), number(DType::Uint32, 3));
  const Value bits = w.binary("shl", byte, number(DType::Uint32, 3));
  return w.convert("trunc", w.binary("lshr", words, bits), dtype);
}

// A gather of elements of less than 32 bits would become a branch for each lane. Without a mask
// they are loaded one by one. With a mask, each lane takes several instructions more, so they are
// gathered in words where the CPU gathers words (AVX-512). A known mask costs nothing, and memory
// that this function writes may be its own, which has no page around it that LLVM knows of.
Value gather(Writer& w, const Memory& memory, DType dtype, const Value& index, const Value* valid) {
  const int lanes = index.lanes;
  const DType raw_dtype = memory_dtype(dtype);
  const Value mask = valid ? w.splat(*valid, lanes) : constant(DType::Bool, 1, lanes);
  const bool narrow = size_of(dtype) < 4;
  if (narrow && valid && valid->text[0] == '%' && memory.read_only && w.register_bytes() >= 64)
    return from_memory(w, gather_from_words(w, memory, raw_dtype, index, mask), dtype);
  if (!narrow || (valid && memory.size == 0))
    return from_memory(w, gather_whole(w, raw_dtype, address_of(w, memory, dtype, index), mask),
                       dtype);
  Value result{"poison", raw_dtype, lanes};
  for (int lane = 0; lane < lanes; ++lane) {
    Value lane_valid;
    if (valid) lane_valid = w.extract(*valid, lane);
    const Value element =
        load_raw(w, memory, raw_dtype, w.extract(index, lane), valid ? &lane_valid : nullptr);
    result = w.insert(result, element, lane);
  }
  return from_memory(w, result, dtype);
}

void store_scalar(Writer& w, const std::string& address, const Value& raw, const Value* valid) {
  const auto write = [&] {
    w.line("store ", type_text(raw), ' ', raw.text, ", ptr ", address, ", align ",
           alignment(raw.dtype));
  };
  if (!valid) return write();
  const std::string n = address.substr(1);  // unique in the function
  w.line("br i1 ", valid->text, ", label %store.", n, ", label %stored.", n);
  w.label("store." + n);
  write();
  w.line("br label %stored.", n);
  w.label("stored." + n);
}

}  // namespace

Value emit_load(Writer& w, const Memory& memory, DType dtype, int lanes, const Value& index,
                const Value* valid) {
  if (valid && valid->text == "true") valid = nullptr;
  if (index.lanes > 1) return gather(w, memory, dtype, index, valid);
  if (lanes == 1) {
    if (!valid || memory.size > 0) return load_scalar(w, memory, dtype, index, valid);
    return zero_of(dtype, 1);  // an empty memory has no valid element
  }
  return load_contiguous(w, memory, dtype, lanes, index, valid);
}

Value emit_shared_load(Writer& w, const Memory& memory, DType dtype, int lanes, const Value& index,
                       const Value* valid) {
  if (valid && valid->text == "true") valid = nullptr;
  if (!valid) return w.splat(load_scalar(w, memory, dtype, index, nullptr), lanes);
  if (memory.size == 0) return zero_of(dtype, lanes);
  const Value any = any_of(w, *valid);
  const Value all = w.splat(load_scalar(w, memory, dtype, index, &any), lanes);
  return valid->lanes == 1 ? all : w.select(*valid, all, zero_of(dtype, lanes));
}

void emit_store(Writer& w, const Memory& memory, const Value& index, Value value,
                const Value* valid, bool nontemporal) {
  if (valid && valid->text == "true") valid = nullptr;
  const DType dtype = value.dtype;
  const int lanes = value.lanes;
  if (is_bool(dtype)) value = emit_cast(w, value, DType::Uint8);
  const std::string type = type_text(value);
  if (index.lanes > 1) {
    const Value mask = valid ? w.splat(*valid, lanes) : constant(DType::Bool, 1, lanes);
    w.call_raw(
        "llvm.masked.scatter." + mangled(value.dtype, lanes) + ".v" + std::to_string(lanes) + "p0",
        "void",
        {{type, value.text},
         {vector_type("ptr", lanes), address_of(w, memory, dtype, index)},
         {"i32", alignment(dtype)},
         {type_text(mask), mask.text}});
    return;
  }
  const std::string address = address_of(w, memory, dtype, index);
  if (lanes == 1) return store_scalar(w, address, value, valid);
  if (valid) {
    const Value mask = lane_mask(w, *valid, value.dtype, lanes);
    w.call_raw("llvm.masked.store." + mangled(value.dtype, lanes) + ".p0", "void",
               {{type, value.text},
                {"ptr", address},
                {"i32", alignment(dtype)},
                {type_text(mask), mask.text}});
    return;
  }
  const int64_t bytes = int64_t{lanes} * size_of(dtype);
  const bool streams = nontemporal && bytes >= 16 && (bytes & (bytes - 1)) == 0;
  w.line("store ", type, ' ', value.text, ", ptr ", address, ", align ",
         streams ? std::to_string(bytes < 64 ? bytes : 64) : alignment(dtype),
         streams ? ", !nontemporal !1" : "");
}

void emit_prefetch(Writer& w, const Memory& memory, DType dtype, const Value& index) {
  if (memory.size == 0) return;
  for (int lane = 0; lane < index.lanes; ++lane) {
    const Value one = index.lanes > 1 ? w.extract(index, lane) : index;
    const std::string address = address_of(w, memory, dtype, one);
    // The arguments say: for reading or writing, into all caches, of data.
    w.call_raw(
        "llvm.prefetch.p0", "void",
        {{"ptr", address}, {"i32", memory.read_only ? "0" : "1"}, {"i32", "3"}, {"i32", "1"}});
  }
}

}  // namespace rune::render::llvm
