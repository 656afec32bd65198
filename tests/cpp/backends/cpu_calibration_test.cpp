#include "backends/cpu/cpu_calibration.h"

#include <gtest/gtest.h>

#include <limits>

#include "alu/alu.h"
#include "backends/cpu/cpu_capabilities.h"
#include "base/error.h"

namespace rune::runtime {
namespace {

TEST(CpuCalibration, MeasuresEachFigureNearWhatIsAssumed) {
  const Capabilities& caps = cpu_capabilities();
  const auto assumed = figures_of(caps), measured = measure_cpu(caps);
  ASSERT_EQ(measured.size(), assumed.size());
  for (const auto& [name, value] : measured) {
    // Two digits are kept, so the last step may lead a little beyond.
    EXPECT_GE(value, assumed.at(name) / 4 * 0.94) << name;
    EXPECT_LE(value, assumed.at(name) * 4 * 1.06) << name;
  }
}

TEST(CpuCalibration, ReplacesFiguresThatAreNumbers) {
  Capabilities caps = cpu_capabilities();
  CpuFigures figures = figures_of(caps);
  figures["launch_ns"] = 123;
  set_figures(caps, figures);
  EXPECT_EQ(figures_of(caps)["launch_ns"], 123);
  figures["float32_operations_per_ns"] = 15;
  figures["float32_divisions_per_ns"] = 2.5;
  set_figures(caps, figures);
  EXPECT_EQ(caps.divisions_per_ns[static_cast<size_t>(DType::Float32)], 2.5);
  EXPECT_EQ(caps.divisions_per_ns[static_cast<size_t>(DType::Float16)], 2.5);
  EXPECT_EQ(cost_of(caps, AluOp::Fdiv, DType::Float32), 6);
  EXPECT_EQ(cost_of(caps, AluOp::Sqrt, DType::Float32), 8);
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    figures["l2_bytes_per_ns"] = bad;
    EXPECT_THROW(set_figures(caps, figures), UserError);
  }
}

TEST(CpuCalibration, CapabilitiesThatAreInUseKeepTheirFigures) {
  const Capabilities& before = cpu_capabilities();
  CpuFigures figures = figures_of(before);
  const double launch_ns = figures["launch_ns"];
  figures["launch_ns"] = 2 * launch_ns;
  calibrate_cpu(figures);
  EXPECT_EQ(cpu_capabilities().launch_ns, 2 * launch_ns);
  EXPECT_EQ(before.launch_ns, launch_ns);
  calibrate_cpu(figures_of(before));
  EXPECT_EQ(cpu_capabilities().launch_ns, launch_ns);
}

}  // namespace
}  // namespace rune::runtime
