// Each operation on constants, on arguments, and on some of each: whatever the graph passes make of
// them, the results are those of the evaluator, bit by bit.
#include <gtest/gtest.h>

#include "alu/eval.h"
#include "driver/compile.h"
#include "graph/builder.h"
#include "special_values.h"

namespace rune::driver {
namespace {

using Column = std::vector<Scalar>;

// Operands of one operation, by position; a row is one evaluation.
std::vector<Column> operands_of(const AluInfo& row, DType dtype) {
  const Column values = special_values(dtype);
  const size_t n = values.size();
  std::vector<Column> columns(row.arity);
  if (row.arity == 1) columns[0] = values;
  if (row.arity > 1)
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        columns[0].push_back(values[i]);
        columns[1].push_back(values[j]);
        if (row.arity == 3) columns[2].push_back(values[(5 * i + 3 * j + 1) % n]);
      }
  if (row.result == AluResult::Select)
    for (size_t i = 0; i < columns[0].size(); ++i)
      columns[0][i] = Scalar::of(DType::Bool, i % 2 == 0);
  return columns;
}

// One way to give an operation its operands: position `splat` is the constant `value` in all rows.
struct Variant {
  std::string name;
  graph::Value result;
  int splat = -1;
  Scalar value;
};

std::vector<uint8_t> bytes_of(const Column& column) {
  const size_t size = size_of(column[0].dtype());
  std::vector<uint8_t> bytes(column.size() * size);
  for (size_t i = 0; i < column.size(); ++i) column[i].store(bytes.data() + i * size);
  return bytes;
}

void check(const AluInfo& row, DType dtype) {
  const std::vector<Column> columns = operands_of(row, dtype);
  const auto size = static_cast<int64_t>(columns[0].size());
  graph::Builder builder;
  std::vector<graph::Value> arguments, constants;
  std::vector<std::vector<uint8_t>> memory;
  for (const Column& column : columns) {
    arguments.push_back(builder.placeholder(column[0].dtype(), {size}));
    constants.push_back(builder.add(graph::Vconst{column}, {}));
    memory.push_back(bytes_of(column));
  }
  std::vector<Variant> variants{{"of arguments", builder.alu(row.op, arguments), -1, {}},
                                {"of constants", builder.alu(row.op, constants), -1, {}}};
  for (int position = 0; position < row.arity; ++position)
    for (const Scalar& value : special_values(columns[position][0].dtype())) {
      std::vector<graph::Value> some = arguments;
      some[position] = builder.full(value, {size});
      variants.push_back({concat("with operand ", position, " constant"), builder.alu(row.op, some),
                          position, value});
    }
  graph::Graph graph = builder.graph();
  for (const Variant& variant : variants) graph.outputs.push_back(variant.result);

  const auto executable = compile(lower(graph, "interpreter"), "interpreter");
  const DType type = graph[variants[0].result].dtype();
  std::vector<std::vector<uint8_t>> results(variants.size(),
                                            std::vector<uint8_t>(size * size_of(type)));
  std::vector<void*> inputs, outputs;
  for (auto& bytes : memory) inputs.push_back(bytes.data());
  for (auto& bytes : results) outputs.push_back(bytes.data());
  executable->run(inputs, outputs);

  for (size_t v = 0; v < variants.size(); ++v)
    for (int64_t i = 0; i < size; ++i) {
      std::vector<Scalar> operands;
      std::string text;
      for (int position = 0; position < row.arity; ++position) {
        operands.push_back(position == variants[v].splat ? variants[v].value
                                                         : columns[position][i]);
        text += ' ' + operands.back().text();
      }
      const Scalar want = evaluate(row.op, operands);
      const Scalar found = Scalar::load(type, results[v].data() + i * size_of(type));
      const bool both_nan = std::isnan(want.as_double()) && std::isnan(found.as_double());
      ASSERT_TRUE(found == want || both_nan)
          << row.text << text << " : " << name_of(dtype) << ' ' << variants[v].name << " is "
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
