// Each operation on constants, on arguments, and on some of each: whatever the graph passes make of
// them, the results are those of the evaluator, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "alu/eval.h"
#include "driver/compile.h"
#include "graph/builder.h"
#include "special_values.h"

namespace rune::driver {
namespace {

using Column = std::vector<Scalar>;

// Operands of one operation, by position; a row is one evaluation. All pairs of values, or a few.
std::vector<Column> operands_of(const AluInfo& row, DType dtype, bool all_pairs) {
  const Column values = special_values(dtype);
  const size_t n = values.size();
  std::vector<Column> columns(row.arity);
  for (size_t i = 0; i < (all_pairs && row.arity > 1 ? n * n : n); ++i) {
    const size_t at[] = {i % n, all_pairs ? i / n : (i + 5) % n, (5 * i + i / n + 1) % n};
    for (int position = 0; position < row.arity; ++position)
      columns[position].push_back(row.result == AluResult::Select && position == 0
                                      ? Scalar::of(DType::Bool, i % 2 == 0)
                                      : values[at[position]]);
  }
  return columns;
}

// Values of arguments, and what a graph makes of them.
struct Case {
  std::string name;
  std::vector<Column> columns;
  graph::Value result;
};

std::vector<uint8_t> bytes_of(const Column& column) {
  const size_t size = size_of(column[0].dtype());
  std::vector<uint8_t> bytes(column.size() * size);
  for (size_t i = 0; i < column.size(); ++i) column[i].store(bytes.data() + i * size);
  return bytes;
}

void check(const AluInfo& row, DType dtype) {
  graph::Builder builder;
  std::vector<std::vector<uint8_t>> memory;
  const auto arguments_of = [&](const std::vector<Column>& columns) {
    std::vector<graph::Value> arguments;
    for (const Column& column : columns) {
      arguments.push_back(
          builder.placeholder(column[0].dtype(), {static_cast<int64_t>(column.size())}));
      memory.push_back(bytes_of(column));
    }
    return arguments;
  };
  const std::vector<Column> pairs = operands_of(row, dtype, true);
  std::vector<graph::Value> constants;
  for (const Column& column : pairs) constants.push_back(builder.add(graph::Vconst{column}, {}));
  std::vector<Case> cases{{"of arguments", pairs, builder.alu(row.op, arguments_of(pairs))},
                          {"of constants", pairs, builder.alu(row.op, constants)}};
  const std::vector<Column> few = operands_of(row, dtype, false);
  const std::vector<graph::Value> arguments = arguments_of(few);
  for (int position = 0; position < row.arity; ++position)
    for (const Scalar& value : special_values(few[position][0].dtype())) {
      std::vector<Column> columns = few;
      std::fill(columns[position].begin(), columns[position].end(), value);
      std::vector<graph::Value> operands = arguments;
      operands[position] = builder.full(value, builder.shape(arguments[position]));
      cases.push_back({concat("with operand ", position, " constant"), std::move(columns),
                       builder.alu(row.op, operands)});
    }
  graph::Graph graph = builder.graph();
  for (const Case& one : cases) graph.outputs.push_back(one.result);

  const auto executable = compile(lower(graph, "interpreter"), "interpreter");
  const DType type = graph[cases[0].result].dtype();
  std::vector<std::vector<uint8_t>> results;
  std::vector<void*> inputs, outputs;
  for (auto& bytes : memory) inputs.push_back(bytes.data());
  for (const Case& one : cases) results.emplace_back(one.columns[0].size() * size_of(type));
  for (auto& bytes : results) outputs.push_back(bytes.data());
  executable->run(inputs, outputs);

  for (size_t c = 0; c < cases.size(); ++c)
    for (size_t i = 0; i < cases[c].columns[0].size(); ++i) {
      std::vector<Scalar> operands;
      std::string text;
      for (const Column& column : cases[c].columns) {
        operands.push_back(column[i]);
        text += ' ' + column[i].text();
      }
      const Scalar want = evaluate(row.op, operands);
      const Scalar found = Scalar::load(type, results[c].data() + i * size_of(type));
      const bool both_nan = std::isnan(want.as_double()) && std::isnan(found.as_double());
      ASSERT_TRUE(found == want || both_nan)
          << row.text << text << " : " << name_of(dtype) << ' ' << cases[c].name << " is "
          << found.text() << ", not " << want.text();
    }
}

class Constants : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(DTypes, Constants,
                         testing::Values(DType::Bool, DType::Int8, DType::Int64, DType::Uint16,
                                         DType::Uint64, DType::Float16, DType::Bfloat16,
                                         DType::Float32, DType::Float64),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(Constants, GiveWhatArgumentsGive) {
  for (const AluInfo& row : all_alu_ops())
    if (row.accepts(GetParam())) check(row, GetParam());
}

}  // namespace
}  // namespace rune::driver
