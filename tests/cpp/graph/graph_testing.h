// What the tests of graphs share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "graph/text.h"
#include "graph/verify.h"

namespace rune::graph {

// A valid graph that holds every kind of node at least once.
Graph every_kind();

// The core nodes of a program of `device`, checked to be valid.
Graph to_core(const Graph& graph, const std::string& device = "cpu");

// Core nodes of every kind that every_kind leads to; each is an output.
Graph every_core_kind();

// The message of the UserError that `action` throws, or "no error".
template <class F>
std::string error_of(F&& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// Checks that a graph is valid and that its text reads back to it.
inline void expect_valid(const Graph& graph) {
  EXPECT_EQ(verify(graph), std::vector<std::string>{}) << print(graph);
  const std::string text = print(graph);
  const Graph again = parse(text);
  EXPECT_TRUE(equal(again, graph)) << text;
  EXPECT_EQ(print(again), text);
}

}  // namespace rune::graph
