#include "metal/archive.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/hash.h"
#include "base/options.h"

namespace rune::metal {

namespace {

std::filesystem::path folder() {
  if (!options().cache_dir.empty()) return std::filesystem::path(options().cache_dir) / "metal";
  NSArray<NSString*>* const folders =
      NSSearchPathForDirectoriesInDomains(NSCachesDirectory, NSUserDomainMask, YES);
  const std::string first = to_std(folders.firstObject);
  return first.empty() ? std::filesystem::path() : std::filesystem::path(first) / "rune_jit/metal";
}

NSURL* to_url(const std::filesystem::path& path) {
  return [NSURL fileURLWithPath:to_ns(path.string())];
}

constexpr uintmax_t kMostBytes = uintmax_t{256} << 20;

bool keeps_archives(id<MTLDevice> device) {
  return options().cache && [device supportsFamily:MTLGPUFamilyApple7] && !is_paravirtual(device);
}

// Makes a folder that only this user may access. Returns false if others may write to it.
bool make_private(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::create_directories(folder.parent_path(), failed);
  if (mkdir(folder.c_str(), 0700) == 0) return true;
  struct stat status;
  return stat(folder.c_str(), &status) == 0 && status.st_uid == geteuid() &&
         !(status.st_mode & (S_IWGRP | S_IWOTH));
}

// If the folder exceeds its limit, removes the files used longest ago.
void trim(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  struct File {
    fs::file_time_type used;
    uintmax_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  uintmax_t total = 0;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    std::error_code gone;  // ignored: another process may have removed the file
    const fs::file_time_type used = entry.last_write_time(gone);
    const uintmax_t bytes = gone ? 0 : entry.file_size(gone);
    if (gone) continue;
    files.push_back({used, bytes, entry.path()});
    total += bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= kMostBytes) return;
    fs::remove(file.path, failed);
    total -= file.bytes;
  }
}

}  // namespace

Archive::Archive(id<MTLDevice> device, const std::string& source) : device_(device) {
  @autoreleasepool {
    if (!keeps_archives(device)) return;
    const std::filesystem::path where = folder();
    if (where.empty() || !make_private(where)) return;
    const std::string machine =
        to_std(device.name) + to_std(NSProcessInfo.processInfo.operatingSystemVersionString);
    const uint64_t seed = hash_bytes(machine);
    path_ = where / (hex(hash_bytes(source, seed)) + hex(hash_bytes(source, ~seed)) + ".archive");
    std::error_code failed;
    if (std::filesystem::exists(path_, failed)) archive_ = open(to_url(path_));
    is_read_ = archive_ != nil;
    if (is_read_)
      std::filesystem::last_write_time(path_, std::filesystem::file_time_type::clock::now(),
                                       failed);
    if (!archive_) archive_ = open(nil);
  }
}

id<MTLBinaryArchive> Archive::open(NSURL* url) const {
  MTLBinaryArchiveDescriptor* const descriptor = [MTLBinaryArchiveDescriptor new];
  descriptor.url = url;
  return [device_ newBinaryArchiveWithDescriptor:descriptor error:nil];
}

MTLComputePipelineDescriptor* Archive::describe(id<MTLFunction> function) const {
  MTLComputePipelineDescriptor* const descriptor = [MTLComputePipelineDescriptor new];
  descriptor.computeFunction = function;
  descriptor.label = function.name;
  if (is_read_) descriptor.binaryArchives = @[ archive_ ];
  return descriptor;
}

void Archive::save(std::span<MTLComputePipelineDescriptor* const> pipelines) {
  if (!archive_ || is_read_ || pipelines.empty()) return;
  @autoreleasepool {
    for (MTLComputePipelineDescriptor* pipeline : pipelines)
      [archive_ addComputePipelineFunctionsWithDescriptor:pipeline error:nil];
    std::filesystem::path fresh = path_;
    fresh += "." + std::to_string(getpid()) + "." + std::to_string(std::random_device()());
    std::error_code failed;
    if ([archive_ serializeToURL:to_url(fresh) error:nil] && chmod(fresh.c_str(), 0600) == 0)
      std::filesystem::rename(fresh, path_, failed);
    std::filesystem::remove(fresh, failed);  // the rest of a failed attempt
    trim(path_.parent_path());
  }
}

}  // namespace rune::metal
