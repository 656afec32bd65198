// What the tests of scheduling share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "graph/text.h"
#include "schedule/analysis/analysis.h"
#include "schedule/analysis/dependencies.h"
#include "schedule/fusion/fuse_kernels.h"
#include "schedule/mapping/mapping.h"
#include "schedule/memory/memory_plan.h"
#include "schedule/schedule.h"
#include "schedule/text.h"
#include "schedule/verify/verify.h"

namespace rune::schedule {

using graph::Builder;

constexpr int64_t kFloat = 4;  // bytes

// Two cores with vectors of 512 bits.
Capabilities cores();
// A GPU of 16 compute units, with groups of up to 1024 threads in SIMD groups of 32.
Capabilities grid();

// Runs all scheduling passes on the graph and checks the result: valid, and its text reads back to
// it.
Schedule schedule_graph(const graph::Graph& graph, const Capabilities& caps);
// The same for a builder's graph with these outputs.
Schedule schedule_of(const Builder& builder, std::vector<Value> outputs, const Capabilities& caps);

void expect_valid(const Schedule& schedule);

// The kernel that an item launches, with the launch's values.
Kernel kernel_at(const Schedule& schedule, size_t item);
// Fails if the plan has none of the value.
const Allocation& allocation_of(const Schedule& schedule, Value v);
// Sizes of the kernel's axes, in order.
Ints axis_sizes(const Kernel& kernel);
int64_t bytes_read(const Schedule& schedule);
int64_t bytes_written(const Schedule& schedule);
std::vector<StageKind> stage_kinds(const Kernel& kernel);

// Common pieces of programs, all on float32.
Value input(Builder& b, Shape shape);
Value scalar_like(Builder& b, double value, Value like);
// A mean over the axes; the rank stays.
Value mean(Builder& b, Value x, Ints axes);
Value softmax(Builder& b, Value x, int64_t axis);
Value layernorm(Builder& b, Value x);

}  // namespace rune::schedule
