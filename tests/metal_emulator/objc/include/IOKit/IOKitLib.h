// The part of IOKit and Core Foundation that metal/ uses, as declarations for tests on machines
// without them. Names and types are Apple's; the functions are in ../../iokit.cpp.
#pragma once

typedef const void* CFTypeRef;
typedef const struct __CFString* CFStringRef;
typedef const struct __CFNumber* CFNumberRef;
typedef struct __CFDictionary* CFMutableDictionaryRef;
typedef const struct __CFDictionary* CFDictionaryRef;
typedef const struct __CFAllocator* CFAllocatorRef;
typedef unsigned long CFTypeID;
typedef long CFNumberType;
typedef unsigned char Boolean;
typedef int kern_return_t;
typedef unsigned mach_port_t, io_object_t, io_iterator_t, io_registry_entry_t, IOOptionBits;

#define KERN_SUCCESS 0
#define CFSTR(text) (reinterpret_cast<CFStringRef>("" text ""))
static const mach_port_t kIOMainPortDefault = 0;
static const CFAllocatorRef kCFAllocatorDefault = nullptr;
static const CFNumberType kCFNumberIntType = 9;

extern "C" {
CFMutableDictionaryRef IOServiceMatching(const char* name);
kern_return_t IOServiceGetMatchingServices(mach_port_t main_port, CFDictionaryRef matching,
                                           io_iterator_t* existing);
io_object_t IOIteratorNext(io_iterator_t iterator);
kern_return_t IOObjectRelease(io_object_t object);
CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t entry, CFStringRef key,
                                          CFAllocatorRef allocator, IOOptionBits options);
CFTypeID CFGetTypeID(CFTypeRef object);
CFTypeID CFNumberGetTypeID(void);
Boolean CFNumberGetValue(CFNumberRef number, CFNumberType type, void* value);
void CFRelease(CFTypeRef object);
}
