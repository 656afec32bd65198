// A compiled program as Python runs it: NumPy arrays in, NumPy arrays out.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bindings/bindings.h"
#include "runtime/executable.h"

namespace rune::bindings {

struct ArrayType {
  DType dtype = DType::Float32;
  Shape shape;
  bool operator==(const ArrayType&) const = default;
};

// The types of a sequence of (dtype, shape) pairs.
std::vector<ArrayType> to_array_types(const py::sequence& pairs);

class BoundProgram {
 public:
  BoundProgram(std::shared_ptr<const runtime::Executable> executable, std::vector<ArrayType> inputs,
               std::vector<ArrayType> outputs);

  const std::vector<ArrayType>& inputs() const { return inputs_; }
  const std::vector<ArrayType>& outputs() const { return outputs_; }

  // Runs the program on one argument an input: an ndarray of the input's type, or a Python or NumPy
  // number for a 0-d input. C-contiguous aligned arrays are read in place, others are copied. The
  // GIL is released while the program runs. 0-d results are NumPy scalars. Throws UserError(Type)
  // for an argument of another type.
  std::vector<py::object> run(std::span<const py::handle> arguments) const;

 private:
  std::shared_ptr<const runtime::Executable> executable_;
  std::vector<ArrayType> inputs_, outputs_;
  std::vector<py::dtype> output_dtypes_;
  bool host_memory_ = true;
};

}  // namespace rune::bindings
