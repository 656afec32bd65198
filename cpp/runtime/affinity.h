// The cores that this process and its threads may run on.
#pragma once

#include <pthread.h>

#include <string>

namespace rune::runtime {

// The number of cores that this process may run on and that its container's quota allows; at least
// 1.
int available_cores();

// The cores that the CPU quotas of a control group amount to, rounded up; 0 without a quota. The
// quota of each group above it counts, too. `membership` is the text of /proc/self/cgroup, and
// `mount` is where the groups' files are, of either version.
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
