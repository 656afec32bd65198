#include "backends/cuda/sequence.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rune::cuda {

namespace {

// A graph with more steps than these is made when it runs a second time.
constexpr size_t kMadeAtOnce = 64;

Address address_of(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

using Condition = unsigned long long;

class Graph : public runtime::Sequence {
 public:
  Graph(std::vector<GraphStep> steps, std::shared_ptr<const LoopKernels> kernels, Context& context)
      : steps_(std::move(steps)), kernels_(std::move(kernels)), context_(context) {}
  Graph(const Graph&) = delete;
  // The graph may still run.
  ~Graph() override {
    if (context_.is_dead()) return;
    try {
      const Context::Scope scope(context_);
      driver().synchronize_stream(context_.stream());
      discard();
    } catch (const UserError&) {  // an error in another thread has destroyed the context
    }
  }

  void launch(std::span<const runtime::LaunchArguments> arguments) override {
    const Context::Scope scope(context_);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(has_run_, true) && steps_.size() > kMadeAtOnce) {
      RUNE_CHECK(arguments.size() == steps_.size(), "a sequence of ", steps_.size(),
                 " parts has arguments for ", arguments.size());
      for (size_t i = 0; i < steps_.size(); ++i) run_singly(steps_[i], arguments[i]);
      return;
    }
    if (!program_) {
      build(arguments);
    } else {
      for (Node& node : nodes_)
        if (take(node, arguments)) change(node);
    }
    // Errors name only the last kernels.
    constexpr size_t kNamed = 9;
    for (size_t i = nodes_.size() - std::min(nodes_.size(), kNamed); i < nodes_.size(); ++i)
      if (nodes_[i].kernel) context_.check_launch(kSuccess, nodes_[i].kernel->label);
    context_.check(driver().launch_graph(program_, context_.stream()), "launch a graph of kernels");
  }

 private:
  using Arguments = std::span<const runtime::LaunchArguments>;

  struct Node {
    const LoadedKernel* kernel = nullptr;  // null: a copy
    size_t bytes = 0;
    size_t argument = 0;  // number of its arguments, or of those of the loop that it controls
    void* state = nullptr;
    std::vector<int64_t> loop_vars{};
    GraphNodeHandle handle = nullptr;
    std::vector<void*> buffers{};
    std::vector<int64_t> vars{};
    std::vector<void*> addresses{};  // of the parameters' values
  };
  // The place in a graph where the next node is added.
  struct End {
    GraphHandle graph = nullptr;
    GraphNodeHandle last = nullptr;
    bool is_kernel = false;
  };

  void run_singly(const GraphStep& step, const runtime::LaunchArguments& arguments) {
    if (step.kernel) return launch_kernel(*step.kernel, arguments, context_);
    context_.check(driver().copy(address_of(arguments.buffers[0]), address_of(arguments.buffers[1]),
                                 step.bytes, context_.stream()),
                   "copy within the device's memory");
  }

  // Stores a node's arguments. Returns whether they differ from those before.
  static bool take(Node& node, Arguments arguments) {
    const runtime::LaunchArguments& given = arguments[node.argument];
    if (!node.state) return take(node, given.buffers, given.vars);
    // The node decides how a loop continues: it gets the loop's bool, state and number of
    // iterations.
    void* const buffers[] = {given.buffers[0], node.state};
    std::vector<int64_t> vars = node.loop_vars;
    vars.push_back(given.vars[0]);
    return take(node, buffers, vars);
  }
  static bool take(Node& node, std::span<void* const> buffers, std::span<const int64_t> vars) {
    if (!node.addresses.empty() && std::ranges::equal(node.buffers, buffers) &&
        std::ranges::equal(node.vars, vars))
      return false;
    node.buffers.assign(buffers.begin(), buffers.end());
    node.vars.assign(vars.begin(), vars.end());
    node.addresses.clear();
    for (void*& buffer : node.buffers) node.addresses.push_back(static_cast<void*>(&buffer));
    node.addresses.push_back(node.vars.data());  // all variables together are one parameter
    return true;
  }

  static KernelParameters kernel_parameters(Node& node) {
    KernelParameters parameters;
    parameters.function = node.kernel->function;
    parameters.grid[0] = node.kernel->grid;
    parameters.block[0] = node.kernel->local;
    parameters.parameters = node.addresses.data();
    return parameters;
  }

  static CopyParameters copy_parameters(const Node& node) {
    CopyParameters parameters;
    parameters.to.address = address_of(node.buffers[0]);
    parameters.from.address = address_of(node.buffers[1]);
    parameters.bytes = parameters.to.row_bytes = parameters.from.row_bytes = node.bytes;
    return parameters;
  }

  void change(Node& node) {
    constexpr const char* kWhat = "change a graph of kernels";
    if (node.kernel) {
      const KernelParameters parameters = kernel_parameters(node);
      context_.check(driver().set_graph_kernel(program_, node.handle, &parameters), kWhat);
      return;
    }
    const CopyParameters parameters = copy_parameters(node);
    context_.check(driver().set_graph_copy(program_, node.handle, &parameters, context_.handle()),
                   kWhat);
  }

  void check(Result result) { context_.check(result, "make a graph of kernels"); }

  void add(End& end, Arguments arguments, Node added) {
    Node& node = nodes_.emplace_back(std::move(added));
    take(node, arguments);
    const bool overlaps =
        end.is_kernel && driver().add_graph_edges && node.kernel && node.kernel->begins_early;
    const GraphNodeHandle* const after = end.last && !overlaps ? &end.last : nullptr;
    if (node.kernel) {
      RUNE_CHECK(node.buffers.size() == node.kernel->num_buffers, "kernel ", *node.kernel->label,
                 ": ", node.buffers.size(), " buffers of ", node.kernel->num_buffers);
      const KernelParameters parameters = kernel_parameters(node);
      check(driver().add_graph_kernel(&node.handle, end.graph, after, after ? 1 : 0, &parameters));
      const GraphEdge edge;
      if (overlaps) check(driver().add_graph_edges(end.graph, &end.last, &node.handle, &edge, 1));
    } else {
      const CopyParameters parameters = copy_parameters(node);
      check(driver().add_graph_copy(&node.handle, end.graph, after, after ? 1 : 0, &parameters,
                                    context_.handle()));
    }
    end.last = node.handle;
    end.is_kernel = node.kernel != nullptr;
  }

  // Adds steps to a graph. `number` is the number of the next step's arguments.
  void add(End& end, Arguments arguments, const std::vector<GraphStep>& steps, size_t& number) {
    for (const GraphStep& step : steps)
      if (step.loop)
        add_loop(end, arguments, *step.loop, number);
      else
        add(end, arguments, {step.kernel, step.bytes, number++});
  }

  Condition make_condition() {
    Condition condition = 0;
    check(driver().create_condition(&condition, graph_, context_.handle(), 0, 0));
    return condition;
  }

  enum ConditionalType : int { kIf = 0, kWhile = 1 };

  // Adds a node that runs a graph if or while the condition holds. Returns that graph's end.
  End add_body(End& end, Condition condition, ConditionalType type) {
    ConditionalParameters parameters;
    parameters.condition = condition;
    parameters.type = type;
    parameters.context = context_.handle();
    GraphNodeHandle node = nullptr;
    check(driver().add_graph_node(&node, end.graph, &end.last, nullptr, end.last ? 1 : 0,
                                  &parameters));
    end.last = node;
    end.is_kernel = false;
    return {parameters.bodies[0]};
  }

  // Adds the nodes of a loop:
  // while (goes on) { turn 0; if (goes on) { turn 1; if (goes on) { ... } } }
  // if (turn 1 would be next) its end; ...
  void add_loop(End& end, Arguments arguments, const GraphLoop& loop, size_t& number) {
    constexpr size_t kStateBytes = 16;
    const size_t argument = number++;
    check(driver().allocate(&states_.emplace_back(), kStateBytes));
    void* const state = reinterpret_cast<void*>(states_.back());
    const auto decide = [&](End& at, const LoadedKernel& kernel, std::vector<int64_t> vars) {
      add(at, arguments, {&kernel, 0, argument, state, std::move(vars)});
    };
    const auto bits = [](Condition condition) { return static_cast<int64_t>(condition); };

    const Condition again = make_condition();
    decide(end, kernels_->enter, {bits(again)});
    End body = add_body(end, again, kWhile);
    struct Ending {
      const GraphLoop::Turn& turn;
      size_t first_argument;
    };
    std::vector<Ending> endings;
    for (size_t i = 0; i < loop.turns.size(); ++i) {
      const GraphLoop::Turn& turn = loop.turns[i];
      add(body, arguments, turn.body, number);
      endings.push_back({turn, number});
      number += count(turn.end);
      const bool is_last = i + 1 == loop.turns.size();
      const Condition next = is_last ? again : make_condition();
      decide(body, kernels_->advance,
             {bits(again), bits(next), is_last ? 0 : static_cast<int64_t>(i + 1)});
      if (!is_last) body = add_body(body, next, kIf);
    }
    for (size_t i = 0; i < endings.size(); ++i) {
      if (endings[i].turn.end.empty()) continue;
      const Condition ends = make_condition();
      decide(end, kernels_->leave, {bits(ends), static_cast<int64_t>(i)});
      End inner = add_body(end, ends, kIf);
      add(inner, arguments, endings[i].turn.end, endings[i].first_argument);
    }
  }

  // The number of arguments of steps.
  static size_t count(const std::vector<GraphStep>& steps) {
    size_t result = steps.size();
    for (const GraphStep& step : steps)
      if (step.loop)
        for (const GraphLoop::Turn& turn : step.loop->turns)
          result += count(turn.body) + count(turn.end);
    return result;
  }

  void discard() {
    if (program_) driver().destroy_graph_program(std::exchange(program_, nullptr));
    if (graph_) driver().destroy_graph(std::exchange(graph_, nullptr));
    for (const Address state : states_) driver().free(state);
    states_.clear();
    nodes_.clear();
  }

  void build(Arguments arguments) {
    discard();  // what is left of an earlier attempt that failed
    RUNE_CHECK(arguments.size() == count(steps_), "a sequence of ", count(steps_),
               " parts has arguments for ", arguments.size());
    check(driver().create_graph(&graph_, 0));
    End end{graph_};
    size_t number = 0;
    add(end, arguments, steps_, number);
    check(driver().instantiate_graph(&program_, graph_, 0));
  }

  const std::vector<GraphStep> steps_;
  const std::shared_ptr<const LoopKernels> kernels_;
  Context& context_;
  std::mutex mutex_;  // guards what follows
  bool has_run_ = false;
  std::vector<Node> nodes_;
  std::vector<Address> states_;  // of loops
  GraphHandle graph_ = nullptr;
  GraphProgramHandle program_ = nullptr;
};

}  // namespace

