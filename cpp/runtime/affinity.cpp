#include "runtime/affinity.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace rune::runtime {

#if defined(__linux__)

namespace {

// The process's mask is that of its main thread. Other programs see and change it by the process's
// number.
bool read_process_mask(cpu_set_t& mask) {
  CPU_ZERO(&mask);
  return sched_getaffinity(getpid(), sizeof mask, &mask) == 0;
}

// The number of cores that the quota of one group (version 1 or 2) allows; 0 without a quota.
double quota_of(const std::string& folder) {
  std::string quota;
  double period = 0;
  if (std::ifstream v2(folder + "/cpu.max"); !(v2 >> quota >> period)) {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  const double microseconds = std::strtod(quota.c_str(), nullptr);  // 0 for `max`
  return microseconds > 0 && period > 0 ? microseconds / period : 0;
}

std::string read_text(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

int quota_cores(const std::string& membership, const std::string& mount) {
  double least = 0;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const bool is_v2 = controllers == ",,";
    if (!is_v2 && controllers.find(",cpu,") == std::string::npos) continue;
    // A container may see its own group as the root, although the path is the host's.
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      while (!path.empty() && path.back() == '/') path.pop_back();
      for (const char* place : {"", "/unified", "/cpu", "/cpu,cpuacct"})
        if (const double cores = quota_of(mount + place + path); cores > 0)
          least = least > 0 ? std::min(least, cores) : cores;
      if (path.empty()) break;
    }
  }
  return static_cast<int>(std::ceil(least));
}

int available_cores() {
  cpu_set_t mask;
  int cores = read_process_mask(mask) ? CPU_COUNT(&mask)
                                      : static_cast<int>(std::thread::hardware_concurrency());
  // More threads than the quota allows only use it up sooner, and the kernel then stops all of
  // them.
  const int quota = quota_cores(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (quota > 0) cores = std::min(cores, quota);
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

void use_process_cores() {
  cpu_set_t process, mask;
  if (!read_process_mask(process)) return;
  if (pthread_getaffinity_np(pthread_self(), sizeof mask, &mask) == 0 && CPU_EQUAL(&process, &mask))
    return;
  pthread_setaffinity_np(pthread_self(), sizeof process, &process);
}

#else

int available_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int quota_cores(const std::string&, const std::string&) {
  return 0;
}

int current_core() {
  return -1;
}

bool keep_off_core(pthread_t, int) {
  return false;
}

void use_process_cores() {}

#endif

}  // namespace rune::runtime
