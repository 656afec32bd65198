#include "backends/cuda/transfers.h"

#include <algorithm>
#include <cstring>

#include "runtime/thread_pool.h"

namespace rune::cuda {

namespace {

constexpr size_t kLeastStaged = size_t{512} << 10;  // below, the driver's copy is as fast
constexpr size_t kPiece = size_t{8} << 20;
constexpr double kBytesPerNs = 8;  // one core's rate of copying

// Whether the memory is pinned, so that the device reads and writes it directly. The calling thread
// must have a context.
bool is_pinned(const void* host) {
  int type = 0;  // stays 0 for memory that the driver does not know
  int attribute = kPointerMemoryType;
  void* value = &type;
  return driver().pointer_attributes(1, &attribute, &value, to_address(host)) == kSuccess &&
         type == kHostMemory;
}

void copy_on_all_cores(void* to, const void* from, size_t bytes) {
  constexpr size_t kTask = size_t{256} << 10;
  const auto tasks = static_cast<int64_t>((bytes + kTask - 1) / kTask);
  runtime::parallel_for(tasks, static_cast<double>(bytes) / kBytesPerNs,
                        [&](int64_t begin, int64_t end) {
                          const size_t first = static_cast<size_t>(begin) * kTask;
                          const size_t last = std::min(static_cast<size_t>(end) * kTask, bytes);
                          std::memcpy(static_cast<char*>(to) + first,
                                      static_cast<const char*>(from) + first, last - first);
                        });
}

}  // namespace

// Makes the stages, which live as long as the process. Called with the mutex locked.
void Transfers::prepare() {
  for (Stage& stage : stages_) {
    if (!stage.memory)
      context_.check(driver().allocate_host(&stage.memory, kPiece, 0), "allocate pinned memory");
    if (!stage.copied)
      context_.check(driver().create_event(&stage.copied, kEventWithoutTiming), "make an event");
  }
}

void Transfers::copy_in(void* device, const void* host, size_t bytes) {
  const Context::Scope scope(context_);
  const StreamHandle stream = context_.stream();
  const bool pinned = is_pinned(host);
  if (bytes < kLeastStaged || pinned) {
    context_.check(driver().copy_in(to_address(device), host, bytes, stream), "copy to the device");
    if (pinned) context_.synchronize();  // for other memory, the driver returns after the copy
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  prepare();
  for (size_t at = 0, piece = 0; at < bytes; at += kPiece, ++piece) {
    const Stage& stage = stages_[piece % stages_.size()];
    const size_t size = std::min(kPiece, bytes - at);
    context_.check(driver().synchronize_event(stage.copied), "copy to the device");
    copy_on_all_cores(stage.memory, static_cast<const char*>(host) + at, size);
    context_.check(driver().copy_in(to_address(device) + at, stage.memory, size, stream),
                   "copy to the device");
    context_.check(driver().record_event(stage.copied, stream), "copy to the device");
  }
}

void Transfers::copy_out(void* host, const void* device, size_t bytes) {
  const Context::Scope scope(context_);
  const StreamHandle stream = context_.stream();
  if (bytes < kLeastStaged || is_pinned(host)) {
    context_.check(driver().copy_out(host, to_address(device), bytes, stream), "copy to the host");
    context_.synchronize();
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  prepare();
  const auto size_of_piece = [&](size_t at) { return std::min(kPiece, bytes - at); };
  const auto start = [&](size_t at) {
    const Stage& stage = stages_[at / kPiece % stages_.size()];
    context_.check(
        driver().copy_out(stage.memory, to_address(device) + at, size_of_piece(at), stream),
        "copy to the host");
    context_.check(driver().record_event(stage.copied, stream), "copy to the host");
  };
  start(0);
  for (size_t at = 0; at < bytes; at += kPiece) {
    if (at + kPiece < bytes) start(at + kPiece);
    const Stage& stage = stages_[at / kPiece % stages_.size()];
    context_.check(driver().synchronize_event(stage.copied), "copy to the host");
    copy_on_all_cores(static_cast<char*>(host) + at, stage.memory, size_of_piece(at));
  }
}

}  // namespace rune::cuda
