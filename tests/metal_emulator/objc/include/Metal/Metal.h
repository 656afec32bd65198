// Declarations of the part of Metal that metal/ uses, for tests on machines without it. Names,
// types and values are Apple's; device.cpp, resources.cpp and commands.cpp in ../.. define the
// classes.
#pragma once

#import <Foundation/Foundation.h>

typedef struct {
  NSUInteger width, height, depth;
} MTLSize;
static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  return MTLSize{width, height, depth};
}

typedef enum : NSUInteger { MTLResourceStorageModeShared = 0 } MTLResourceOptions;
typedef enum : NSInteger { MTLGPUFamilyApple7 = 1007 } MTLGPUFamily;
typedef enum : NSUInteger {
  MTLLanguageVersion3_0 = 0x30000,
  MTLLanguageVersion3_1 = 0x30001,
  MTLLanguageVersion3_2 = 0x30002
} MTLLanguageVersion;
typedef enum : NSInteger {
  MTLMathFloatingPointFunctionsFast = 0,
  MTLMathFloatingPointFunctionsPrecise = 1
} MTLMathFloatingPointFunctions;
typedef enum : NSInteger {
  MTLMathModeSafe = 0,
  MTLMathModeRelaxed = 1,
  MTLMathModeFast = 2
} MTLMathMode;
typedef enum : NSUInteger {
  MTLCommandBufferStatusNotEnqueued = 0,
  MTLCommandBufferStatusEnqueued = 1,
  MTLCommandBufferStatusCommitted = 2,
  MTLCommandBufferStatusScheduled = 3,
  MTLCommandBufferStatusCompleted = 4,
  MTLCommandBufferStatusError = 5,
} MTLCommandBufferStatus;

typedef enum : NSUInteger {
  MTLDispatchTypeSerial = 0,
  MTLDispatchTypeConcurrent = 1
} MTLDispatchType;
typedef enum : NSUInteger { MTLBarrierScopeBuffers = 1 } MTLBarrierScope;
typedef NSUInteger MTLResourceUsage;
static const MTLResourceUsage MTLResourceUsageRead = 1, MTLResourceUsageWrite = 2;

@protocol MTLCommandBuffer;
typedef void (^MTLCommandBufferHandler)(id<MTLCommandBuffer>);

@interface MTLCompileOptions : NSObject
@property MTLLanguageVersion languageVersion;
@property MTLMathMode mathMode;
@property MTLMathFloatingPointFunctions mathFloatingPointFunctions;
@property BOOL fastMathEnabled;
@end

@protocol MTLFunction;
@protocol MTLBinaryArchive;

@interface MTLBinaryArchiveDescriptor : NSObject
@property(copy) NSURL* url;
@end

@interface MTLComputePipelineDescriptor : NSObject
@property(strong) id<MTLFunction> computeFunction;
@property(copy) NSArray<id<MTLBinaryArchive>>* binaryArchives;
@property(copy) NSString* label;
@end

@protocol MTLBinaryArchive
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                            error:(NSError* __autoreleasing*)error;
- (BOOL)serializeToURL:(NSURL*)url error:(NSError* __autoreleasing*)error;
@end

typedef enum : NSUInteger { MTLPipelineOptionNone = 0 } MTLPipelineOption;
@class MTLComputePipelineReflection;

@protocol MTLBuffer
- (void*)contents __attribute__((objc_returns_inner_pointer));
@property(readonly) NSUInteger length;
@property(readonly) unsigned long gpuAddress;
@property(copy) NSString* label;
@end

@protocol MTLFunction
@property(readonly) NSString* name;
@end

@protocol MTLLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString*)name;
@end

@protocol MTLComputePipelineState
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) NSUInteger threadExecutionWidth;
@property(readonly) NSUInteger staticThreadgroupMemoryLength;
@end

@protocol MTLComputeCommandEncoder
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreads:(MTLSize)threads threadsPerThreadgroup:(MTLSize)perThreadgroup;
- (void)dispatchThreadgroups:(MTLSize)threadgroups threadsPerThreadgroup:(MTLSize)threads;
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope;
- (void)useResource:(id<MTLBuffer>)resource usage:(MTLResourceUsage)usage;
- (void)endEncoding;
@end

@protocol MTLCommandBuffer
- (id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type;
- (void)addCompletedHandler:(MTLCommandBufferHandler)handler;
- (void)commit;
- (void)waitUntilCompleted;
@property(readonly) MTLCommandBufferStatus status;
@property(copy) NSString* label;
@property(readonly) NSError* error;
@end

typedef void (^MTLNewComputePipelineStateWithReflectionCompletionHandler)(
    id<MTLComputePipelineState> state, MTLComputePipelineReflection* reflection, NSError* error);

@protocol MTLCommandQueue
- (id<MTLCommandBuffer>)commandBuffer;
- (id<MTLCommandBuffer>)commandBufferWithUnretainedReferences;
@property(copy) NSString* label;
@end

@protocol MTLDevice
@property(readonly) NSString* name;
@property(readonly) NSUInteger maxBufferLength;
@property(readonly) NSUInteger recommendedMaxWorkingSetSize;
@property(readonly) NSUInteger maxThreadgroupMemoryLength;
@property(readonly) MTLSize maxThreadsPerThreadgroup;
@property BOOL shouldMaximizeConcurrentCompilation;
- (BOOL)supportsFamily:(MTLGPUFamily)family;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)memory
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void* memory, NSUInteger length))deallocator;
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError* __autoreleasing*)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError* __autoreleasing*)error;
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor
                                                 error:(NSError* __autoreleasing*)error;
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLComputePipelineReflection* __autoreleasing*)reflection
                                    error:(NSError* __autoreleasing*)error;
- (void)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                      options:(MTLPipelineOption)options
                            completionHandler:
                                (MTLNewComputePipelineStateWithReflectionCompletionHandler)handler;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)maxCommandBufferCount;
@end

typedef enum : NSInteger { MTLCaptureDestinationGPUTraceDocument = 2 } MTLCaptureDestination;

@interface MTLCaptureDescriptor : NSObject
@property(strong) id captureObject;
@property MTLCaptureDestination destination;
@property(copy) NSURL* outputURL;
@end

@interface MTLCaptureManager : NSObject
+ (MTLCaptureManager*)sharedCaptureManager;
- (BOOL)startCaptureWithDescriptor:(MTLCaptureDescriptor*)descriptor
                             error:(NSError* __autoreleasing*)error;
- (void)stopCapture;
@end

extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void) __attribute__((ns_returns_retained));
extern "C" NSArray<id<MTLDevice>>* MTLCopyAllDevices(void) __attribute__((ns_returns_retained));
