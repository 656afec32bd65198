#include "backends/cuda/driver.h"

#include <pthread.h>

#include <atomic>

#include "backends/cuda/library.h"
#include "base/error.h"
#include "base/options.h"

namespace rune::cuda {

namespace {

constexpr int kOldestVersion = 12000;
constexpr int kConditionalNodes = 12040;
constexpr const char* kInstallDriver =
    "\nhint: install NVIDIA's driver for the card (version 525 or later); in a container, start it "
    "with the card (`docker run --gpus all`)";

std::atomic<bool> forked{false};

template <class Function>
void find(const Library& library, const char* symbol, Function*& function) {
  if (!library.load(symbol, function))
    user_error(ErrorKind::Runtime, "cuda: cannot use this driver (it has no ", symbol, ")",
               kInstallDriver);
}

Driver load() {
  const std::string& chosen = options().cuda_driver;
  static const Library library(chosen.empty() ? "libcuda.so.1" : chosen);
  if (!library.handle())
    user_error(ErrorKind::Runtime, "cuda: cannot load NVIDIA's driver (", library.error(), ")",
               kInstallDriver);
  Driver driver;
#define RUNE_CUDA_FUNCTION(field, symbol, parameters) find(library, #symbol, driver.field);
#include "backends/cuda/driver.def"
#undef RUNE_CUDA_FUNCTION
  library.load("cuGraphAddDependencies_v2", driver.add_graph_edges);
  if (const Result failed = driver.init(0); failed != kSuccess)
    user_error(ErrorKind::Runtime, "cuda: cannot start NVIDIA's driver (", driver.describe(failed),
               ")",
               failed == kNoDevice ? "\nhint: is there a card, and is it not hidden by "
                                     "CUDA_VISIBLE_DEVICES?"
                                   : kInstallDriver);
  driver.driver_version(&driver.version);
  if (driver.version < kOldestVersion)
    user_error(ErrorKind::Runtime, "cuda: cannot use this driver (it is for CUDA ",
               driver.version / 1000, ".", driver.version % 1000 / 10, ", 12.0 is needed)",
               kInstallDriver);
  if (driver.version >= kConditionalNodes) {
    library.load("cuGraphConditionalHandleCreate", driver.create_condition);
    library.load("cuGraphAddNode_v2", driver.add_graph_node);
  }
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  return driver;
}

}  // namespace

std::string Driver::describe(Result error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(error, &name) != kSuccess || !name) return concat("error ", error);
  if (error_string(error, &text) != kSuccess || !text) return name;
  return concat(name, ": ", text);
}

const Driver& driver() {
  static const Driver loaded = load();  // tried again after an exception
  if (is_forked())
    user_error(ErrorKind::Runtime,
               "cuda: cannot use the device in a forked process (its parent has used CUDA)\n"
               "hint: start processes with multiprocessing.get_context(\"spawn\")");
  return loaded;
}

bool is_forked() {
  return forked.load(std::memory_order_relaxed);
}

}  // namespace rune::cuda
