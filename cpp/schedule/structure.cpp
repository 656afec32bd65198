#include "schedule/structure.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/field_hash.h"

namespace rune::schedule {

namespace {

// Calls f with each Value among the fields.
template <class F>
class ValueVisitor {
 public:
  explicit ValueVisitor(F f) : f_(std::move(f)) {}
  void operator()(const char*, auto& member) { visit(member); }
  void visit(Value& v) { f_(v); }
  template <text::Reflected T>
  void visit(T& record) {
    record.fields(*this);
  }
  template <class T>
  void visit(std::vector<T>& list) {
    for (T& entry : list) visit(entry);
  }
  template <class T>
  void visit(std::optional<T>& member) {
    if (member) visit(*member);
  }
  void visit(Kernel::Body& body) {
    std::visit([this](auto& alternative) { visit(alternative); }, body);
  }
  void visit(const std::string&) {}
  void visit(const Dim&) {}
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void visit(const T&) {}

 private:
  F f_;
};

size_t input_number(const Kernel& kernel, Value v) {
  return std::find(kernel.inputs.begin(), kernel.inputs.end(), v) - kernel.inputs.begin();
}

// The limits of a Shrink on an input with an origin, from there on; nothing of other nodes. The
// kernel has its values by number.
std::optional<graph::DimPairs> limits_from_origin(const graph::Node& node, const Kernel& kernel,
                                                  const std::vector<Ints>& origins,
                                                  const KernelValues& values) {
  const auto* shrink = node.as<graph::Shrink>();
  if (!shrink) return std::nullopt;
  const auto operand = static_cast<uint32_t>(values.number_of(node.inputs[0]));
  const size_t input = input_number(kernel, Value{operand});
  if (input == origins.size() || origins[input].empty()) return std::nullopt;
  graph::DimPairs limits = shrink->limits;
  for (size_t d = 0; d < limits.size(); ++d) {
    limits[d].first = limits[d].first - origins[input][d];
    limits[d].second = limits[d].second - origins[input][d];
  }
  return limits;
}

}  // namespace

KernelValues::KernelValues(const Kernel& kernel) {
  const auto& ops = kernel.ops;  // ascending
  for (size_t i = 0; i < ops.size(); ++i) by_id_.push_back({ops[i], i});
  for (const Value v : kernel.inputs)
    if (!std::binary_search(ops.begin(), ops.end(), v)) by_id_.push_back({v, by_id_.size()});
  const auto inputs = by_id_.begin() + static_cast<std::ptrdiff_t>(ops.size());
  std::sort(inputs, by_id_.end());
  std::inplace_merge(by_id_.begin(), inputs, by_id_.end());
}

size_t KernelValues::number_of(Value v) const {
  const auto it = std::lower_bound(by_id_.begin(), by_id_.end(), std::pair{v, size_t{0}});
  return it != by_id_.end() && it->first == v ? it->second : size();
}

std::vector<Value> KernelValues::by_number() const {
  std::vector<Value> values(size());
  for (const auto& [v, number] : by_id_) values[number] = v;
  return values;
}

std::vector<Ints> origins_of(const Graph& graph, const Kernel& kernel) {
  std::vector<Ints> origins(kernel.inputs.size());
  if (!std::holds_alternative<Staged>(kernel.body)) return origins;
  std::vector<bool> whole(kernel.inputs.size(), false);  // read otherwise, too
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    const Value v = kernel.inputs[i];
    whole[i] = std::binary_search(kernel.ops.begin(), kernel.ops.end(), v) || kernel.stored(v);
  }
  for (const Value v : kernel.ops)
    for (const Value operand : graph[v].inputs) {
      const size_t i = input_number(kernel, operand);
      if (i == kernel.inputs.size()) continue;
      const auto* shrink = graph[v].as<graph::Shrink>();
      const auto is_fixed = [](const auto& limits) { return limits.first.is_constant(); };
      if (!shrink || !std::all_of(shrink->limits.begin(), shrink->limits.end(), is_fixed)) {
        whole[i] = true;
        continue;
      }
      const bool first = origins[i].empty();
      origins[i].resize(shrink->limits.size());
      for (size_t d = 0; d < shrink->limits.size(); ++d) {
        const int64_t low = shrink->limits[d].first.constant();
        origins[i][d] = first ? low : std::min(origins[i][d], low);
      }
    }
  for (size_t i = 0; i < origins.size(); ++i)
    if (whole[i]) origins[i].clear();
  return origins;
}

