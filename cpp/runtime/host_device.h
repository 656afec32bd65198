// The base of devices that use the host's memory and whose launches have run when they return.
#pragma once

#include "runtime/device.h"

namespace rune::runtime {

// The process's caching allocator provides the memory.
class HostDevice : public Device {
 public:
  bool addresses_host_memory() const override { return true; }
  Allocator& allocator() override;
  void synchronize() override {}
  std::optional<double> time(const std::function<void()>& launch) override;
  void copy_in(void* device, const void* host, size_t bytes) override;
  void copy_out(void* host, const void* device, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
};

}  // namespace rune::runtime
