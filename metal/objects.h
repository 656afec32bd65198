// What all Objective-C++ files of this folder include. Not for plain C++. Threads of Python have no
// autorelease pool: functions that return objects to where none is open return them retained.
#pragma once

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <string>
#include <string_view>

namespace rune::metal {

// Autoreleased.
inline NSString* to_ns(std::string_view text) {
  return [NSString stringWithUTF8String:std::string(text).c_str()];
}

inline std::string to_std(NSString* text) {
  return text ? std::string(text.UTF8String) : std::string();
}

// An error's text; Metal leaves it nil in some failures.
inline std::string describe(NSError* error) {
  return error ? to_std(error.localizedDescription) : std::string("no reason was given");
}

}  // namespace rune::metal
