#include "backends/cuda/context.h"

#include <vector>

#include "base/error.h"
#include "types/shape.h"

namespace rune::cuda {

namespace {

// Whether the driver refuses every call after this error, according to cuda.h.
bool destroys_context(Result error) {
  constexpr Result kFatal[] = {
      214,                      // uncorrectable memory error
      220,                      // NVLink
      700,                      // illegal address
      702,                      // launch took too long
      709,                      // context is destroyed
      710,                      // assert
      714, 715, 716, 717, 718,  // stack, instruction, alignment, address space, program counter
      719,                      // launch failed
      999,                      // unknown
  };
  return contains(kFatal, error);
}

}  // namespace

Context::Context(int ordinal) : driver_(driver()) {
  int count = 0;
  check(driver_.device_count(&count), "count the devices");
  if (ordinal >= count)
    user_error(ErrorKind::Runtime, "cuda: cannot open cuda:", ordinal, " (this machine has ", count,
               count == 1 ? " device)" : " devices)", "\nhint: CUDA_VISIBLE_DEVICES may hide some");
  check(driver_.device_get(&device_, ordinal), "find the device");
  check(driver_.retain_primary_context(&handle_, device_), "make a context");
  const Scope scope(*this);
  check(driver_.create_stream(&stream_, 0), "make a stream");
}

int Context::attribute(Attribute attribute) const {
  int value = 0;
  driver_.device_attribute(&value, static_cast<int>(attribute), device_);  // 0 if it is unknown
  return value;
}

Context::Scope::Scope(const Context& context) {
  const Driver& driver = cuda::driver();
  if (context.is_lost_.load(std::memory_order_acquire)) {
    const std::lock_guard<std::mutex> lock(context.mutex_);
    user_error(ErrorKind::Runtime,
               "cuda: cannot use the device any more (an earlier error destroyed its context: ",
               context.loss_, ")\nhint: start a new process");
  }
  ContextHandle current = nullptr;
  driver.current_context(&current);
  if (current == context.handle_) return;
  // The CUDA runtime, which other libraries use, would also choose the first device for this
  // thread.
  if (!current && context.device_ == 0 && driver.set_context(context.handle_) == kSuccess) return;
  if (const Result failed = driver.push_context(context.handle_); failed != kSuccess)
    user_error(ErrorKind::Runtime, "cuda: cannot use the device's context (",
               driver.describe(failed), ")");
  pushed_ = true;
}

Context::Scope::~Scope() {
  ContextHandle own = nullptr;
  if (pushed_) driver().pop_context(&own);
}

void Context::check_launch(Result result, const std::shared_ptr<const std::string>& kernel) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    launched_[num_launched_++ % launched_.size()] = kernel;
  }
  num_short_.store(0, std::memory_order_relaxed);
  if (result != kSuccess) fail(result, "launch kernel " + *kernel);
}

void Context::launch_short(const std::function<void()>& launch) {
  const int before = num_short_.load(std::memory_order_relaxed);
  launch();
  num_short_.store(std::min(before + 1, kSeveral), std::memory_order_relaxed);
}

EventHandle Context::record(StreamHandle stream) {
  EventHandle event = nullptr;
  check(driver_.create_event(&event, kEventWithoutTiming), "make an event");
  check(driver_.record_event(event, stream), "record an event");
  return event;
}

void Context::order(StreamHandle first, StreamHandle second) {
  const EventHandle event = record(first);
  check(driver_.wait_for_event(second, event, 0), "make a stream wait for another one");
  driver_.destroy_event(event);  // when it has happened
}

double Context::time(const std::function<void()>& launch) {
  struct Event {
    EventHandle handle = nullptr;
    ~Event() {
      if (handle) driver().destroy_event(handle);
    }
  };
  const Scope scope(*this);
  std::array<Event, 2> events;
  for (Event& event : events)
    check(driver_.create_event(&event.handle, kEventWithTiming), "make an event");
  check(driver_.record_event(events[0].handle, stream_), "record an event");
  launch();
  check(driver_.record_event(events[1].handle, stream_), "record an event");
  synchronize();
  float ms = 0;
  check(driver_.elapsed_time(&ms, events[0].handle, events[1].handle), "time a kernel");
  return 1e6 * ms;
}

void Context::synchronize() {
  const Scope scope(*this);
  size_t before = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    before = num_launched_;
  }
  check(driver_.synchronize_stream(stream_), "run what was launched");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_launched_ != before) return;
  num_launched_ = 0;
  num_short_.store(kSeveral, std::memory_order_relaxed);
}

// "; it was one of the kernels a (f.py:3), b (f.py:4)"
std::string Context::running_kernels() {
  std::vector<std::string> names;
  for (size_t i = std::min(num_launched_, launched_.size()); i > 0; --i) {
    const std::string& name = *launched_[(num_launched_ - i) % launched_.size()];
    if (!contains(names, name)) names.push_back(name);
  }
  if (names.empty()) return "";
  std::string text = names.size() == 1 ? "; kernel " : "; one of the kernels ";
  for (const std::string& name : names) text += (&name == &names.front() ? "" : ", ") + name;
  if (num_launched_ > launched_.size()) text += " or an earlier one";
  return text;
}

void Context::fail(Result result, const std::string& what) {
  if (result == kOutOfMemory)
    user_error(ErrorKind::Memory, "cuda: cannot ", what, " (the device has no memory left)");
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string reason = driver_.describe(result);
  if (!destroys_context(result))
    user_error(ErrorKind::Runtime, "cuda: cannot ", what, " (", reason, ")");
  reason += running_kernels();
  if (!is_lost_.exchange(true)) loss_ = reason;
  user_error(ErrorKind::Runtime, "cuda: cannot ", what, " (", reason,
             ")\nhint: the context is lost: start a new process; with CUDA_LAUNCH_BLOCKING=1 the "
             "error names the kernel alone");
}

std::shared_ptr<const std::string> label_of(const runtime::KernelSource& source) {
  return std::make_shared<const std::string>(
      source.location.empty() ? source.name : concat(source.name, " (", source.location, ")"));
}

}  // namespace rune::cuda
