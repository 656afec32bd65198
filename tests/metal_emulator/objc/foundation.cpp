// NSString, NSError and NSArray, as far as metal/ uses them.
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

Class string_meta{
    nullptr, "NSString class", nullptr, {method("stringWithUTF8String:", string_with_utf8)}};
Class error_class{
    nullptr, "NSError", nullptr, {method("localizedDescription", error_text)}, destroy<Error>};
Class array_class{
    nullptr, "NSArray", nullptr, {method("firstObject", array_first)}, destroy<Array>};

}  // namespace

extern "C" {
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
  auto* array = make<Array>(array_class);
  array->items = std::move(items);
  return array;
}

}  // namespace rune::objc
