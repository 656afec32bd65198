// Which cores this process, and each of its threads, may run on.
#pragma once

#include <pthread.h>

namespace rune::runtime {

// How many cores this process may run on and its container's quota pays for. At least 1.
int available_cores();

// The core that the calling thread runs on; -1 where the system does not tell.
int current_core();

// Takes a core from those that a thread of this process may run on. False, and nothing has changed,
// if the thread may run on no other, or the system has no such setting.
bool keep_off_core(pthread_t thread, int core);

// Gives the calling thread back a core that keep_off_core took, if the process may still run on it.
void allow_core(int core);

}  // namespace rune::runtime
