// The part of Foundation that metal/ uses, as declarations for tests on machines without it. Names
// and types are Apple's; the classes are in ../../foundation.cpp.
#pragma once

#if !__has_feature(objc_arc)
#error "compile with -fobjc-arc"
#endif

typedef signed char BOOL;
typedef unsigned long NSUInteger;
typedef long NSInteger;
#define YES ((BOOL)1)
#define NO ((BOOL)0)
#ifndef nil
#define nil nullptr
#endif
#define NS_RETURNS_RETAINED __attribute__((ns_returns_retained))
#define __MAC_15_0 150000

__attribute__((objc_root_class))
@interface NSObject {
  Class isa;
  long references;
}
+ (instancetype)alloc;
+ (instancetype)new;
- (instancetype)init;
@end

@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char*)text;
@property(readonly) const char* UTF8String __attribute__((objc_returns_inner_pointer));
@end

// The class of literals; clang lays them out so.
@interface NSConstantString : NSString {
  const char* bytes;
  unsigned length;
}
@end

@interface NSError : NSObject
@property(readonly, copy) NSString* localizedDescription;
@end

@interface NSArray<ObjectType> : NSObject
+ (instancetype)arrayWithObjects:(const ObjectType _Nonnull[])objects count:(NSUInteger)count;
@property(readonly) ObjectType firstObject;
@end

@interface NSURL : NSObject
+ (instancetype)fileURLWithPath:(NSString*)path;
@end

@interface NSProcessInfo : NSObject
@property(class, readonly) NSProcessInfo* processInfo;
@property(readonly) NSString* operatingSystemVersionString;
@end

typedef enum : NSUInteger { NSCachesDirectory = 13 } NSSearchPathDirectory;
typedef enum : NSUInteger { NSUserDomainMask = 1 } NSSearchPathDomainMask;
extern "C" NSArray<NSString*>* NSSearchPathForDirectoriesInDomains(NSSearchPathDirectory directory,
                                                                   NSSearchPathDomainMask domain,
                                                                   BOOL expands);
