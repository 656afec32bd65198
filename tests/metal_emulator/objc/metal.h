// The objects of the Metal emulator.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "gpu_emulator/runner.h"
#include "runtime.h"

namespace rune::metal_emulator {

using objc::Object;
using objc::Ref;
using objc::Selector;

struct Size {  // MTLSize
  unsigned long width, height, depth;
};

struct Buffer : Object {
  ~Buffer();
  char* memory = nullptr;
  size_t length = 0;
  bool is_owner = true;  // of the memory
  std::string label;
};

struct CompileOptions : Object {
  unsigned long language_version = 0x30000;
  bool fast_math = true;       // as Apple's default
  bool fast_functions = true;  // as Apple's default
};

struct Library : Object {
  std::string text;
  std::shared_ptr<gpu_emulator::Library> code;
};

struct Function : Object {
  std::string key;  // of its name and its library's text
  std::shared_ptr<gpu_emulator::Library> code;
  const gpu_emulator::Kernel* kernel = nullptr;
};

struct ArchiveDescriptor : Object {
  Ref<Object> url;
};

struct Archive : Object {
  std::set<std::string> keys;  // of kernels
};

struct PipelineDescriptor : Object {
  Ref<Function> function;
  Ref<Object> archives;
};

struct Pipeline : Object {
  ~Pipeline();
  std::shared_ptr<gpu_emulator::Library> code;
  const gpu_emulator::Kernel* kernel = nullptr;
  unsigned long max_threads = 0;
};

// What is bound at one index: a part of a buffer, or bytes.
struct Argument {
  Buffer* buffer = nullptr;  // not retained
  size_t offset = 0;
  std::vector<char> bytes;
};

struct Dispatch {
  Pipeline* pipeline = nullptr;  // not retained
  std::map<size_t, Argument> arguments;
  std::vector<Buffer*> resources;  // not retained
  gpu_emulator::Launch launch;
  int interval = 0;  // number of the barriers before it; those of one interval have no order
};

struct Encoder;
struct Queue;

// The command buffers that a queue may have at a time. Each takes a slot when it is made; the slot
// is free again when the command buffer's completion handlers have run.
class Slots {
 public:
  explicit Slots(long free) : free_(free) {}
  // Waits for a slot. Throws std::logic_error when Metal would wait for ever.
  void take();
  void give_back();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  long free_;
};

struct CommandBuffer : Object {
  ~CommandBuffer();
  Queue* queue = nullptr;  // outlives it until it is committed
  std::shared_ptr<Slots> slots;
  std::vector<Dispatch> dispatches;
  int interval = 0;
  std::vector<void*> handlers;  // blocks
  Encoder* open = nullptr;
  bool is_committed = false;
  std::string label;
  std::mutex mutex;
  std::condition_variable changed;
  unsigned long status = 0;
  Ref<Object> error;
};

struct Encoder : Object {
  ~Encoder();
  Ref<CommandBuffer> commands;
  Pipeline* pipeline = nullptr;
  std::map<size_t, Argument> arguments;
  std::vector<Buffer*> resources;
  bool is_concurrent = false;
  bool has_ended = false;
};

// Runs command buffers in order on a thread of its own, as a GPU would.
struct Queue : Object {
  Queue();
  ~Queue();
  void commit(CommandBuffer* commands);
  std::shared_ptr<Slots> slots;

 private:
  void work();
  std::string run(CommandBuffer* commands);
  bool has_failed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CommandBuffer*> waiting_;  // retained
  bool is_ending_ = false;
  std::thread worker_;
};

// Faults that tests ask for, and counts; see testing.cpp.
struct Injection {
  std::atomic<long> no_device{0};
  std::atomic<long> old_gpu{0};                              // of a family before Apple7
  std::atomic<long> paravirtual{0};                          // the GPU of a virtual machine
  std::atomic<long> empty_adoptions{0};                      // buffers of host memory have no bytes
  std::atomic<long> fail_archives{0};                        // this many are written in part only
  std::atomic<long> ignores_after_errors{0};                 // a queue runs nothing after an error
  std::atomic<long> late_handlers{0};                        // this many run after the next one's
  std::atomic<long> pipeline_us{0};                          // that making a pipeline takes
  std::atomic<long> gpu_cores{10};                           // that the system reports
  std::atomic<long> fail_allocations{0};                     // this many
  std::atomic<long> fail_libraries{0};                       // this many
  std::atomic<long> fail_command_buffers{0};                 // this many
  std::atomic<long> time_outs{0};                            // this many, after a while
  std::atomic<long> lost{0};                                 // nothing runs any more
  std::atomic<long> latency_us{0};                           // before each command buffer runs
  std::atomic<long> max_threads{gpu_emulator::kMaxThreads};  // of new pipelines
  std::atomic<long> simd_width{gpu_emulator::kSimdWidth};    // that pipelines report
  std::atomic<long> working_set{long{8} << 30};              // that the device recommends
  std::atomic<long> committed{0}, launched{0}, barriers{0}, adopted{0}, violations{0};
  std::atomic<long> archived{0}, from_archives{0};   // pipelines
  std::atomic<long> free_dispatches{0};              // by dispatchThreads
  std::atomic<long> unlabelled{0};                   // buffers bound without a label
  std::atomic<long> queues{0};                       // made so far
  std::atomic<long> buffer_bytes{0}, peak_bytes{0};  // of the buffers that live, of Metal's memory
  std::atomic<long> being_made{0}, made_at_once{0};  // pipelines
};
Injection& injection();
// Takes one of a number of faults that are left.
bool take(std::atomic<long>& count);

// Names a command buffer to MTLCaptureManager's recording, if there is one.
void record(const std::string& label);

// Objects that may be named by command buffers that do not retain them.
bool is_living(const void* object);
void set_living(const void* object, bool is_alive);

// What Metal's validation layer refuses, which would end the process there: throws
// std::logic_error.
[[noreturn]] void invalid(const std::string& message);
// Sets an NSError, if it is asked for.
void fail(Object** error, const std::string& message);

extern objc::Class buffer_class, library_class, function_class, pipeline_class, archive_class,
    queue_class, commands_class, encoder_class;
extern "C" {
extern objc::Class _OBJC_CLASS_MTLCompileOptions, _OBJC_CLASS_MTLBinaryArchiveDescriptor,
    _OBJC_CLASS_MTLComputePipelineDescriptor;
}

// The first line of an archive's file.
constexpr const char* kArchiveHead = "archive of the Metal emulator";

// Runs all dispatches; "" or the first error.
std::string execute(const std::vector<Dispatch>& dispatches);

}  // namespace rune::metal_emulator
