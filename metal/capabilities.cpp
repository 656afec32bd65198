#include "metal/metal_device.h"
#include "render/msl.h"

namespace rune::metal {

// Only the elementary operations are native. Metal computes them exactly or rounds them correctly.
// For other functions its specification allows more error than the float contract.
Capabilities capabilities() {
  Capabilities caps = render::capabilities_of(render::msl_dialect());
  caps.num_cores = 10;
  caps.vector_bits = 128;  // the widest access of one thread
  caps.num_vector_registers = 96;
  caps.max_threads_per_group = 1024;
  caps.simd_width = render::msl_dialect().simd_width;
  caps.l2_bytes = 768 << 10;
  caps.last_level_bytes = 8 << 20;
  caps.bandwidth_bytes_per_ns = 100;
  caps.last_level_bytes_per_ns = 300;
  caps.operations_per_ns = rates_by_size(1750);
  caps.launch_ns = 5000;
  return caps;
}

}  // namespace rune::metal
