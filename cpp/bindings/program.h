// A compiled program that Python runs: it takes NumPy's or device arrays and returns memory of the
// device.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bindings/array.h"
#include "bindings/bindings.h"
#include "runtime/executable.h"

namespace rune::bindings {

// The type of an input or output. Its sizes may be symbolic.
struct SizedType {
  DType dtype = DType::Float32;
  Shape shape;
};

class BoundProgram {
 public:
  // `vars` has the variables of the types' sizes, and others that the program reads.
  BoundProgram(std::shared_ptr<const runtime::Executable> executable,
               const std::vector<SizedType>& inputs, const std::vector<SizedType>& outputs,
               std::vector<SymVar> vars = {});

  // The types with the largest sizes.
  const std::vector<ArrayType>& inputs() const { return inputs_; }
  const std::vector<ArrayType>& outputs() const { return outputs_; }

  // Runs the program on one argument for each input: an ndarray or Array of the input's type, or a
  // Python or NumPy number for a 0-d input. Returns memory for each result, as an Array holds it.
  // C-contiguous aligned arrays in memory that the device addresses are read in place. Others are
  // copied. Arguments and results with a symbolic size that is not the first are copied too.
  //
  // The GIL is released while the program runs, unless the program is estimated to take less time
  // than releasing it. `values` has the variables that are not sizes of arguments, by name. Throws
  // UserError(Type) for an argument of another type. Throws UserError(Value) for a variable that
  // has no value, has two, or is out of bounds.
  //
  // `places` may have memory for each result, or null. For a result with a place, None is returned.
  // Places are only allowed where may_write_to is true.
  std::vector<py::object> run(std::span<const py::handle> arguments,
                              const std::map<std::string, int64_t>& values = {},
                              std::span<void* const> places = {}) const;

  // Whether a result may have its place in this input's memory: the program does not read that
  // memory, and nothing in it raises.
  bool may_write_to(size_t input, size_t output) const;
  // The array's memory if it can be the place of a result, otherwise null.
  void* place_in(py::handle array, size_t output) const;

 private:
  std::vector<py::object> run_sized(std::span<const py::handle> arguments,
                                    const std::vector<ArrayType>& inputs,
                                    const std::vector<ArrayType>& outputs,
                                    std::span<const int64_t> vars,
                                    std::span<void* const> places = {}) const;

  // Copies the elements of a result, which is stored with room for the largest sizes, to memory
  // without such room.
  py::object compact_copy(const py::object& memory, const ArrayType& type,
                          const py::dtype& dtype) const;

  std::shared_ptr<const runtime::Executable> executable_;
  std::vector<ArrayType> inputs_, outputs_;
  std::vector<Shape> input_shapes_, output_shapes_;
  std::vector<py::dtype> output_dtypes_;
  std::vector<SymVar> vars_;
  bool host_memory_ = true;
  bool is_brief_ = false;
};

// A program's result as a NumPy object: an ndarray, or a scalar if it is 0-d.
py::object to_numpy_result(const py::object& memory);

}  // namespace rune::bindings
