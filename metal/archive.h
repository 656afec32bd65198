// Keeps the pipelines of one library on disk, so that later processes need not compile them.
#pragma once

#include <filesystem>
#include <string>

#include "metal/objects.h"

namespace rune::metal {

// An MTLBinaryArchive in the cache folder (RUNE_JIT_CACHE_DIR), under a hash of the source, the
// device and the system's version. If the file cannot be used, pipelines are compiled.
class Archive {
 public:
  // Reads the file if there is one. If RUNE_JIT_CACHE is off, the archive stays empty and is not
  // written.
  Archive(id<MTLDevice> device, const std::string& source);

  // Returns a pipeline from the archive, or compiles one and adds it. Returns nil and sets `error`
  // if the compiler fails.
  id<MTLComputePipelineState> make_pipeline(id<MTLFunction> function, std::string& error);
  // Writes the archive if pipelines were added. It writes another file and renames it, so that
  // other processes read all of it or nothing.
  void save();

 private:
  id<MTLBinaryArchive> open(NSURL* url) const;

  const id<MTLDevice> device_;
  std::filesystem::path path_;
  id<MTLBinaryArchive> archive_;
  bool is_read_ = false;  // from a file, whose contents Metal does not list
  bool has_changed_ = false;
};

}  // namespace rune::metal
