#include "backends/cuda/sequence.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rune::cuda {

namespace {

class Graph : public runtime::Sequence {
 public:
  Graph(std::vector<LoadedKernel> kernels, Context& context)
      : kernels_(std::move(kernels)), context_(context), nodes_(kernels_.size()) {}
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
    RUNE_CHECK(arguments.size() == kernels_.size(), "a sequence of ", kernels_.size(),
               " kernels has arguments for ", arguments.size());
    const Context::Scope scope(context_);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!program_) {
      build(arguments);
    } else {
      for (size_t i = 0; i < kernels_.size(); ++i)
        if (take(nodes_[i], arguments[i])) {
          const KernelParameters parameters = parameters_of(i);
          context_.check(driver().set_graph_kernel(program_, nodes_[i].handle, &parameters),
                         "change a graph of kernels");
        }
    }
    for (const LoadedKernel& kernel : kernels_) context_.check_launch(kSuccess, kernel.label);
    context_.check(driver().launch_graph(program_, context_.stream()), "launch a graph of kernels");
  }

 private:
  struct Node {
    GraphNodeHandle handle = nullptr;
    std::vector<void*> buffers;
    std::vector<int64_t> vars;
    std::vector<void*> addresses;  // of the parameters
  };

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

  KernelParameters parameters_of(size_t i) {
    KernelParameters parameters;
    parameters.function = kernels_[i].function;
    parameters.grid[0] = kernels_[i].grid;
    parameters.block[0] = kernels_[i].local;
    parameters.parameters = nodes_[i].addresses.data();
    return parameters;
  }

  void build(std::span<const runtime::LaunchArguments> arguments) {
    if (graph_) driver().destroy_graph(std::exchange(graph_, nullptr));  // an earlier try failed
    context_.check(driver().create_graph(&graph_, 0), "make a graph of kernels");
    for (size_t i = 0; i < kernels_.size(); ++i) {
      RUNE_CHECK(arguments[i].buffers.size() == kernels_[i].num_buffers, "kernel ",
                 *kernels_[i].label, ": ", arguments[i].buffers.size(), " buffers of ",
                 kernels_[i].num_buffers);
      take(nodes_[i], arguments[i]);
      const KernelParameters parameters = parameters_of(i);
      context_.check(
          driver().add_graph_kernel(&nodes_[i].handle, graph_, i ? &nodes_[i - 1].handle : nullptr,
                                    i ? 1 : 0, &parameters),
          "make a graph of kernels");
    }
    context_.check(driver().instantiate_graph(&program_, graph_, 0), "make a graph of kernels");
  }

  const std::vector<LoadedKernel> kernels_;
  Context& context_;
  std::mutex mutex_;  // guards what follows
  std::vector<Node> nodes_;
  GraphHandle graph_ = nullptr;
  GraphProgramHandle program_ = nullptr;
};

}  // namespace

std::unique_ptr<runtime::Sequence> make_sequence(std::vector<LoadedKernel> kernels,
                                                 Context& context) {
  return std::make_unique<Graph>(std::move(kernels), context);
}

}  // namespace rune::cuda
