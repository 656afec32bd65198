#include "runtime/affinity.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace rune::runtime {

#if defined(__linux__)

namespace {

// The process's mask is that of its main thread, which other programs see and change by its number.
bool read_process_mask(cpu_set_t& mask) {
  CPU_ZERO(&mask);
  return sched_getaffinity(getpid(), sizeof mask, &mask) == 0;
}

// Cores that a container's quota amounts to, rounded up; 0 without a quota.
int quota_cores() {
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); !(v2 >> quota >> period)) {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  const double microseconds = std::strtod(quota.c_str(), nullptr);  // 0 of `max`
  return microseconds > 0 && period > 0 ? static_cast<int>(std::ceil(microseconds / period)) : 0;
}

}  // namespace

int available_cores() {
  cpu_set_t mask;
  int cores = read_process_mask(mask) ? CPU_COUNT(&mask)
                                      : static_cast<int>(std::thread::hardware_concurrency());
  // A thread beyond the quota only uses it up sooner: the kernel then stops all of them.
  if (const int quota = quota_cores(); quota > 0) cores = std::min(cores, quota);
  return std::max(1, cores);
}

int current_core() {
  return sched_getcpu();
}

bool keep_off_core(pthread_t thread, int core) {
  cpu_set_t mask;
  if (pthread_getaffinity_np(thread, sizeof mask, &mask) != 0) return false;
  CPU_CLR(core, &mask);
  return CPU_COUNT(&mask) > 0 && pthread_setaffinity_np(thread, sizeof mask, &mask) == 0;
}

void allow_core(int core) {
  cpu_set_t process, mask;
  if (!read_process_mask(process) || !CPU_ISSET(core, &process)) return;
  if (pthread_getaffinity_np(pthread_self(), sizeof mask, &mask) != 0) return;
  CPU_SET(core, &mask);
  pthread_setaffinity_np(pthread_self(), sizeof mask, &mask);
}

#else

int available_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int current_core() {
  return -1;
}

bool keep_off_core(pthread_t, int) {
  return false;
}

void allow_core(int) {}

#endif

}  // namespace rune::runtime
