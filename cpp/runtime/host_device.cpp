#include "runtime/host_device.h"

#include <cstring>

#include "runtime/caching_allocator.h"
#include "runtime/profile.h"

namespace rune::runtime {

Allocator& HostDevice::allocator() {
  return caching_allocator();
}

std::optional<double> HostDevice::time(const std::function<void()>& launch) {
  const int64_t begin = profile_clock_ns();
  launch();
  return static_cast<double>(profile_clock_ns() - begin);
}

// A copy of no bytes may have null addresses, which memcpy does not accept.
void HostDevice::copy_in(void* device, const void* host, size_t bytes) {
  if (bytes) std::memcpy(device, host, bytes);
}

void HostDevice::copy_out(void* host, const void* device, size_t bytes) {
  if (bytes) std::memcpy(host, device, bytes);
}

void HostDevice::copy(void* to, const void* from, size_t bytes) {
  if (bytes) std::memmove(to, from, bytes);
}

}  // namespace rune::runtime
