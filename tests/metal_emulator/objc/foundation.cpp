// NSString, NSError, NSArray, NSURL and NSProcessInfo, as far as metal/ uses them.
#include "runtime.h"

namespace rune::objc {

namespace {

struct String : Object {
  std::string text;
};
struct Error : Object {
  Ref<Object> text;
};
struct Array : Object {
  ~Array() {
    for (Object* item : items) objc_release(item);
  }
  std::vector<Object*> items;
};
// As clang emits literals.
struct ConstantString {
  Class* isa;
  const char* text;
  unsigned length;
};

const char* string_utf8(const String* self, Selector*) {
  return self->text.c_str();
}
const char* constant_utf8(const ConstantString* self, Selector*) {
  return self->text;
}
Object* string_with_utf8(Object*, Selector*, const char* text) {
  return objc_autorelease(make_string(text));
}
Object* error_text(const Error* self, Selector*) {
  return self->text.get();
}
Object* array_first(const Array* self, Selector*) {
  return self->items.empty() ? nullptr : self->items[0];
}

Object* array_with_objects(Object*, Selector*, Object* const* objects, unsigned long count) {
  std::vector<Object*> items(objects, objects + count);
  for (Object* item : items) objc_retain(item);
  return objc_autorelease(make_array(std::move(items)));
}

struct Url : Object {
  std::string path;
};
Object* url_of_path(Object*, Selector*, Object* path);

Object* process_info(Object* self, Selector*) {
  return self;  // one object is enough: the class
}
Object* system_version(Object*, Selector*) {
  return objc_autorelease(make_string("Version 15.0 (emulated)"));
}

Class array_meta{
    nullptr, "NSArray class", nullptr, {method("arrayWithObjects:count:", array_with_objects)}};
Class url_meta{nullptr, "NSURL class", nullptr, {method("fileURLWithPath:", url_of_path)}};
Class process_meta{
    nullptr,
    "NSProcessInfo class",
    nullptr,
    {method("processInfo", process_info), method("operatingSystemVersionString", system_version)}};
Class string_meta{
    nullptr, "NSString class", nullptr, {method("stringWithUTF8String:", string_with_utf8)}};
Class error_class{
    nullptr, "NSError", nullptr, {method("localizedDescription", error_text)}, destroy<Error>};

}  // namespace

extern "C" {
long __objc_class_name_NSArray = 0;
long __objc_class_name_NSURL = 0;
long __objc_class_name_NSProcessInfo = 0;
Class _OBJC_CLASS_NSArray{
    &array_meta, "NSArray", nullptr, {method("firstObject", array_first)}, destroy<Array>};
Class _OBJC_CLASS_NSURL{&url_meta, "NSURL", nullptr, {}, destroy<Url>};
Class _OBJC_CLASS_NSProcessInfo{&process_meta, "NSProcessInfo", nullptr, {}};

Object* NSSearchPathForDirectoriesInDomains(unsigned long, unsigned long, signed char) {
  return objc_autorelease(make_array({make_string(RUNE_CACHES_FOLDER)}));
}

long __objc_class_name_NSString = 0;
Class _OBJC_CLASS_NSString{
    &string_meta, "NSString", nullptr, {method("UTF8String", string_utf8)}, destroy<String>};
Class _OBJC_CLASS_NSConstantString{
    nullptr, "NSConstantString", nullptr, {method("UTF8String", constant_utf8)}};
}

Object* make_string(const std::string& text) {
  auto* string = make<String>(_OBJC_CLASS_NSString);
  string->text = text;
  return string;
}

std::string text_of(const Object* string) {
  if (!string) return "";
  if (string->isa == &_OBJC_CLASS_NSConstantString)
    return reinterpret_cast<const ConstantString*>(string)->text;
  return static_cast<const String*>(string)->text;
}

Object* make_error(const std::string& text) {
  auto* error = make<Error>(error_class);
  Object* const string = make_string(text);
  error->text = Ref<Object>(string);
  objc_release(string);
  return error;
}

Object* make_array(std::vector<Object*> items) {
  auto* array = make<Array>(_OBJC_CLASS_NSArray);
  array->items = std::move(items);
  return array;
}

const std::vector<Object*>& items_of(const Object* array) {
  return static_cast<const Array*>(array)->items;
}

std::string path_of(const Object* url) {
  return url ? static_cast<const Url*>(url)->path : "";
}

namespace {
Object* url_of_path(Object*, Selector*, Object* path) {
  auto* url = make<Url>(_OBJC_CLASS_NSURL);
  url->path = text_of(path);
  return objc_autorelease(url);
}
}  // namespace

}  // namespace rune::objc
