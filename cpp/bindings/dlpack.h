// The part of DLPack 1.0 (https://dmlc.github.io/dlpack) that the bindings need.
#pragma once

#include <cstdint>

namespace rune::bindings::dlpack {

struct Device {
  int32_t type;
  int32_t number;
};

enum class Code : uint8_t { Int = 0, Uint = 1, Float = 2, Bfloat = 4, Complex = 5, Bool = 6 };

struct DataType {
  Code code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // elements; null: C order
  uint64_t byte_offset;
};

// For consumers older than version 1. Its capsule is named "dltensor".
struct Managed {
  Tensor tensor;
  void* context;
  void (*release)(Managed* self);
};

struct Version {
  uint32_t major, minor;
};

constexpr uint64_t kReadOnly = 1;

// For consumers of version 1. Its capsule is named "dltensor_versioned".
struct VersionedManaged {
  Version version;
  void* context;
  void (*release)(VersionedManaged* self);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace rune::bindings::dlpack