// A loop's state is the number of iterations left and the turn that would be next. The last
// variable is the largest number of iterations.
const char* const kLoopKernels = R"(
template <int N>
struct rune_vars { long long v[N]; };
extern "C" __device__ void cudaGraphSetConditional(unsigned long long condition, unsigned value);

extern "C" __global__ void __launch_bounds__(1)
rune_enter_loop(const unsigned char* goes_on, long long* state, const rune_vars<2> vars) {
  state[0] = vars.v[1];
  state[1] = 0;
  cudaGraphSetConditional(vars.v[0], vars.v[1] > 0 && *goes_on);
}

extern "C" __global__ void __launch_bounds__(1)
rune_advance_loop(const unsigned char* goes_on, long long* state, const rune_vars<4> vars) {
  const long long left = state[0] - 1;
  state[0] = left;
  state[1] = vars.v[2];
  const unsigned again = left > 0 && *goes_on;
  cudaGraphSetConditional(vars.v[0], again);
  cudaGraphSetConditional(vars.v[1], again);
}

extern "C" __global__ void __launch_bounds__(1)
rune_leave_loop(const unsigned char* goes_on, long long* state, const rune_vars<3> vars) {
  cudaGraphSetConditional(vars.v[0], state[1] == vars.v[1]);
}
)";

