// The cores that this process and its threads may run on.
#pragma once

#include <pthread.h>

#include <string>

namespace rune::runtime {

// The number of cores that this process may use by its affinity and its container's quota. At least
// 1.
int available_cores();

// The number of cores that a control group's CPU quota allows, rounded up; 0 without a quota. The
// least quota of the group and of the groups above it counts. `membership` is the text of
// /proc/self/cgroup. `mount` is the folder of the groups' files (cgroup version 1 or 2).
int quota_cores(const std::string& membership, const std::string& mount);

// The core that the calling thread runs on; -1 if the system does not tell.
int current_core();

// Removes a core from those that a thread of this process may run on. Returns false and changes
// nothing if the thread may run on no other core or the system has no such setting.
bool keep_off_core(pthread_t thread, int core);

// Lets the calling thread run on the cores that the process may run on now. It may have inherited
// fewer from the thread that started it, and keep_off_core may have removed one.
void use_process_cores();

}  // namespace rune::runtime
