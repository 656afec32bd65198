// MTLCaptureManager: its recording is a text file that names the command buffers.
#include <cstdlib>
#include <fstream>

#include "metal.h"

namespace rune::metal_emulator {

using namespace objc;

namespace {

struct CaptureDescriptor : Object {
  Ref<Object> object, url;
  long destination = 0;
};

std::mutex mutex;
std::string recording;  // the file; empty: nothing is recorded
std::vector<std::string> labels;

void set_object(CaptureDescriptor* self, Selector*, Object* object) {
  self->object = Ref<Object>(object);
}
void set_destination(CaptureDescriptor* self, Selector*, long destination) {
  self->destination = destination;
}
void set_url(CaptureDescriptor* self, Selector*, Object* url) {
  self->url = Ref<Object>(url);
}

signed char start(Object*, Selector*, CaptureDescriptor* descriptor, Object** error) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!descriptor->object.get()) invalid("a capture without an object");
  if (!std::getenv("MTL_CAPTURE_ENABLED")) return fail(error, "Capturing is not supported."), 0;
  if (!recording.empty()) return fail(error, "already capturing"), 0;
  if (descriptor->destination != 2 || !descriptor->url.get())
    return fail(error, "a recording needs a file"), 0;
  recording = path_of(descriptor->url.get());
  return 1;
}

void stop(Object*, Selector*) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (recording.empty()) invalid("stopCapture without a capture");
  std::ofstream out(recording);
  for (const std::string& label : labels) out << label << "\n";
  recording.clear();
  labels.clear();
}

Class manager_class{
    nullptr,
    "MTLCaptureManager",
    nullptr,
    {method("startCaptureWithDescriptor:error:", start), method("stopCapture", stop)}};

Object* shared_manager(Object*, Selector*) {
  static Object* const manager = make<Object>(manager_class);
  return manager;
}
Object* new_descriptor(Object*, Selector*);

Class manager_meta{
    nullptr, "MTLCaptureManager class", nullptr, {method("sharedCaptureManager", shared_manager)}};
Class descriptor_meta{
    nullptr, "MTLCaptureDescriptor class", nullptr, {method("new", new_descriptor)}};

}  // namespace

void record(const std::string& label) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!recording.empty()) labels.push_back(label);
}

extern "C" {
long __objc_class_name_MTLCaptureManager = 0;
Class _OBJC_CLASS_MTLCaptureManager{&manager_meta, "MTLCaptureManager", nullptr, {}};
long __objc_class_name_MTLCaptureDescriptor = 0;
Class _OBJC_CLASS_MTLCaptureDescriptor{
    &descriptor_meta,
    "MTLCaptureDescriptor",
    nullptr,
    {method("setCaptureObject:", set_object), method("setDestination:", set_destination),
     method("setOutputURL:", set_url)},
    destroy<CaptureDescriptor>};
}

namespace {
Object* new_descriptor(Object*, Selector*) {
  return make<CaptureDescriptor>(_OBJC_CLASS_MTLCaptureDescriptor);
}
}  // namespace

}  // namespace rune::metal_emulator
