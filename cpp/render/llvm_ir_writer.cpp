#include "render/llvm_ir_writer.h"

#include <bit>
#include <cctype>

#include "base/hash.h"

namespace rune::render::llvm {

namespace {

const char* element_type(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "i1";
    case DType::Int8:
    case DType::Uint8: return "i8";
    case DType::Int16:
    case DType::Uint16:
    case DType::Float16:
    case DType::Bfloat16: return "i16";
    case DType::Int32:
    case DType::Uint32: return "i32";
    case DType::Int64:
    case DType::Uint64: return "i64";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Complex64:
    case DType::Complex128: break;
  }
  RUNE_UNREACHABLE(numpy_name(dtype), " in a kernel");
}

std::string upper_hex(uint64_t value) {
  std::string out = hex(value);
  for (char& c : out) c = static_cast<char>(std::toupper(c));
  return out;
}

}  // namespace

std::string vector_type(const std::string& element, int lanes) {
  return lanes == 1 ? element : '<' + std::to_string(lanes) + " x " + element + '>';
}

std::string type_text(DType dtype, int lanes) {
  return vector_type(element_type(dtype), lanes);
}

std::string memory_type_text(DType dtype, int lanes) {
  return vector_type(is_bool(dtype) ? "i8" : element_type(dtype), lanes);
}

std::string mangled(DType dtype, int lanes) {
  const std::string element = dtype == DType::Float32   ? "f32"
                              : dtype == DType::Float64 ? "f64"
                                                        : element_type(dtype);
  return lanes == 1 ? element : 'v' + std::to_string(lanes) + element;
}

std::string constant_text(const Scalar& value) {
  switch (value.dtype()) {
    case DType::Bool: return value.as_bool() ? "true" : "false";
    case DType::Float16:
    case DType::Bfloat16: return std::to_string(value.bits());
    // LLVM writes a float as the double that equals it.
    case DType::Float32:
    case DType::Float64: return "0x" + upper_hex(std::bit_cast<uint64_t>(value.as_double()));
    default: return value.text();
  }
}

Value constant(const Scalar& value, int lanes) {
  const std::string element = constant_text(value);
  if (lanes == 1) return {element, value.dtype(), 1};
  return {"splat (" + type_text(value.dtype()) + ' ' + element + ')', value.dtype(), lanes};
}

Value vector_constant(const std::vector<Scalar>& values) {
  const DType dtype = values[0].dtype();
  if (values.size() == 1) return constant(values[0], 1);
  std::string text = "<";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) text += ", ";
    text += type_text(dtype) + ' ' + constant_text(values[i]);
  }
  return {text + '>', dtype, static_cast<int>(values.size())};
}

std::string Writer::call_raw(const std::string& name, const std::string& result_type,
                             const std::vector<std::pair<std::string, std::string>>& args) {
  std::string parameters, operands;
  for (const auto& [type, text] : args) {
    if (!parameters.empty()) {
      parameters += ", ";
      operands += ", ";
    }
    parameters += type;
    operands += type + ' ' + text;
  }
  declarations_.insert("declare " + result_type + " @" + name + '(' + parameters + ") nounwind");
  if (result_type == "void") {
    line("call void @", name, '(', operands, ')');
    return {};
  }
  return emit("call ", result_type, " @", name, '(', operands, ')');
}

Value Writer::call(const std::string& name, DType dtype, int lanes,
                   const std::vector<Value>& args) {
  std::vector<std::pair<std::string, std::string>> raw;
  for (const Value& arg : args) raw.emplace_back(type_text(arg), arg.text);
  return {call_raw(name, type_text(dtype, lanes), raw), dtype, lanes};
}

Value Writer::extract(const Value& vector, int lane) {
  if (vector.lanes == 1) return vector;
  return value(vector.dtype, 1, "extractelement ", type_text(vector), ' ', vector.text, ", i32 ",
               lane);
}

Value Writer::insert(const Value& vector, const Value& scalar, int lane) {
  return value(vector.dtype, vector.lanes, "insertelement ", type_text(vector), ' ', vector.text,
               ", ", type_text(scalar), ' ', scalar.text, ", i32 ", lane);
}

Value Writer::splat(const Value& scalar, int lanes) {
  if (scalar.lanes == lanes) return scalar;
  RUNE_CHECK(scalar.lanes == 1, "cannot splat ", scalar.lanes, " lanes to ", lanes);
  if (scalar.text[0] != '%')
    return {"splat (" + type_text(scalar) + ' ' + scalar.text + ')', scalar.dtype, lanes};
  // A shuffle would spread the bool as a vector of integers. If the mask is also needed in a
  // general register, LLVM 22 would read the signs of these integers and never make the mask itself
  // (AVX-512).
  if (is_bool(scalar.dtype))
    return value(DType::Bool, lanes, "select i1 ", scalar.text, ", ", vector_type("i1", lanes),
                 " splat (i1 true), ", vector_type("i1", lanes), " zeroinitializer");
  const Value first = insert({"poison", scalar.dtype, lanes}, scalar, 0);
  return value(scalar.dtype, lanes, "shufflevector ", type_text(first), ' ', first.text, ", ",
               type_text(first), " poison, ", vector_type("i32", lanes), " zeroinitializer");
}

Value Writer::shuffle(const std::vector<Value>& vectors, const Ints& indices) {
  const int lanes = static_cast<int>(indices.size()), width = vectors[0].lanes;
  const auto of = [&](int64_t i) -> const Value& { return vectors[i / width]; };
  if (lanes == 1) return extract(of(indices[0]), static_cast<int>(indices[0] % width));
  if (vectors.size() == 1 && width == 1) return splat(vectors[0], lanes);
  if (vectors.size() > 1 && width != lanes) {
    Value result{"poison", vectors[0].dtype, lanes};
    for (int lane = 0; lane < lanes; ++lane)
      result = insert(result, extract(of(indices[lane]), indices[lane] % width), lane);
    return result;
  }
  // A shuffle takes lanes of two vectors: of the lanes taken so far, and of the next vector.
  Value result = vectors[0];
  for (size_t next = 1; next == 1 || next < vectors.size(); ++next) {
    std::string mask;
    for (int lane = 0; lane < lanes; ++lane) {
      const int64_t from = indices[lane] / width, at = indices[lane] % width;
      const bool taken = next > 1 && from < static_cast<int64_t>(next);
      const int64_t i = taken ? lane : from == 0 ? at : width + at;
      const bool known = from <= static_cast<int64_t>(next);
      mask += (mask.empty() ? "i32 " : ", i32 ") + (known ? std::to_string(i) : "poison");
    }
    const std::string second = next < vectors.size() ? vectors[next].text : "poison";
    result =
        value(result.dtype, lanes, "shufflevector ", type_text(result), ' ', result.text, ", ",
              type_text(result), ' ', second, ", ", vector_type("i32", lanes), " <", mask, '>');
  }
  return result;
}

}  // namespace rune::render::llvm
