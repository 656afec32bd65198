#include "backends/interpreter/delayed_device.h"

#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

namespace rune::runtime {

namespace {

// Work that waits to be run. Thread-safe. The work must not use the queue.
class Queue {
 public:
  ~Queue() { run(); }
  void add(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  // Runs everything in order. It goes on after an error, because the work also frees memory.
  void run() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::function<void()>& work : waiting_) {
      try {
        work();
      } catch (...) {
        if (!error_) error_ = std::current_exception();
      }
    }
    waiting_.clear();
  }
  // Runs everything and throws the first error since the last call.
  void synchronize() {
    run();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
  std::exception_ptr error_;
};

class DelayedProgram : public Program {
 public:
  DelayedProgram(std::shared_ptr<Program> program, Queue& queue)
      : program_(std::move(program)), queue_(queue) {}
  void launch(const LaunchArguments& arguments) override {
    queue_.add([program = program_,
                buffers = std::vector<void*>(arguments.buffers.begin(), arguments.buffers.end()),
                vars = std::vector<int64_t>(arguments.vars.begin(), arguments.vars.end())] {
      program->launch({buffers, vars});
    });
  }

 private:
  const std::shared_ptr<Program> program_;
  Queue& queue_;
};

class DelayedCompiler : public Compiler {
 public:
  DelayedCompiler(Compiler& compiler, Queue& queue) : compiler_(compiler), queue_(queue) {}
  std::vector<std::shared_ptr<Program>> compile(std::span<const KernelSource> sources) override {
    std::vector<std::shared_ptr<Program>> programs = compiler_.compile(sources);
    for (std::shared_ptr<Program>& program : programs)
      program = std::make_shared<DelayedProgram>(std::move(program), queue_);
    return programs;
  }

 private:
  Compiler& compiler_;
  Queue& queue_;
};

class PoisoningAllocator : public Allocator {
 public:
  PoisoningAllocator(Allocator& allocator, Queue& queue) : allocator_(allocator), queue_(queue) {}
  void* allocate(size_t bytes) override {
    void* const memory = allocator_.allocate(bytes);
    if (bytes) std::memset(memory, 0xa5, bytes);
    return memory;
  }
  void deallocate(void* memory, size_t bytes) override {
    queue_.add([&allocator = allocator_, memory, bytes] {
      if (bytes) std::memset(memory, 0xff, bytes);
      allocator.deallocate(memory, bytes);
    });
  }
  bool defers_frees() const override { return true; }
  bool adopt(void* /*memory*/, size_t /*bytes*/) override { return true; }
  void release(void* /*memory*/) override { queue_.run(); }

 private:
  Allocator& allocator_;
  Queue& queue_;
};

class DelayedDevice : public Device {
 public:
  explicit DelayedDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  const std::string& name() const override { return device_->name(); }
  const Capabilities& capabilities() const override { return device_->capabilities(); }
  Allocator& allocator() override { return allocator_; }
  Compiler& compiler() override { return compiler_; }
  void synchronize() override { queue_.synchronize(); }
  void copy_in(void* device, const void* host, size_t bytes) override {
    queue_.run();
    device_->copy_in(device, host, bytes);
  }
  void copy_out(void* host, const void* device, size_t bytes) override {
    queue_.synchronize();
    device_->copy_out(host, device, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    queue_.add([device = device_, to, from, bytes] { device->copy(to, from, bytes); });
  }

 private:
  const std::shared_ptr<Device> device_;
  Queue queue_;
  PoisoningAllocator allocator_{device_->allocator(), queue_};
  DelayedCompiler compiler_{device_->compiler(), queue_};
};

}  // namespace

std::shared_ptr<Device> make_delayed_device(std::shared_ptr<Device> device) {
  return std::make_shared<DelayedDevice>(std::move(device));
}

}  // namespace rune::runtime
