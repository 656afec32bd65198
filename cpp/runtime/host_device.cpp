#include "runtime/host_device.h"

#include <cstring>

#include "runtime/caching_allocator.h"

namespace rune::runtime {

Allocator& HostDevice::allocator() {
  return caching_allocator();
}

// The addresses of empty copies may be null, which memcpy does not take.
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
