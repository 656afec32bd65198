// Keeps the pipelines of one library on disk, so that later processes need not compile them.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "metal/objects.h"

namespace rune::metal {

// An MTLBinaryArchive in the cache folder (RUNE_JIT_CACHE_DIR), under a hash of the source, the
// device and the system's version. If the file cannot be used, pipelines are compiled. Only this
// user may access the folder and its files. They take at most 256 MiB: the files used longest ago
// are removed first.
class Archive {
 public:
  // Reads the file if there is one. The archive stays empty and is not written if RUNE_JIT_CACHE is
  // off. The same holds for GPUs before Apple7 and of virtual machines, because Metal's archives
  // would end the process there by a failed assertion.
  Archive(id<MTLDevice> device, const std::string& source);

  // Describes the pipeline of a function. Metal then looks for the pipeline in the archive first.
  // The caller needs an autorelease pool.
  MTLComputePipelineDescriptor* describe(id<MTLFunction> function) const;
  // Adds compiled pipelines and writes the archive, unless it was read from a file. It writes a
  // temporary file and renames it, so that other processes read either all of it or nothing.
  void save(std::span<MTLComputePipelineDescriptor* const> pipelines);

 private:
  id<MTLBinaryArchive> open(NSURL* url) const;

  const id<MTLDevice> device_;
  std::filesystem::path path_;
  id<MTLBinaryArchive> archive_;
  bool is_read_ = false;  // whether it was read from a file; Metal does not list its contents
};

}  // namespace rune::metal
