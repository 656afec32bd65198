// Hashes of structs that list their fields (RUNE_FIELDS).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "graph/node.h"

namespace rune::graph {

// Hashes attributes by their fields; equal payloads have equal hashes.
class FieldHash {
 public:
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void add(T v) {
    hash_ = hash_combine(hash_, static_cast<uint64_t>(v));
  }
  void add(const std::string& v) { add(hash_bytes(v)); }
  void add(const Scalar& v) {
    add(v.dtype());
    add(v.bits());
  }
  void add(Value v) { add(v.id); }
  void add(const Dim& v) {
    add(v.offset());
    for (const Dim::Term& term : v.terms()) {
      add(term.var.name);
      add(term.coefficient);
    }
  }
  void add(const Subgraph& v) { add(v.graph->size()); }
  void add(const CustomAttr& v) { add(text::to_text(v)); }
  template <class T>
  void add(const std::vector<T>& v) {
    add(v.size());
    for (const auto& element : v) add(static_cast<const T&>(element));
  }
  void add(const std::vector<bool>& v) {
    add(v.size());
    for (const bool element : v) add(element);
  }
  template <class A, class B>
  void add(const std::pair<A, B>& v) {
    add(v.first);
    add(v.second);
  }
  template <class T>
  void add(const std::optional<T>& v) {
    add(v.has_value());
    if (v) add(*v);
  }
  template <class... T>
  void add(const std::variant<T...>& v) {
    add(v.index());
    std::visit([&](const auto& alternative) { add(alternative); }, v);
  }
  template <text::Reflected T>
  void add(const T& v) {
    const_cast<T&>(v).fields([&](const char*, auto& member) { add(std::as_const(member)); });
  }

  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0;
};

}  // namespace rune::graph
