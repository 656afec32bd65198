#include "metal/capture.h"

#include <cstdlib>

#include "base/error.h"
#include "base/options.h"

namespace rune::metal {

namespace {

void stop_capture() {
  @autoreleasepool {
    [[MTLCaptureManager sharedCaptureManager] stopCapture];
  }
}

}  // namespace

void start_capture(id<MTLDevice> device) {
  const std::string& path = options().metal_capture;
  if (path.empty()) return;
  bool is_recording = false;
  std::string reason;
  @autoreleasepool {
    MTLCaptureDescriptor* const descriptor = [MTLCaptureDescriptor new];
    descriptor.captureObject = device;
    descriptor.destination = MTLCaptureDestinationGPUTraceDocument;
    descriptor.outputURL = [NSURL fileURLWithPath:to_ns(path)];
    NSError* error = nil;
    is_recording = [[MTLCaptureManager sharedCaptureManager] startCaptureWithDescriptor:descriptor
                                                                                  error:&error];
    if (!is_recording) reason = describe(error);
  }
  if (!is_recording)
    user_error(ErrorKind::Runtime, "metal: cannot record commands in ", path, " (", reason,
               ")\nhint: Metal records if MTL_CAPTURE_ENABLED=1 is set; the file must not exist");
  // Programs in Python's caches may keep the device after the interpreter has ended, so recording
  // stops when the process exits.
  std::atexit(stop_capture);
}

}  // namespace rune::metal
