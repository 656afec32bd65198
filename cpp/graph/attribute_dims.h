// Visits the sizes among a node's attributes.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "graph/node.h"

namespace rune::graph {

namespace detail {

template <class F, class T>
void visit_dims(std::vector<T>& list, const F& f);
template <class F>
void visit_dims(std::pair<Dim, Dim>& pair, const F& f);

template <class F, class T>
void visit_dims(T& member, const F& f) {
  if constexpr (std::is_same_v<T, Dim>) {
    f(member);
  } else if constexpr (text::Reflected<T>) {
    member.fields([&](const char*, auto& field) { visit_dims(field, f); });
  }
}
template <class F, class T>
void visit_dims(std::vector<T>& list, const F& f) {
  if constexpr (!std::is_same_v<T, bool>)
    for (T& entry : list) visit_dims(entry, f);
}
template <class F>
void visit_dims(std::pair<Dim, Dim>& pair, const F& f) {
  f(pair.first);
  f(pair.second);
}

}  // namespace detail

// Calls f with each Dim among the fields of the payload, which f may change.
template <class F>
void change_dims(Payload& payload, const F& f) {
  std::visit([&](auto& node) { detail::visit_dims(node, f); }, payload);
}

// Calls f with each Dim of the node's shape and among its attributes.
template <class F>
void for_each_dim(const Node& node, const F& f) {
  for (const Dim& size : node.shape()) f(size);
  change_dims(const_cast<Payload&>(node.payload), [&](const Dim& size) { f(size); });
}

}  // namespace rune::graph
