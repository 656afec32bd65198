#include "schedule/structure.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "graph/field_hash.h"
#include "schedule/indexing/indexing.h"

namespace rune::schedule {

namespace {

// The most arguments of a kernel. Each is loaded when it starts, and integers stay in registers.
constexpr size_t kMostArguments = 64, kMostIntegerArguments = 4;

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
    std::visit([&](auto& alternative) { visit(alternative); }, body);
  }
  void visit(const std::string&) {}
  void visit(const Dim&) {}
  template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
  void visit(const T&) {}

 private:
  F f_;
};

// The nodes that a kernel computes, operands before users. The order depends only on the outputs.
// Ids do not give such an order, because a constant may be older than one kernel and younger than
// another.
std::vector<Value> ops_in_order(const Graph& graph, const Kernel& kernel) {
  std::vector<bool> seen(kernel.ops.size(), false);
  std::vector<Value> result;
  const auto position = [&](Value v) {
    const auto it = std::lower_bound(kernel.ops.begin(), kernel.ops.end(), v);
    const bool found = it != kernel.ops.end() && *it == v;
    return found ? static_cast<size_t>(it - kernel.ops.begin()) : kernel.ops.size();
  };
  std::vector<std::pair<Value, size_t>> path;  // with the number of visited operands
  const auto enter = [&](Value v) {
    const size_t i = position(v);
    if (i == seen.size() || seen[i]) return;
    seen[i] = true;
    path.push_back({v, 0});
  };
  const auto visit = [&](Value root) {
    enter(root);
    while (!path.empty()) {
      const auto [v, next] = path.back();
      const std::vector<Value>& operands = graph[v].inputs;
      if (next < operands.size()) {
        ++path.back().second;
        enter(operands[next]);
      } else {
        result.push_back(v);
        path.pop_back();
      }
    }
  };
  for (const Value v : kernel.outputs) visit(v);
  for (const Value v : kernel.ops) visit(v);
  return result;
}

// Numbers the values of a kernel: first those that it computes, then those that it reads, each in
// order.
class KernelValues {
 public:
  KernelValues(const std::vector<Value>& ops, const std::vector<Value>& inputs);
  size_t size() const { return by_id_.size(); }
  // Returns size() for other values.
  size_t number_of(Value v) const;
  std::vector<Value> by_number() const;

 private:
  std::vector<std::pair<Value, size_t>> by_id_;
};

