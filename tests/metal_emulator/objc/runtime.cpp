#include "runtime.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace rune::objc {

std::atomic<long> autoreleased_without_pool{0};

namespace {

thread_local int open_pools = 0;

std::vector<Object*>& pool() {
  thread_local std::vector<Object*> objects;
  return objects;
}

// Answers messages to nil; a returned struct is zeroed by the caller.
void* nothing() {
  return nullptr;
}

// The head of a block, as clang lays it out.
struct BlockDescriptor {
  unsigned long reserved, size;
  void (*copy)(void*, const void*);
  void (*dispose)(const void*);
};
struct BlockHead {
  void* isa;
  int flags, reserved;
  void (*invoke)(void*, ...);
  BlockDescriptor* descriptor;
};
constexpr int kCountMask = 0xfffe, kCountOne = 2, kOnHeap = 1 << 24, kHasHelpers = 1 << 25,
              kIsGlobal = 1 << 28;
constexpr int kFieldIsObject = 3, kFieldIsBlock = 7;

}  // namespace

extern "C" {

void* _NSConcreteStackBlock[32];
void* _NSConcreteMallocBlock[32];
void* _NSConcreteGlobalBlock[32];

int __gxx_personality_v0(...);

// Objective-C frames unwind as C++ ones: nothing here throws or catches Objective-C objects.
asm(R"(
.globl __gnu_objc_personality_v0
.hidden __gnu_objc_personality_v0
.type __gnu_objc_personality_v0, @function
__gnu_objc_personality_v0:
  jmp __gxx_personality_v0@PLT
)");

// Selectors are compared by name and classes are symbols: a module has nothing to register.
void __objc_exec_class(void*) {}

void* objc_msg_lookup(Object* self, const Selector* selector) {
  if (!self) return reinterpret_cast<void*>(&nothing);
  for (const Class* cls = self->isa; cls; cls = cls->superclass)
    for (const Method& method : cls->methods)
      if (std::strcmp(method.name, selector->name) == 0) return method.function;
  throw std::logic_error(std::string("Objective-C: ") + self->isa->name + " has no method " +
                         selector->name);
}
void* objc_msg_lookup_stret(Object* self, const Selector* selector) {
  return objc_msg_lookup(self, selector);
}

static bool is_block(const Object* object) {
  const void* isa = object->isa;
  return isa == _NSConcreteStackBlock || isa == _NSConcreteMallocBlock ||
         isa == _NSConcreteGlobalBlock;
}

Object* objc_retain(Object* object) {
  if (!object) return object;
  if (is_block(object)) return static_cast<Object*>(_Block_copy(object));
  if (object->isa->destroy) ++object->references;
  return object;
}

void objc_release(Object* object) {
  if (!object) return;
  if (is_block(object)) return _Block_release(object);
  Class* cls = object->isa;
  if (!cls->destroy) return;
  const long left = --object->references;
  if (left < 0) std::abort();  // freed twice
  if (left > 0) return;
  --cls->live;
  cls->destroy(object);
}

Object* objc_autorelease(Object* object) {
  if (!object) return object;
  if (open_pools == 0) ++autoreleased_without_pool;
  pool().push_back(object);
  return object;
}

void* objc_autoreleasePoolPush() {
  ++open_pools;
  return reinterpret_cast<void*>(pool().size());
}

void objc_autoreleasePoolPop(void* mark) {
  --open_pools;
  while (pool().size() > reinterpret_cast<size_t>(mark)) {
    Object* const object = pool().back();
    pool().pop_back();
    objc_release(object);
  }
}

Object* objc_autoreleaseReturnValue(Object* object) {
  return objc_autorelease(object);
}
Object* objc_retainAutoreleasedReturnValue(Object* object) {
  return objc_retain(object);
}
Object* objc_retainAutorelease(Object* object) {
  return objc_autorelease(objc_retain(object));
}
Object* objc_retainAutoreleaseReturnValue(Object* object) {
  return objc_retainAutorelease(object);
}
Object* objc_unsafeClaimAutoreleasedReturnValue(Object* object) {
  return object;
}
Object* objc_retainBlock(Object* block) {
  return static_cast<Object*>(_Block_copy(block));
}

void objc_storeStrong(Object** place, Object* value) {
  objc_retain(value);
  Object* const old = *place;
  *place = value;
  objc_release(old);
}

void* _Block_copy(const void* pointer) {
  auto* block = static_cast<BlockHead*>(const_cast<void*>(pointer));
  if (!block || block->flags & kIsGlobal) return block;
  if (block->flags & kOnHeap) {
    __atomic_add_fetch(&block->flags, kCountOne, __ATOMIC_SEQ_CST);
    return block;
  }
  auto* copy = static_cast<BlockHead*>(std::malloc(block->descriptor->size));
  std::memcpy(copy, block, block->descriptor->size);
  copy->isa = _NSConcreteMallocBlock;
  copy->flags = (block->flags & ~kCountMask) | kOnHeap | kCountOne;
  if (copy->flags & kHasHelpers) copy->descriptor->copy(copy, block);
  return copy;
}

void _Block_release(const void* pointer) {
  auto* block = static_cast<BlockHead*>(const_cast<void*>(pointer));
  if (!block || !(block->flags & kOnHeap)) return;
  if (__atomic_sub_fetch(&block->flags, kCountOne, __ATOMIC_SEQ_CST) & kCountMask) return;
  if (block->flags & kHasHelpers) block->descriptor->dispose(block);
  std::free(block);
}

void _Block_object_assign(void* place, const void* object, int flags) {
  if (flags != kFieldIsObject && flags != kFieldIsBlock)
    std::abort();  // __block variables are not used
  *static_cast<Object**>(place) = objc_retain(static_cast<Object*>(const_cast<void*>(object)));
}
void _Block_object_dispose(const void* object, int) {
  objc_release(static_cast<Object*>(const_cast<void*>(object)));
}

}  // extern "C"

}  // namespace rune::objc
