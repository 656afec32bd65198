#include "backends/cuda/sequence.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rune::cuda {

namespace {

// A longer graph is made when it runs a second time.
constexpr size_t kMadeAtOnce = 64;

Address address_of(const void* memory) {
  return reinterpret_cast<Address>(memory);
}

class Graph : public runtime::Sequence {
 public:
  Graph(std::vector<GraphStep> steps, Context& context)
      : steps_(std::move(steps)), context_(context), nodes_(steps_.size()) {}
  Graph(const Graph&) = delete;
  // It may still run.
  ~Graph() override {
    if (context_.is_dead()) return;
    try {
      const Context::Scope scope(context_);
      driver().synchronize_stream(context_.stream());
      if (program_) driver().destroy_graph_program(program_);
      if (graph_) driver().destroy_graph(graph_);
    } catch (const UserError&) {  // another thread met an error that destroyed the context
    }
  }

  void launch(std::span<const runtime::LaunchArguments> arguments) override {
    RUNE_CHECK(arguments.size() == steps_.size(), "a sequence of ", steps_.size(),
               " parts has arguments for ", arguments.size());
    const Context::Scope scope(context_);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(has_run_, true) && steps_.size() > kMadeAtOnce) {
      for (size_t i = 0; i < steps_.size(); ++i) run_singly(steps_[i], arguments[i]);
      return;
    }
    if (!program_) {
      build(arguments);
    } else {
      for (size_t i = 0; i < steps_.size(); ++i)
        if (take(nodes_[i], arguments[i])) change(i);
    }
    for (const GraphStep& step : steps_)
      if (step.kernel) context_.check_launch(kSuccess, step.kernel->label);
    context_.check(driver().launch_graph(program_, context_.stream()), "launch a graph of kernels");
  }

 private:
  struct Node {
    GraphNodeHandle handle = nullptr;
    std::vector<void*> buffers;
    std::vector<int64_t> vars;
    std::vector<void*> addresses;  // of the parameters
  };

  void run_singly(const GraphStep& step, const runtime::LaunchArguments& arguments) {
    if (step.kernel) return launch_kernel(*step.kernel, arguments, context_);
    context_.check(driver().copy(address_of(arguments.buffers[0]), address_of(arguments.buffers[1]),
                                 step.bytes, context_.stream()),
                   "copy within the device's memory");
  }

  // Keeps a node's arguments. Returns whether they are others than before.
  static bool take(Node& node, const runtime::LaunchArguments& arguments) {
    if (std::equal(node.buffers.begin(), node.buffers.end(), arguments.buffers.begin(),
                   arguments.buffers.end()) &&
        std::equal(node.vars.begin(), node.vars.end(), arguments.vars.begin(),
                   arguments.vars.end()))
      return false;
    node.buffers.assign(arguments.buffers.begin(), arguments.buffers.end());
    node.vars.assign(arguments.vars.begin(), arguments.vars.end());
    node.addresses.clear();
    for (void*& buffer : node.buffers) node.addresses.push_back(static_cast<void*>(&buffer));
    node.addresses.push_back(node.vars.data());  // the variables are one parameter
    return true;
  }

  KernelParameters kernel_parameters(size_t i) {
    KernelParameters parameters;
    parameters.function = steps_[i].kernel->function;
    parameters.grid[0] = steps_[i].kernel->grid;
    parameters.block[0] = steps_[i].kernel->local;
    parameters.parameters = nodes_[i].addresses.data();
    return parameters;
  }

  CopyParameters copy_parameters(size_t i) const {
    CopyParameters parameters;
    parameters.to.address = address_of(nodes_[i].buffers[0]);
    parameters.from.address = address_of(nodes_[i].buffers[1]);
    parameters.bytes = parameters.to.row_bytes = parameters.from.row_bytes = steps_[i].bytes;
    return parameters;
  }

  void change(size_t i) {
    constexpr const char* kWhat = "change a graph of kernels";
    if (steps_[i].kernel) {
      const KernelParameters parameters = kernel_parameters(i);
      context_.check(driver().set_graph_kernel(program_, nodes_[i].handle, &parameters), kWhat);
      return;
    }
    const CopyParameters parameters = copy_parameters(i);
    context_.check(
        driver().set_graph_copy(program_, nodes_[i].handle, &parameters, context_.handle()), kWhat);
  }

  void add(size_t i) {
    const bool overlaps = i && driver().add_graph_edges && steps_[i].kernel &&
                          steps_[i].kernel->begins_early && steps_[i - 1].kernel;
    const GraphNodeHandle* const after = i && !overlaps ? &nodes_[i - 1].handle : nullptr;
    constexpr const char* kWhat = "make a graph of kernels";
    if (steps_[i].kernel) {
      const KernelParameters parameters = kernel_parameters(i);
      context_.check(
          driver().add_graph_kernel(&nodes_[i].handle, graph_, after, after ? 1 : 0, &parameters),
          kWhat);
      const GraphEdge edge;
      if (overlaps)
        context_.check(
            driver().add_graph_edges(graph_, &nodes_[i - 1].handle, &nodes_[i].handle, &edge, 1),
            kWhat);
      return;
    }
    const CopyParameters parameters = copy_parameters(i);
    context_.check(driver().add_graph_copy(&nodes_[i].handle, graph_, after, after ? 1 : 0,
                                           &parameters, context_.handle()),
                   kWhat);
  }

  void build(std::span<const runtime::LaunchArguments> arguments) {
    if (graph_) driver().destroy_graph(std::exchange(graph_, nullptr));  // an earlier try failed
    context_.check(driver().create_graph(&graph_, 0), "make a graph of kernels");
    for (size_t i = 0; i < steps_.size(); ++i) {
      const LoadedKernel* const kernel = steps_[i].kernel;
      RUNE_CHECK(!kernel || arguments[i].buffers.size() == kernel->num_buffers, "kernel ",
                 *kernel->label, ": ", arguments[i].buffers.size(), " buffers of ",
                 kernel->num_buffers);
      take(nodes_[i], arguments[i]);
      add(i);
    }
    context_.check(driver().instantiate_graph(&program_, graph_, 0), "make a graph of kernels");
  }

  const std::vector<GraphStep> steps_;
  Context& context_;
  std::mutex mutex_;  // guards what follows
  bool has_run_ = false;
  std::vector<Node> nodes_;
  GraphHandle graph_ = nullptr;
  GraphProgramHandle program_ = nullptr;
};

}  // namespace

void launch_kernel(const LoadedKernel& kernel, const runtime::LaunchArguments& arguments,
                   Context& context) {
  RUNE_CHECK(arguments.buffers.size() == kernel.num_buffers, "kernel ", *kernel.label, ": ",
             arguments.buffers.size(), " buffers of ", kernel.num_buffers);
  const auto launch = [&](void** parameters) {
    // A parameter is an address of its value; the variables are one struct.
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

std::unique_ptr<runtime::Sequence> make_sequence(std::vector<GraphStep> steps, Context& context) {
  return std::make_unique<Graph>(std::move(steps), context);
}

}  // namespace rune::cuda
