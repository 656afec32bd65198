// Command buffers on their way through the emulated GPU.
#include <algorithm>
#include <chrono>
#include <utility>

#include "metal.h"

namespace rune::metal_emulator {

namespace {

std::mutex living_mutex;
std::set<const void*> living;

}  // namespace

bool take(std::atomic<long>& count) {
  long left = count;
  while (left > 0)
    if (count.compare_exchange_weak(left, left - 1)) return true;
  return false;
}

Injection& injection() {
  static Injection all;
  return all;
}

bool is_living(const void* object) {
  const std::lock_guard<std::mutex> lock(living_mutex);
  return living.count(object) > 0;
}

void set_living(const void* object, bool is_alive) {
  const std::lock_guard<std::mutex> lock(living_mutex);
  if (is_alive)
    living.insert(object);
  else
    living.erase(object);
}

namespace {

// Those without a barrier between them, the last first: what needs one fails without.
std::vector<const Dispatch*> in_order(const std::vector<Dispatch>& dispatches) {
  std::vector<const Dispatch*> order;
  for (const Dispatch& dispatch : dispatches) order.push_back(&dispatch);
  std::reverse(order.begin(), order.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const Dispatch* a, const Dispatch* b) { return a->interval < b->interval; });
  return order;
}

}  // namespace

std::string execute(const std::vector<Dispatch>& dispatches) {
  if (take(injection().fail_command_buffers))
    return "Caused GPU Address Fault Error (injected by the test)";
  if (take(injection().time_outs)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return "Caused GPU Timeout Error (injected by the test)";
  }
  if (injection().lost) return "Device was removed (injected by the test)";
  for (const Dispatch* next : in_order(dispatches)) {
    const Dispatch& dispatch = *next;
    if (!is_living(dispatch.pipeline)) return "a pipeline was released before it ran";
    gpu_emulator::Launch launch = dispatch.launch;
    std::vector<std::vector<char>> inlined;
    for (const auto& [index, argument] : dispatch.arguments) {
      if (launch.buffers.size() <= index) launch.buffers.resize(index + 1);
      if (argument.buffer && !is_living(argument.buffer))
        return "the buffer at index " + std::to_string(index) + " was released before it was used";
      if (argument.buffer) {
        launch.buffers[index] = {argument.buffer->memory + argument.offset,
                                 argument.buffer->length - argument.offset};
      } else {
        inlined.push_back(argument.bytes);
        launch.buffers[index] = {inlined.back().data(), inlined.back().size()};
      }
    }
    for (const Buffer* buffer : dispatch.resources) {
      if (!is_living(buffer)) return "a resource was released before it was used";
      launch.resources.push_back({buffer->memory, buffer->length});
    }
    ++injection().launched;
    const std::string error = gpu_emulator::run(*dispatch.pipeline->kernel, launch);
    if (!error.empty()) return error;
  }
  return "";
}

void Slots::take() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::seconds(5), [&] { return free_ > 0; }))
    invalid("deadlock: a command buffer is wanted, the queue has none left, and none ends");
  --free_;
}

void Slots::give_back() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++free_;
  changed_.notify_one();
}

Queue::Queue() : worker_([this] { work(); }) {}

Queue::~Queue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  worker_.join();
}

void Queue::commit(CommandBuffer* commands) {
  objc::objc_retain(commands);
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(commands);
  changed_.notify_all();
}

std::string Queue::run(CommandBuffer* commands) {
  std::this_thread::sleep_for(std::chrono::microseconds(injection().latency_us));
  if (has_failed_ && injection().ignores_after_errors)
    return "Ignored (for causing prior/excessive GPU errors) "
           "(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)";
  const std::string error = execute(commands->dispatches);
  has_failed_ |= !error.empty();
  return error;
}

namespace {

// Tells everybody that the commands have run.
void finish(CommandBuffer* commands, const std::string& error) {
  void* const pool = objc::objc_autoreleasePoolPush();
  {
    const std::lock_guard<std::mutex> lock(commands->mutex);
    commands->status = error.empty() ? 4 : 5;
    if (!error.empty()) {
      Object* const object = objc::make_error(error);
      commands->error = Ref<Object>(object);
      objc::objc_release(object);
    }
  }
  for (void* handler : commands->handlers) {
    struct Head {
      void* isa;
      int flags, reserved;
      void (*invoke)(void*, Object*);
    };
    static_cast<Head*>(handler)->invoke(handler, commands);
  }
  commands->slots->give_back();
  {
    const std::lock_guard<std::mutex> lock(commands->mutex);
    commands->changed.notify_all();
  }
  objc::objc_autoreleasePoolPop(pool);
  objc::objc_release(commands);
}

}  // namespace

void Queue::work() {
  CommandBuffer* late = nullptr;  // has run; its handlers have not
  std::string late_error;
  const auto finish_late = [&] {
    if (late) finish(std::exchange(late, nullptr), late_error);
  };
  for (;;) {
    CommandBuffer* commands = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto is_due = [&] { return is_ending_ || !waiting_.empty(); };
      if (late && !changed_.wait_for(lock, std::chrono::milliseconds(200), is_due)) {
        lock.unlock();
        finish_late();
        continue;
      }
      changed_.wait(lock, is_due);
      if (!waiting_.empty()) {
        commands = waiting_.front();
        waiting_.pop_front();
      }
    }
    if (!commands) {
      finish_late();
      return;
    }
    const std::string error = run(commands);
    if (!late && take(injection().late_handlers)) {
      late = commands;
      late_error = error;
      continue;
    }
    finish(commands, error);
    finish_late();
  }
}

}  // namespace rune::metal_emulator
