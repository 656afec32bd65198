// The base type of rune_jit.Array: an object that holds the memory of its elements and the name of
// its device. The Python class (python/rune_jit/arrays/array.py) inherits from it, so that programs
// read arguments and make results without calling Python.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bindings/bindings.h"
#include "runtime/device.h"

namespace rune::bindings {

struct ArrayType {
  DType dtype = DType::Float32;
  Ints shape;
  bool operator==(const ArrayType&) const = default;
};

size_t bytes_of(const ArrayType& type);
bool fits(const ArrayHeader& header, const ArrayType& type);

// A condition on values that programs compute. It can be checked when the device has run them.
class DeferredCheck {
 public:
  explicit DeferredCheck(std::function<void()> check) : check_(std::move(check)) {}
  // Waits for the device, and throws if the condition does not hold. The caller must hold the GIL.
  void verify();

 private:
  std::function<void()> check_;  // empty once the check has passed
};
using DeferredChecks = std::vector<std::shared_ptr<DeferredCheck>>;

// Elements in C order in the memory of a device that the host cannot address.
class DeviceMemory {
 public:
  // Allocates uninitialised memory. Throws what the device's allocator throws.
  DeviceMemory(std::shared_ptr<runtime::Device> device, ArrayType type);
  // Takes memory of another library. `release` is called when no launch uses the memory any more.
  DeviceMemory(std::shared_ptr<runtime::Device> device, ArrayType type, void* memory,
               std::function<void()> release);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  void* get() const { return memory_; }
  const ArrayType& type() const { return type_; }
  runtime::Device& device() const { return *device_; }
  void copy_in(const void* host);   // bytes_of(type) bytes
  void copy_out(void* host) const;  // after the device's launches
  std::shared_ptr<DeviceMemory> copy() const;

  // Conditions that must hold for the elements to be valid. They are verified before the elements
  // leave the device.
  const DeferredChecks& checks() const { return checks_; }
  void add_checks(const DeferredChecks& checks);
  void verify() const;

 private:
  std::shared_ptr<runtime::Device> device_;
  ArrayType type_;
  size_t bytes_;
  void* memory_ = nullptr;
  std::function<void()> release_;  // for another library's memory
  DeferredChecks checks_;
};

// Makes a C-contiguous numpy.ndarray of memory that `owner` keeps alive.
py::array make_ndarray(const ArrayType& type, const py::dtype& dtype, void* memory,
                       py::object owner);

// Makes a new C-contiguous numpy.ndarray. Its memory returns to the caching allocator when its last
// view is deleted.
py::array allocate_array(const ArrayType& type, const py::dtype& dtype);

// Whether this is a rune_jit.Array.
bool is_array(py::handle object);
// The memory of an Array: a numpy.ndarray, or a DeviceMemory.
py::object memory_of(py::handle array);
void set_memory(py::handle array, py::object memory);
// Replaces the elements of an Array, and of all Arrays that are views of the same array, by those
// of `memory`. Nobody else may write to this memory.
void write_array(py::handle array, const py::object& memory);
// The object that is shared by all Arrays that are views of one array in a device's memory. Null if
// there are no views.
py::handle views_of(py::handle array);
// The name of an Array's device: a str.
py::handle device_of(py::handle array);
// Whether there has been an Array in this process.
bool has_made_arrays();
// Makes an Array. `memory` is what memory_of returns.
py::object make_array(py::object memory, py::handle device);

// Copies the elements of one ndarray to another one of its dtype and shape. They must not overlap.
void copy_elements(py::handle to, const py::array& from);

// The elements of an Array or DeviceMemory as a numpy.ndarray: of the same memory if the host can
// address it, otherwise of a copy.
py::array to_host(py::handle memory);

}  // namespace rune::bindings
