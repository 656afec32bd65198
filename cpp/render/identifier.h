// Names in rendered source text.
#pragma once

#include <string>
#include <string_view>

namespace rune::render {

// `name` as an identifier that is valid in C++, Metal, CUDA and LLVM IR. It consists of letters,
// digits and single `_`, and does not begin with a digit or `_`. A `_` is appended to a word that
// is reserved in one of these languages, and to the name of a type or function that rendered text
// uses. Different names may give the same identifier, so whoever renders several kernels checks for
// collisions.
std::string identifier(std::string_view name);

}  // namespace rune::render
