// Libraries that are loaded when they are first needed, because a machine may lack them.
#pragma once

#include <string>

namespace rune::cuda {

// A shared library. It stays loaded until the process ends.
class Library {
 public:
  // Null `handle()` and a reason in `error()` if the file cannot be loaded.
  explicit Library(const std::string& file);
  void* handle() const { return handle_; }
  const std::string& error() const { return error_; }
  // Null if the library has no such symbol.
  void* find(const char* symbol) const;
  // Sets a pointer to a function. Returns whether the library has it.
  template <class Function>
  bool load(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(find(symbol));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace rune::cuda
