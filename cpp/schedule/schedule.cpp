#include "schedule/schedule.h"

namespace rune::schedule {

const char* name_of(FusionType type) {
  static constexpr const char* kNames[] = {"Elementwise", "Reduction", "Mixed"};
  return kNames[static_cast<size_t>(type)];
}

ItemAccesses accesses_of(const ScheduleItem& item) {
  if (const Launch* launch = item.launch()) return {launch->inputs, launch->outputs};
  if (const Host_Callback* callback = item.callback()) return {callback->inputs, callback->outputs};
  if (const Loop_Nest* loops = item.loops()) return {loops->inputs, loops->outputs};
  if (const Memory_Transfer* transfer = item.transfer()) return {{transfer->src}, {transfer->dst}};
  return {};
}

}  // namespace rune::schedule
