// The cores that this process and its threads may run on.
#pragma once

#include <pthread.h>

namespace rune::runtime {

// The number of cores that this process may run on and that its container's quota allows; at least
// 1.
int available_cores();

// The core that the calling thread runs on; -1 if the system does not tell.
int current_core();

// Removes a core from those that a thread of this process may run on. Returns false and changes
// nothing if the thread may run on no other core or the system has no such setting.
bool keep_off_core(pthread_t thread, int core);

// Gives back to the calling thread a core that keep_off_core removed, if the process may still run
// on it.
void allow_core(int core);

}  // namespace rune::runtime
