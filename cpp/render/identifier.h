// Names in rendered source text.
#pragma once

#include <string>
#include <string_view>

namespace rune::render {

// `name` as an identifier of C++, Metal and CUDA alike: letters, digits and single `_`, not
// starting with a digit or `_`; what is reserved in one of these languages, or is the name of a
// type or function that rendered text uses, ends with `_`. Equal names give equal identifiers;
// different ones may collide, so a library of several kernels checks that theirs differ.
std::string identifier(std::string_view name);

}  // namespace rune::render