void launch_kernel(const LoadedKernel& kernel, const runtime::LaunchArguments& arguments,
                   Context& context) {
  RUNE_CHECK(arguments.buffers.size() == kernel.num_buffers, "kernel ", *kernel.label, ": ",
             arguments.buffers.size(), " buffers of ", kernel.num_buffers);
  const auto launch = [&](void** parameters) {
    // A parameter is given by the address of its value. All variables together are one struct.
    for (size_t i = 0; i < kernel.num_buffers; ++i)
      parameters[i] = static_cast<void*>(const_cast<void**>(&arguments.buffers[i]));
    parameters[kernel.num_buffers] = const_cast<int64_t*>(arguments.vars.data());
    const Context::Scope scope(context);
    const LaunchAttribute overlaps;
    LaunchConfiguration configuration;
    configuration.grid[0] = kernel.grid;
    configuration.block[0] = kernel.local;
    configuration.stream = context.stream();
    configuration.attributes = &overlaps;
    configuration.num_attributes = kernel.begins_early ? 1 : 0;
    context.check_launch(driver().launch(&configuration, kernel.function, parameters, nullptr),
                         kernel.label);
  };
  constexpr size_t kInline = 32;
  if (kernel.num_buffers < kInline) {
    std::array<void*, kInline> parameters;
    return launch(parameters.data());
  }
  std::vector<void*> parameters(kernel.num_buffers + 1);
  launch(parameters.data());
}

std::unique_ptr<runtime::Sequence> make_sequence(std::vector<GraphStep> steps,
                                                 std::shared_ptr<const LoopKernels> kernels,
                                                 Context& context) {
  return std::make_unique<Graph>(std::move(steps), std::move(kernels), context);
}

}  // namespace rune::cuda
