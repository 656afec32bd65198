#include "metal/archive.h"

#include <unistd.h>

#include <random>
#include <utility>

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

}  // namespace

Archive::Archive(id<MTLDevice> device, const std::string& source) : device_(device) {
  if (!options().cache) return;
  @autoreleasepool {
    const std::filesystem::path where = folder();
    if (where.empty()) return;
    const std::string machine =
        to_std(device.name) + to_std(NSProcessInfo.processInfo.operatingSystemVersionString);
    const uint64_t seed = hash_bytes(machine);
    path_ = where / (hex(hash_bytes(source, seed)) + hex(hash_bytes(source, ~seed)) + ".archive");
    std::error_code failed;
    if (std::filesystem::exists(path_, failed)) archive_ = open(to_url(path_));
    is_read_ = archive_ != nil;
    if (!archive_) archive_ = open(nil);
  }
}

id<MTLBinaryArchive> Archive::open(NSURL* url) const {
  MTLBinaryArchiveDescriptor* const descriptor = [MTLBinaryArchiveDescriptor new];
  descriptor.url = url;
  return [device_ newBinaryArchiveWithDescriptor:descriptor error:nil];
}

id<MTLComputePipelineState> Archive::make_pipeline(id<MTLFunction> function, std::string& error) {
  MTLComputePipelineDescriptor* const descriptor = [MTLComputePipelineDescriptor new];
  descriptor.computeFunction = function;
  descriptor.label = function.name;
  if (archive_) {
    if (!is_read_)
      has_changed_ |= [archive_ addComputePipelineFunctionsWithDescriptor:descriptor error:nil];
    descriptor.binaryArchives = @[ archive_ ];
  }
  NSError* failure = nil;
  const id<MTLComputePipelineState> pipeline =
      [device_ newComputePipelineStateWithDescriptor:descriptor
                                             options:MTLPipelineOptionNone
                                          reflection:nil
                                               error:&failure];
  if (!pipeline) error = describe(failure);
  return pipeline;
}

void Archive::save() {
  if (!std::exchange(has_changed_, false)) return;
  @autoreleasepool {
    std::error_code failed;
    std::filesystem::create_directories(path_.parent_path(), failed);
    std::filesystem::path fresh = path_;
    fresh += "." + std::to_string(getpid()) + "." + std::to_string(std::random_device()());
    if ([archive_ serializeToURL:to_url(fresh) error:nil])
      std::filesystem::rename(fresh, path_, failed);
    if (failed) std::filesystem::remove(fresh, failed);
  }
}

}  // namespace rune::metal
