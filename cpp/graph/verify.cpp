#include "graph/verify.h"

#include <map>
#include <set>

#include "base/error.h"
#include "graph/attribute_dims.h"
#include "graph/infer.h"
#include "graph/text.h"

namespace rune::graph {

namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, Dialect dialect) : graph_(graph), dialect_(dialect) {}

  std::vector<std::string> run() {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      current_ = id;
      check_dialect();
      if (check_operands()) check_metadata();
      check_names();
      check_sizes();
    }
    check_placeholders();
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      if (graph_.outputs[i].id >= graph_.size())
        violations_.push_back(concat("output ", i, " is ", text::to_text(graph_.outputs[i]),
                                     ", which does not exist"));
    return std::move(violations_);
  }

 private:
  const Node& node() const { return graph_.nodes[current_]; }

  template <class... Args>
  void report(const Args&... args) {
    violations_.push_back(concat(args..., ", in `", print_node(graph_, {current_}), "`"));
  }

  void check_dialect() {
    if (dialect_ == Dialect::Core && dialect_of_kind(node().kind()) == Dialect::Source)
      report(name_of(node().kind()), " is a source node, which a core graph cannot have");
    if (dialect_ == Dialect::Core && is_complex(node().dtype()))
      report("a core graph cannot have complex values");
  }

  bool check_operands() {
    bool good = true;
    for (const Value v : node().inputs) {
      if (v.id < current_) continue;
      good = false;
      report("operand ", text::to_text(v),
             v.id < graph_.size() ? " is not defined before its use" : " does not exist");
    }
    return good;
  }

  void check_metadata() {
    std::vector<const Metadata*> operands;
    for (const Value v : node().inputs) operands.push_back(&graph_[v].meta);
    Metadata expected;
    try {
      expected = infer(node().payload, operands, node().meta);
    } catch (const UserError& error) {
      return report(error.what());
    }
    const Metadata& found = node().meta;
    if (found.dtype != expected.dtype)
      report("dtype is ", name_of(found.dtype), ", expected ", name_of(expected.dtype));
    if (found.shape != expected.shape)
      report("shape is ", shape_text(found.shape), ", expected ", shape_text(expected.shape));
    if (found.device != expected.device)
      report("device is ", device_text(found), ", expected ", device_text(expected));
    check_bind();
    check_loop();
  }

  // A loop is identified by its counter.
  void check_loop() {
    const bool is_second = node().as<Carry>() || node().as<Loop_Size>();
    if (!is_second && !node().as<End_Loop>()) return;
    if (!graph_[node().inputs[is_second]].as<Loop_Counter>())
      report("operand ", is_second ? 1 : 0, " is not a loop_counter");
  }

  // A Bind fixes a Define_Var within its bounds.
  void check_bind() {
    const auto* bind = node().as<Bind>();
    if (!bind) return;
    const auto* define = graph_[node().inputs[0]].as<Define_Var>();
    if (!define) return report("the operand of bind is not a define_var");
    if (bind->value < define->var.min_val || bind->value > define->var.max_val)
      report("bind to ", bind->value, " is outside [", define->var.min_val, ",",
             define->var.max_val, "]");
  }

  // Checks that the ids of Unique are unique, and that a variable has the same bounds everywhere.
  void check_names() {
    if (const auto* unique = node().as<Unique>())
      if (!unique_ids_.insert(unique->id).second)
        report("unique id ", unique->id, " is used twice");
    if (const SymVar* var = declared_variable(node())) {
      const auto [known, fresh] = variables_.emplace(var->name, *var);
      if (!fresh && (known->second != *var || !node().as<Define_Var>()))
        report("variable ", var->name, " is declared before, with the bounds [",
               known->second.min_val, ",", known->second.max_val, "]");
    }
  }

  // Every size is an expression of variables that are declared before.
  void check_sizes() {
    const auto check = [&](const Dim& size) {
      for (const Dim::Term& term : size.terms()) {
        const auto known = variables_.find(term.var.name);
        if (known == variables_.end() || known->second != term.var)
          report("the size ", size, " is in terms of ", term.var.name,
                 ", which no node before declares with these bounds");
      }
    };
    for_each_dim(node(), check);
  }

  void check_placeholders() {
    int64_t expected = 0;
    for (const Value v : graph_.inputs()) {
      const int64_t index = graph_[v].as<Placeholder>()->index;
      current_ = v.id;
      if (index != expected) report("placeholder index is ", index, ", expected ", expected);
      expected = index + 1;
    }
  }

  static std::string device_text(const Metadata& meta) {
    return meta.device ? text::quote(*meta.device) : "absent";
  }

  const Graph& graph_;
  const Dialect dialect_;
  uint32_t current_ = 0;
  std::vector<std::string> violations_;
  std::set<int64_t> unique_ids_;
  std::map<std::string, SymVar> variables_;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph, Dialect dialect) {
  return Verifier(graph, dialect).run();
}

}  // namespace rune::graph
