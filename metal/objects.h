// All Objective-C++ files of this folder include this file; plain C++ must not. Python's threads
// have no autorelease pool. A function that returns an object to code without a pool returns it
// retained.
#pragma once

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <string>
#include <string_view>

namespace rune::metal {

// The result is autoreleased.
inline NSString* to_ns(std::string_view text) {
  return [NSString stringWithUTF8String:std::string(text).c_str()];
}

inline std::string to_std(NSString* text) {
  return text ? std::string(text.UTF8String) : std::string();
}

// The error's text. Metal reports some failures without an error.
inline std::string describe(NSError* error) {
  return error ? to_std(error.localizedDescription) : std::string("no reason was given");
}

// Whether the GPU is that of a virtual machine, as on hosted CI. It reports the family Apple5, and
// its buffers of host memory and its binary archives do not work.
inline bool is_paravirtual(id<MTLDevice> device) {
  @autoreleasepool {
    return to_std(device.name).find("Paravirtual") != std::string::npos;
  }
}

}  // namespace rune::metal
