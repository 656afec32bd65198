// Keeps the pipelines of one library on disk, so that later processes need not compile them.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "metal/objects.h"

namespace rune::metal {

// An MTLBinaryArchive in the cache folder (RUNE_JIT_CACHE_DIR), under a hash of the source, the
// device and the system's version. If the file cannot be used, pipelines are compiled. The folder
// and its files are this user's alone. They take at most 256 MiB: those used longest ago go first.
class Archive {
 public:
  // Reads the file if there is one. The archive stays empty and is not written if RUNE_JIT_CACHE is
  // off, and on GPUs before Apple7 and those of virtual machines, where Metal's archives end the
  // process by a failed assertion.
  Archive(id<MTLDevice> device, const std::string& source);

  // Describes the pipeline of a function. Metal looks in the archive first. The caller needs an
  // autorelease pool.
  MTLComputePipelineDescriptor* describe(id<MTLFunction> function) const;
  // Adds compiled pipelines and writes the archive, unless it was read from a file. It writes
  // another file and renames it, so that other processes read all of it or nothing.
  void save(std::span<MTLComputePipelineDescriptor* const> pipelines);

 private:
  id<MTLBinaryArchive> open(NSURL* url) const;

  const id<MTLDevice> device_;
  std::filesystem::path path_;
  id<MTLBinaryArchive> archive_;
  bool is_read_ = false;  // from a file, whose contents Metal does not list
};

}  // namespace rune::metal
