#include "metal/metal_device.h"

#import <IOKit/IOKitLib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "metal/allocator.h"
#include "metal/capture.h"
#include "metal/compiler.h"
#include "metal/objects.h"
#include "metal/queue.h"

namespace rune::metal {

namespace {

// The default device. Processes without a window server, and those that only see virtual GPUs, find
// it only in the list of all devices. The caller need not have an autorelease pool.
NS_RETURNS_RETAINED id<MTLDevice> find_device() {
  @autoreleasepool {
    const id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    return device ? device : MTLCopyAllDevices().firstObject;
  }
}

// The number of the GPU's cores. It comes from the system's registry, because Metal does not report
// it. 0 if the registry lacks it too, as in virtual machines.
int count_cores() {
  int cores = 0;
  io_iterator_t found = 0;
  if (IOServiceGetMatchingServices(kIOMainPortDefault, IOServiceMatching("AGXAccelerator"),
                                   &found) != KERN_SUCCESS)
    return 0;
  while (const io_registry_entry_t gpu = IOIteratorNext(found)) {
    const CFTypeRef number =
        IORegistryEntryCreateCFProperty(gpu, CFSTR("gpu-core-count"), kCFAllocatorDefault, 0);
    if (number && CFGetTypeID(number) == CFNumberGetTypeID())
      CFNumberGetValue(static_cast<CFNumberRef>(number), kCFNumberIntType, &cores);
    if (number) CFRelease(number);
    IOObjectRelease(gpu);
  }
  IOObjectRelease(found);
  return cores;
}

Capabilities read_capabilities(Capabilities caps, id<MTLDevice> device) {
  @autoreleasepool {
    const MTLSize threads = device.maxThreadsPerThreadgroup;
    caps.max_threads_per_group = static_cast<int>(std::min<NSUInteger>(threads.width, 1 << 20));
    caps.shared_memory_bytes = static_cast<int64_t>(device.maxThreadgroupMemoryLength);
    // Older GPUs than the A14 and the M1 lack reductions over SIMD-groups of 32 threads, matrix
    // units and atomic operations on floats.
    if (![device supportsFamily:MTLGPUFamilyApple7]) {
      caps.simd_ops.fill({});
      caps.simd_shuffles.reset();
      caps.matrix_ops.clear();
      caps.atomic_ops[static_cast<size_t>(DType::Float32)].reset();
    }
  }
  if (const int cores = count_cores(); cores > 0) {
    const double more = static_cast<double>(cores) / caps.num_cores;
    caps.num_cores = cores;
    for (double& rate : caps.operations_per_ns) rate *= more;
  }
  return caps;
}

class Device : public runtime::Device {
 public:
  explicit Device(id<MTLDevice> device)
      : capabilities_(read_capabilities(metal::capabilities(), device)),
        queue_(device),
        allocator_(device, queue_),
        compiler_(device, queue_, allocator_, capabilities_) {}

  ~Device() override { queue_.finish(); }

  const std::string& name() const override { return capabilities_.name; }
  const Capabilities& capabilities() const override { return capabilities_; }
  runtime::Allocator& allocator() override { return allocator_; }
  runtime::Compiler& compiler() override { return compiler_; }
  void synchronize() override { queue_.synchronize(); }

  void copy_in(void* device, const void* host, size_t bytes) override {
    wait_for(device, bytes, false);
    std::memcpy(device, host, bytes);
  }
  void copy_out(void* host, const void* device, size_t bytes) override {
    wait_for(device, bytes, true);
    std::memcpy(host, device, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    wait_for(to, bytes, false);
    wait_for(from, bytes, true);
    std::memmove(to, from, bytes);
  }

 private:
  // Waits for the earlier launches that use the memory. The host may use it then.
  void wait_for(const void* memory, size_t bytes, bool to_read) {
    if (bytes == 0) return;
    const Binding binding = allocator_.find(memory);
    RUNE_CHECK(bytes <= binding.block->bytes - binding.offset, "a copy of ", bytes,
               " bytes behind the end of a buffer");
    queue_.wait_for(*binding.block, to_read);
  }

  const Capabilities capabilities_;
  Queue queue_;
  Allocator allocator_;
  Compiler compiler_;
};

bool is_recent() {
  if (@available(macOS 14.0, *)) return true;
  return false;
}

}  // namespace

std::shared_ptr<runtime::Device> make_device() {
  if (!is_recent())
    user_error(ErrorKind::Runtime,
               "metal: cannot use this system's Metal (macOS 14 or later is needed)");
  const id<MTLDevice> device = find_device();
  if (!device)
    user_error(ErrorKind::Runtime,
               "metal: cannot open a Metal device (this machine has no GPU that Metal can use)\n"
               "hint: run on the CPU with device=\"cpu\"");
  start_capture(device);
  return std::make_shared<Device>(device);
}

bool is_available() {
  return is_recent() && find_device() != nil;
}

}  // namespace rune::metal
