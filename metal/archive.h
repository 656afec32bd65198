// Pipelines of one library on disk, so that later processes skip the GPU's compiler.
#pragma once

#include <filesystem>
#include <string>

#include "metal/objects.h"

namespace rune::metal {

// An MTLBinaryArchive in the cache folder (RUNE_JIT_CACHE_DIR), by a hash of the source, the device
// and the system's version. Whatever goes wrong with the file, pipelines are compiled as without
// it.
class Archive {
 public:
  // Reads the file if there is one. Does nothing, here or later, if RUNE_JIT_CACHE is off.
  Archive(id<MTLDevice> device, const std::string& source);

  // A pipeline from the archive, or compiled and added to it. nil, with `error`, if there is none.
  id<MTLComputePipelineState> make_pipeline(id<MTLFunction> function, std::string& error);
  // Writes what was added: to a file of its own first, so that others read all or nothing.
  void save();

 private:
  id<MTLBinaryArchive> open(NSURL* url) const;

  const id<MTLDevice> device_;
  std::filesystem::path path_;
  id<MTLBinaryArchive> archive_;
  bool is_read_ = false;  // from a file; Metal does not say what is in it
  bool has_changed_ = false;
};

}  // namespace rune::metal