KernelValues::KernelValues(const std::vector<Value>& ops, const std::vector<Value>& inputs) {
  for (const Value v : ops) by_id_.push_back({v, by_id_.size()});
  std::sort(by_id_.begin(), by_id_.end());
  std::vector<std::pair<Value, size_t>> read;
  for (const Value v : inputs)
    if (number_of(v) == size()) read.push_back({v, ops.size() + read.size()});
  by_id_.insert(by_id_.end(), read.begin(), read.end());
  const auto first_input = by_id_.begin() + static_cast<std::ptrdiff_t>(ops.size());
  std::sort(first_input, by_id_.end());
  std::inplace_merge(by_id_.begin(), first_input, by_id_.end());
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

size_t input_number(const Kernel& kernel, Value v) {
  return std::find(kernel.inputs.begin(), kernel.inputs.end(), v) - kernel.inputs.begin();
}

// For each input of the kernel, the least index along each axis that it reads, if it reads the
// input only through Shrink nodes on it. Otherwise nothing.
std::vector<Ints> origins_of(const Graph& graph, const Kernel& kernel) {
  std::vector<Ints> origins(kernel.inputs.size());
  if (!kernel.phases().empty()) return origins;
  std::vector<bool> whole(kernel.inputs.size(), false);  // whether it is also read otherwise
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

// Whether constant operands must stay constants: they make the operation cheaper, or are indices.
bool needs_constants(const graph::Node& node) {
  static constexpr AluOp kCheaper[] = {AluOp::Mul,  AluOp::Mulacc, AluOp::Div, AluOp::Idiv,
                                       AluOp::Fmod, AluOp::Mod,    AluOp::Shl, AluOp::Shr};
  const Evaluation evaluation = evaluation_of(node);
  if (evaluation == Evaluation::Gathered || evaluation == Evaluation::Scattered) return true;
  std::optional<AluOp> op;
  if (const auto* binop = node.as<graph::Binop>()) op = binop->op;
  if (const auto* ternary = node.as<graph::Ternary>()) op = ternary->op;
  if (!op) return false;
  return *op == AluOp::Pow || (is_integer(node.dtype()) && contains(kCheaper, *op));
}

// A kernel with its values by number, without the data that can be arguments of its launches.
struct Structure {
  Structure(const Graph& graph, const Kernel& formed);
  bool operator==(const Structure& other) const;
  uint64_t hash() const;

  const Graph& graph;
  std::vector<Value> ops;
  KernelValues values;
  std::vector<Ints> origins;
  std::vector<bool> varies;               // by op: a constant that may be an argument
  std::map<size_t, size_t> part_operand;  // by Cat that it stores a part of: the operand's number
  std::map<Value, int64_t> part_offset;   // by output that it stores a part of: the part's offset
  Kernel kernel;

 private:
  void find_constants();
  void find_part(const StageValue& value);
  std::optional<graph::DimPairs> limits_from_origin(const graph::Node& node) const;
  bool computes_alike(size_t op, const Structure& other) const;
};

Structure::Structure(const Graph& graph, const Kernel& formed)
    : graph(graph),
      ops(ops_in_order(graph, formed)),
      values(ops, formed.inputs),
      origins(origins_of(graph, formed)),
      varies(ops.size(), false),
      kernel(formed) {
  find_constants();
  kernel.name.clear();
  if (kernel.phases().empty())
    for (Stage& stage : kernel.mutable_stages())
      for (StageValue& value : stage.values) {
        if (!value.offset || input_number(formed, value.value) < formed.inputs.size()) continue;
        find_part(value);
        if (part_offset.count(value.value)) value.offset = 0;
      }
  ValueVisitor([&](Value& v) { v.id = static_cast<uint32_t>(values.number_of(v)); }).visit(kernel);
  std::sort(kernel.ops.begin(), kernel.ops.end());
}

void Structure::find_constants() {
  std::vector<bool> fixed(ops.size(), false);  // set by users, which come later
  for (size_t i = ops.size(); i-- > 0;) {
    const graph::Node& node = graph[ops[i]];
    if (node.kind() == graph::NodeKind::Sink) continue;
    const Evaluation evaluation = evaluation_of(node);
    const bool forwards = evaluation == Evaluation::Forward || evaluation == Evaluation::Select;
    varies[i] = evaluation == Evaluation::Constant && !is_bool(node.dtype()) && !fixed[i];
    if (!needs_constants(node) && !(forwards && fixed[i])) continue;
    for (const Value operand : node.inputs)
      if (const size_t n = values.number_of(operand); n < ops.size()) fixed[n] = true;
  }
}

// Follows Cats from the value to the operand that is the part at its offset.
void Structure::find_part(const StageValue& value) {
  const auto* outer = graph[value.value].as<graph::Cat>();
  if (!outer) return;
  const Shape& shape = graph[value.value].shape();
  if (!shape[outer->axis].is_constant() || max_elements(shape) == 0) return;
  int64_t at = *value.offset / contiguous_strides(shape)[outer->axis];
  at %= shape[outer->axis].constant();
  part_offset[value.value] = *value.offset;
  for (Value v = value.value;;) {
    const graph::Node& node = graph[v];
    const auto* cat = node.as<graph::Cat>();
    const size_t op = values.number_of(v);
    if (!cat || cat->axis != outer->axis || op >= ops.size()) return;
    size_t operand = 0;
    while (operand + 1 < node.inputs.size()) {
      const int64_t size = graph[node.inputs[operand]].shape()[cat->axis].constant();
      if (at < size) break;
      at -= size;
      ++operand;
    }
    part_operand[op] = operand;
    v = node.inputs[operand];
  }
}

// The limits of a Shrink on an input with an origin, relative to it. Nothing for other nodes.
std::optional<graph::DimPairs> Structure::limits_from_origin(const graph::Node& node) const {
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

uint64_t Structure::hash() const {
  graph::FieldHash hash;
  hash.add(kernel);
  for (const Value v : values.by_number()) {
    hash.add(graph[v].meta.dtype);
    hash.add(graph[v].meta.shape);
  }
  for (size_t op = 0; op < ops.size(); ++op) {
    const graph::Node& node = graph[ops[op]];
    hash.add(node.kind());
    if (!part_operand.count(op))
      for (const Value operand : node.inputs) hash.add(values.number_of(operand));
    if (!node.as<graph::Shrink>() && !varies[op])
      std::visit([&](const auto& payload) { hash.add(payload); }, node.payload);
  }
  return hash.value();
}

bool Structure::operator==(const Structure& other) const {
  if (values.size() != other.values.size() || varies != other.varies || !(kernel == other.kernel))
    return false;
  const std::vector<Value> x = values.by_number(), y = other.values.by_number();
  for (size_t i = 0; i < x.size(); ++i)  // inputs included
    if (graph[x[i]].meta != graph[y[i]].meta) return false;
  for (size_t op = 0; op < ops.size(); ++op)
    if (!computes_alike(op, other)) return false;
  return true;
}

bool Structure::computes_alike(size_t op, const Structure& other) const {
  const graph::Node& x = graph[ops[op]];
  const graph::Node& y = graph[other.ops[op]];
  if (x.kind() != y.kind()) return false;
  const auto same = [&](Value a, Value b) {  // also strides, and the range of indices into them
    return values.number_of(a) == other.values.number_of(b) && graph[a].meta == graph[b].meta;
  };
  const auto part = part_operand.find(op), other_part = other.part_operand.find(op);
  if ((part == part_operand.end()) != (other_part == other.part_operand.end())) return false;
  if (part != part_operand.end())
    return x.payload == y.payload && same(x.inputs[part->second], y.inputs[other_part->second]);
  if (!std::equal(x.inputs.begin(), x.inputs.end(), y.inputs.begin(), y.inputs.end(), same))
    return false;
  const auto limits = limits_from_origin(x);
  if (limits != other.limits_from_origin(y)) return false;
  return limits || varies[op] || x.payload == y.payload;
}

int64_t bits_of(const Scalar& value) {
  return static_cast<int64_t>(is_integer(value.dtype()) ? value.as_uint64() : value.bits());
}

// Kernels of the same structure.
class Group {
 public:
  Group(const Graph& graph, const std::vector<Kernel>& formed, Structure structure)
      : graph_(graph), formed_(formed), structure_(std::move(structure)) {}

  const Structure& structure() const { return structure_; }

  // Adds the kernel formed as number `number`.
  void add(size_t number, const Structure& own) {
    const Kernel& kernel = formed_[number];
    Member member{number, own.ops, {}, {}};
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      int64_t start = 0;
      const Ints strides = contiguous_strides(graph_[kernel.inputs[i]].shape());
      for (size_t d = 0; d < own.origins[i].size(); ++d) start += own.origins[i][d] * strides[d];
      member.starts.push_back(start);
    }
    for (const Value v : kernel.outputs) {
      const auto part = own.part_offset.find(v);
      member.starts.push_back(part == own.part_offset.end() ? 0 : part->second);
    }
    for (size_t op = 0; op < own.ops.size(); ++op)
      if (own.varies[op])
        member.constants.push_back(bits_of(graph_[own.ops[op]].as<graph::Const_Scalar>()->value));
    members_.push_back(std::move(member));
  }

  // Appends the shared kernels. Each has its launches, with the numbers of the formed kernels.
  using Shared = std::pair<Kernel, std::vector<std::pair<size_t, Launch>>>;
  void share(std::vector<Shared>& result) const { share(members_, result); }

 private:
  struct Member {
    size_t number;
    std::vector<Value> ops;
    Ints starts;     // where it begins to read its inputs and to store its outputs, in elements
    Ints constants;  // bits of the constants that may be arguments
  };
  using Members = std::vector<Member>;

  void share(const Members& members, std::vector<Shared>& result) const {
    Kernel kernel = formed_[members[0].number];
    std::vector<Ints> arguments;    // by argument and member
    std::map<Ints, size_t> shifts;  // by values
    std::map<std::pair<DType, Ints>, size_t> constants;
    std::vector<Ints> rest(members.size());  // by member: data that is in no argument
    size_t integers = 0;
    // The argument with these values, if there may be one.
    const auto argument = [&](auto& known, const auto& key, const Ints& values, bool is_integer) {
      const auto it = known.find(key);
      if (it != known.end()) return std::optional(it->second);
      const bool full = is_integer && integers == kMostIntegerArguments;
      if (full || arguments.size() == kMostArguments) {
        for (size_t m = 0; m < members.size(); ++m) rest[m].push_back(values[m]);
        return std::optional<size_t>();
      }
      integers += is_integer;
      known[key] = arguments.size();
      arguments.push_back(values);
      return std::optional(arguments.size() - 1);
    };
    for (size_t i = 0; i < members[0].starts.size(); ++i) {
      Ints steps;
      int64_t scale = 0;
      for (const Member& member : members) {
        steps.push_back(member.starts[i] - members[0].starts[i]);
        scale = std::gcd(scale, steps.back());
      }
      if (scale == 0) continue;
      for (int64_t& step : steps) step /= scale;
      if (const auto number = argument(shifts, steps, steps, true)) {
        const Value buffer =
            i < kernel.inputs.size() ? kernel.inputs[i] : kernel.outputs[i - kernel.inputs.size()];
        kernel.shifts.push_back({buffer, static_cast<int64_t>(*number), scale});
      }
    }
    size_t next = 0;
    for (size_t op = 0; op < members[0].ops.size(); ++op) {
      if (!structure_.varies[op]) continue;
      Ints bits;
      for (const Member& member : members) bits.push_back(member.constants[next]);
      ++next;
      if (std::count(bits.begin(), bits.end(), bits[0]) == std::ssize(bits)) continue;
      const DType dtype = graph_[members[0].ops[op]].dtype();
      if (const auto number = argument(constants, std::pair(dtype, bits), bits, is_integer(dtype)))
        kernel.constants.push_back({members[0].ops[op], static_cast<int64_t>(*number)});
    }
    if (!rest[0].empty()) return divide(members, rest, result);
    for (const Ints& values : arguments) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      kernel.arguments.push_back({concat("launch.", kernel.arguments.size()), *low, *high});
    }
    Shared& shared = result.emplace_back();
    const KernelValues first(members[0].ops, {});
    for (size_t m = 0; m < members.size(); ++m) {
      const Kernel& own = formed_[members[m].number];
      Launch launch{0, {}, own.inputs, own.outputs, {}};
      for (const Value v : kernel.ops) launch.ops.push_back(members[m].ops[first.number_of(v)]);
      for (const Ints& values : arguments) launch.arguments.push_back(values[m]);
      shared.second.push_back({members[m].number, std::move(launch)});
    }
    shared.first = std::move(kernel);
  }

  // Makes a kernel for each of the different values in `rest`.
  void divide(const Members& members, const std::vector<Ints>& rest,
              std::vector<Shared>& result) const {
    std::map<Ints, Members> parts;
    for (size_t m = 0; m < members.size(); ++m) parts[rest[m]].push_back(members[m]);
    for (const auto& [values, part] : parts) share(part, result);
  }

  const Graph& graph_;
  const std::vector<Kernel>& formed_;
  Structure structure_;
  Members members_;
};

}  // namespace

