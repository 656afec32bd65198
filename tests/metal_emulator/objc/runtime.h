// A small Objective-C runtime for tests, by the ABI that clang emits for -fobjc-runtime=objfw:
// message sends, reference counts, autorelease pools and blocks. Classes are C++ structs with a
// table of methods.
#pragma once

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

namespace rune::objc {

struct Selector {
  const char* name;
  const char* types;
};

struct Method {
  const char* name;
  void* function;  // (Object* self, Selector*, arguments ...)
};

struct Object;

struct Class {
  Class* isa;
  const char* name;
  const Class* superclass;
  std::vector<Method> methods;
  void (*destroy)(Object*) = nullptr;  // null: instances are never freed
  std::atomic<long> live{0};           // instances
};

struct Object {
  Class* isa = nullptr;
  std::atomic<long> references{1};
};

extern "C" {
Object* objc_retain(Object*);
void objc_release(Object*);
Object* objc_autorelease(Object*);
void* objc_autoreleasePoolPush();
void objc_autoreleasePoolPop(void*);
void* _Block_copy(const void*);
void _Block_release(const void*);
}

// A fresh instance with one reference.
template <class T>
T* make(Class& cls) {
  T* object = new T;
  object->isa = &cls;
  ++cls.live;
  return object;
}

template <class T>
void destroy(Object* object) {
  delete static_cast<T*>(object);
}

template <class F>
Method method(const char* name, F* function) {
  return {name, reinterpret_cast<void*>(function)};
}

// A strong reference.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { objc_retain(object); }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref& operator=(Ref other) {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { objc_release(object_); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }

 private:
  T* object_ = nullptr;
};

// Objects that were autoreleased on a thread without a pool: they leak.
extern std::atomic<long> autoreleased_without_pool;

// Foundation's classes (foundation.cpp).
Object* make_string(const std::string& text);  // one reference
std::string text_of(const Object* string);
Object* make_error(const std::string& text);
Object* make_array(std::vector<Object*> items);  // takes over the references
const std::vector<Object*>& items_of(const Object* array);
std::string path_of(const Object* url);

}  // namespace rune::objc
