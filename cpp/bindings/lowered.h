// A lowered program, as Python has it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bindings/program.h"
#include "driver/compile.h"

namespace rune::bindings {

// A lowered program with the types of its arguments and results.
struct PyLowered {
  driver::Lowered lowered;
  std::string device;
  std::vector<SizedType> inputs, outputs;
  std::vector<driver::HostFunction> functions;  // of the host calls, by number of the call
};

// Adds the methods that describe a lowered program.
void bind_description(py::class_<PyLowered, std::shared_ptr<PyLowered>>& lowered);

}  // namespace rune::bindings
