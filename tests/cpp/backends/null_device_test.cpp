#include "backends/null/null_device.h"

#include <gtest/gtest.h>

#include "alu/alu.h"
#include "base/error.h"

namespace rune::runtime {
namespace {

TEST(NullDevice, CompilesButDoesNotRun) {
  const std::shared_ptr<Device> device = make_null_device();
  EXPECT_EQ(device->name(), "null");
  std::vector<KernelSource> sources(2);
  sources[0].name = "k0";
  sources[1].name = "k1";
  sources[1].text = "anything";
  const auto programs = device->compiler().compile(sources);
  ASSERT_EQ(programs.size(), 2u);
  device->synchronize();
  try {
    programs[1]->launch({});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    const std::string message = e.what();
    EXPECT_NE(message.find("kernel k1"), std::string::npos) << message;
    EXPECT_NE(message.find("runs nothing"), std::string::npos) << message;
  }
}

TEST(NullDevice, HoldsMemory) {
  const std::shared_ptr<Device> device = make_null_device();
  void* const memory = device->allocator().allocate(8);
  const double in = 1.5;
  double out = 0;
  device->copy_in(memory, &in, 8);
  device->copy_out(&out, memory, 8);
  EXPECT_EQ(out, in);
  device->allocator().deallocate(memory, 8);
}

TEST(NullDevice, PlansAsAGridDevice) {
  const Capabilities caps = null_capabilities();
  EXPECT_EQ(caps.model, ExecutionModel::Grid);
  EXPECT_EQ(caps.max_threads_per_group, 256);
  EXPECT_TRUE(is_native(caps, AluOp::Erf, DType::Float16));
  EXPECT_TRUE(caps.has_dtype(DType::Float64));
}

}  // namespace
}  // namespace rune::runtime
