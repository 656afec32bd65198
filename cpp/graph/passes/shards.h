// Arrays whose shards lie on several devices, and operations computed shard by shard. Private to
// graph/passes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace rune::graph {

// Brings values to devices, each value to each device once.
class Transfers {
 public:
  // `program` is the device of values that name none.
  Transfers(Builder& builder, std::string program) : b_(builder), program_(std::move(program)) {}

  std::string device_of(Value v) const;
  // The value on a device: itself if it is there or a constant, which is everywhere.
  Value on(const std::string& device, Value v);
  Value on_program(Value v) { return on(program_, v); }

 private:
  bool is_constant(Value v) const;

  Builder& b_;
  const std::string program_;
  std::map<std::pair<std::string, Value>, Value> known_;
};

// A Multi node's value: split along an axis, or copies.
struct Shards {
  std::optional<int64_t> axis;
  std::vector<Value> parts;
};

// The parts of a node's value, where it follows part by part from those of its operands (null for
// an operand that is whole), each on the device of its part; nothing where it does not.
std::optional<Shards> compute_by_part(Builder& builder, Transfers& transfers, const Node& node,
                                      const std::vector<const Shards*>& operands,
                                      const std::function<Value(size_t)>& whole);
// The whole of it on the program's device.
Value gather_parts(Builder& builder, Transfers& transfers, const Shards& shards);

}  // namespace rune::graph