SharedKernels share_kernels(const Graph& graph, const std::vector<Kernel>& formed) {
  std::vector<Group> groups;
  std::unordered_multimap<uint64_t, size_t> known;  // by hash
  for (size_t i = 0; i < formed.size(); ++i) {
    Structure structure(graph, formed[i]);
    const auto [first, last] = known.equal_range(structure.hash());
    auto it = first;
    while (it != last && !(groups[it->second].structure() == structure)) ++it;
    if (it == last) {
      it = known.emplace(structure.hash(), groups.size());
      groups.emplace_back(graph, formed, structure);
    }
    groups[it->second].add(i, structure);
  }
  std::vector<Group::Shared> shared;
  for (const Group& group : groups) group.share(shared);
  std::sort(shared.begin(), shared.end(), [](const auto& a, const auto& b) {
    return a.second.front().first < b.second.front().first;
  });
  SharedKernels result;
  result.launches.resize(formed.size());
  for (auto& [kernel, launches] : shared) {
    const auto number = static_cast<int64_t>(result.kernels.size());
    for (auto& [i, launch] : launches) {
      launch.kernel = number;
      result.launches[i] = std::move(launch);
    }
    result.kernels.push_back(std::move(kernel));
  }
  return result;
}

Kernel instantiate(Kernel kernel, const Launch& launch) {
  for (const Shift& shift : kernel.shifts)
    if (kernel.phases().empty())
      for (Stage& stage : kernel.mutable_stages())
        for (StageValue& value : stage.values)
          if (value.value == shift.buffer && value.offset)
            *value.offset += launch.arguments.at(shift.argument) * shift.scale;
  kernel.arguments.clear();
  kernel.shifts.clear();
  kernel.constants.clear();
  std::map<Value, Value> launched;
  const auto match = [&](const std::vector<Value>& from, const std::vector<Value>& to) {
    RUNE_CHECK(from.size() == to.size(), "a launch of `", kernel.name, "` has other values");
    for (size_t i = 0; i < from.size(); ++i) launched[from[i]] = to[i];
  };
  match(kernel.ops, launch.ops);
  match(kernel.inputs, launch.inputs);
  match(kernel.outputs, launch.outputs);
  ValueVisitor([&](Value& v) { v = launched.at(v); }).visit(kernel);
  std::sort(kernel.ops.begin(), kernel.ops.end());
  return kernel;
}

}  // namespace rune::schedule
