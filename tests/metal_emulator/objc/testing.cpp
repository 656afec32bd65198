// Faults that tests ask for, and counts that they read.
#include <map>
#include <stdexcept>

#include "metal.h"

namespace rune::metal_emulator {

using namespace objc;

void invalid(const std::string& message) {
  ++injection().violations;
  throw std::logic_error("Metal validation: " + message);
}

void fail(Object** error, const std::string& message) {
  if (error) *error = objc_autorelease(make_error(message));
}

extern "C" {

// Sets a fault or limit by its name; see Injection. 0 for a name that does not exist.
__attribute__((visibility("default"))) int rune_metal_emulator_inject(const char* what,
                                                                      long value) {
  Injection& all = injection();
  const std::map<std::string, std::atomic<long>*> faults = {
      {"no_device", &all.no_device},
      {"old_gpu", &all.old_gpu},
      {"paravirtual", &all.paravirtual},
      {"empty_adoptions", &all.empty_adoptions},
      {"fail_archives", &all.fail_archives},
      {"ignores_after_errors", &all.ignores_after_errors},
      {"late_handlers", &all.late_handlers},
      {"pipeline_us", &all.pipeline_us},
      {"gpu_cores", &all.gpu_cores},
      {"peak_bytes", &all.peak_bytes},
      {"made_at_once", &all.made_at_once},
      {"fail_allocations", &all.fail_allocations},
      {"lost", &all.lost},
      {"time_outs", &all.time_outs},
      {"fail_command_buffers", &all.fail_command_buffers},
      {"fail_libraries", &all.fail_libraries},
      {"latency_us", &all.latency_us},
      {"max_threads", &all.max_threads},
      {"simd_width", &all.simd_width},
      {"working_set", &all.working_set}};
  const auto found = faults.find(what);
  if (found == faults.end()) return 0;
  *found->second = value;
  return 1;
}

// Living objects of a class, or an event's count so far: committed, launched, barriers, adopted
// (buffers of the host's memory), free_dispatches, unlabelled (buffers bound), archived and
// from_archives (pipelines), queues (made), made_at_once (pipelines, the most), buffer_bytes (that
// live; not of the host's memory) and peak_bytes (the most of them), violations, without_pool
// (autoreleased objects that leak). -1 for a name that does not exist.
__attribute__((visibility("default"))) long rune_metal_emulator_count(const char* what) {
  const Injection& all = injection();
  const std::map<std::string, const std::atomic<long>*> counts = {
      {"buffers", &buffer_class.live},
      {"command_buffers", &commands_class.live},
      {"encoders", &encoder_class.live},
      {"libraries", &library_class.live},
      {"pipelines", &pipeline_class.live},
      {"functions", &function_class.live},
      {"options", &_OBJC_CLASS_MTLCompileOptions.live},
      {"committed", &all.committed},
      {"launched", &all.launched},
      {"barriers", &all.barriers},
      {"adopted", &all.adopted},
      {"archived", &all.archived},
      {"from_archives", &all.from_archives},
      {"archives", &archive_class.live},
      {"free_dispatches", &all.free_dispatches},
      {"unlabelled", &all.unlabelled},
      {"queues", &all.queues},
      {"buffer_bytes", &all.buffer_bytes},
      {"peak_bytes", &all.peak_bytes},
      {"made_at_once", &all.made_at_once},
      {"violations", &all.violations},
      {"without_pool", &objc::autoreleased_without_pool}};
  const auto found = counts.find(what);
  return found == counts.end() ? -1 : found->second->load();
}

}  // extern "C"

}  // namespace rune::metal_emulator