uint64_t StructureTable::hash_of(const Entry& entry) const {
  graph::FieldHash hash;
  hash.add(entry.kernel);
  for (const Value v : entry.values.by_number()) {
    hash.add(graph_[v].meta.dtype);
    hash.add(graph_[v].meta.shape);
  }
  for (const Value op : entry.ops) {
    const graph::Node& node = graph_[op];
    hash.add(node.kind());
    for (const Value operand : node.inputs) hash.add(entry.values.number_of(operand));
    if (!node.as<graph::Shrink>())
      std::visit([&](const auto& payload) { hash.add(payload); }, node.payload);
  }
  return hash.value();
}

bool StructureTable::equal(const Entry& a, const Entry& b) const {
  if (a.values.size() != b.values.size() || !(a.kernel == b.kernel)) return false;
  const std::vector<Value> x = a.values.by_number(), y = b.values.by_number();
  for (size_t i = 0; i < x.size(); ++i)  // of inputs, too
    if (graph_[x[i]].meta != graph_[y[i]].meta) return false;
  for (size_t op = 0; op < a.ops.size(); ++op)
    if (!computes_alike(op, a, b)) return false;
  return true;
}

bool StructureTable::computes_alike(size_t op, const Entry& a, const Entry& b) const {
  const graph::Node& x = graph_[a.ops[op]];
  const graph::Node& y = graph_[b.ops[op]];
  if (x.kind() != y.kind() || x.inputs.size() != y.inputs.size()) return false;
  for (size_t i = 0; i < x.inputs.size(); ++i) {
    const size_t operand = a.values.number_of(x.inputs[i]);
    if (operand != b.values.number_of(y.inputs[i])) return false;
    // The strides of what is read, and the range of indices into it.
    if (graph_[x.inputs[i]].meta != graph_[y.inputs[i]].meta) return false;
  }
  const auto limits = limits_from_origin(x, a.kernel, a.origins, a.values);
  if (limits != limits_from_origin(y, b.kernel, b.origins, b.values)) return false;
  return limits || x.payload == y.payload;
}

size_t StructureTable::add(const Kernel& kernel) {
  Entry entry{kernel.ops, kernel, KernelValues(kernel), origins_of(graph_, kernel)};
  ValueVisitor([&](Value& v) {
    v.id = static_cast<uint32_t>(entry.values.number_of(v));
  }).visit(entry.kernel);
  const uint64_t hash = hash_of(entry);
  const auto [first, last] = known_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (equal(entries_[it->second], entry)) return it->second;
  known_.emplace(hash, entries_.size());
  entries_.push_back(std::move(entry));
  return entries_.size() - 1;
}

Kernel instantiate(Kernel kernel, const Launch& launch) {
  std::map<Value, Value> launched;
  const auto match = [&](const std::vector<Value>& from, const std::vector<Value>& to) {
    RUNE_CHECK(from.size() == to.size(), "a launch of `", kernel.name, "` has other values");
    for (size_t i = 0; i < from.size(); ++i) launched[from[i]] = to[i];
  };
  match(kernel.ops, launch.ops);
  match(kernel.inputs, launch.inputs);
  match(kernel.outputs, launch.outputs);
  ValueVisitor([&](Value& v) { v = launched.at(v); }).visit(kernel);
  return kernel;
}

}  // namespace rune::schedule
