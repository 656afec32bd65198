// The system's registry of devices: one GPU and the number of its cores.
#include <cstring>

#include "metal.h"

namespace {

using rune::metal_emulator::injection;

constexpr unsigned kIterator = 1, kGpu = 2;
int asked = 0;  // times that the iterator has moved
long cores = 0;

}  // namespace

extern "C" {

const void* IOServiceMatching(const char* name) {
  return std::strcmp(name, "AGXAccelerator") == 0 ? &asked : nullptr;
}

int IOServiceGetMatchingServices(unsigned, const void* matching, unsigned* existing) {
  if (!matching) return 1;
  asked = 0;
  *existing = kIterator;
  return 0;
}

unsigned IOIteratorNext(unsigned iterator) {
  return iterator == kIterator && asked++ == 0 && injection().gpu_cores > 0 ? kGpu : 0;
}

int IOObjectRelease(unsigned) {
  return 0;
}

const void* IORegistryEntryCreateCFProperty(unsigned entry, const char* key, const void*,
                                            unsigned) {
  cores = injection().gpu_cores;
  return entry == kGpu && std::strcmp(key, "gpu-core-count") == 0 ? &cores : nullptr;
}

unsigned long CFGetTypeID(const void*) {
  return 22;
}
unsigned long CFNumberGetTypeID() {
  return 22;
}

unsigned char CFNumberGetValue(const long* number, long, int* value) {
  *value = static_cast<int>(*number);
  return 1;
}

void CFRelease(const void*) {}

}  // extern "C"
