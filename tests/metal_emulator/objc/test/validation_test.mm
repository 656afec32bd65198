// The emulator refuses what Metal's validation layer refuses. A program of its own: it prints each
// case that was not refused as it should be, and returns how many those are.
#import <Metal/Metal.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

extern "C" int rune_metal_emulator_inject(const char* what, long value);
extern "C" long rune_metal_emulator_count(const char* what);

namespace {

const char* const kSource = R"(#include <metal_stdlib>
using namespace metal;
kernel void fill(device float* out [[buffer(0)]], constant long* vars [[buffer(1)]],
                 uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]) {
  out[gid.x * 32 + lid.x] = (float)vars[0];
}
struct indirect_buffers {
  device float* out;
};
[[kernel, max_total_threads_per_threadgroup(32)]]
void indirect(constant indirect_buffers* more [[buffer(0)]],
              uint3 lid [[thread_position_in_threadgroup]]) {
  device float* out = more->out;
  out[lid.x] = 1.0f;
}
kernel void large(device float* out [[buffer(0)]], uint3 lid [[thread_position_in_threadgroup]]) {
  threadgroup float m[9000];
  m[lid.x] = 1.0f;
  out[lid.x] = m[lid.x];
}
)";

struct Fixture {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  id<MTLLibrary> library = compile(kSource);
  id<MTLComputePipelineState> pipeline =
      [device newComputePipelineStateWithFunction:[library newFunctionWithName:@"fill"] error:nil];
  id<MTLBuffer> buffer = [device newBufferWithLength:256 options:MTLResourceStorageModeShared];
  id<MTLCommandBuffer> commands = [queue commandBufferWithUnretainedReferences];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];

  id<MTLLibrary> compile(const char* text, bool is_safe = true,
                         MTLLanguageVersion version = MTLLanguageVersion3_1) {
    MTLCompileOptions* options = [MTLCompileOptions new];
    options.languageVersion = version;
    if (is_safe) options.mathMode = MTLMathModeSafe;
    options.mathFloatingPointFunctions = MTLMathFloatingPointFunctionsPrecise;
    NSError* error = nil;
    id<MTLLibrary> library = [device newLibraryWithSource:[NSString stringWithUTF8String:text]
                                                  options:options
                                                    error:&error];
    if (!library) throw std::runtime_error(error.localizedDescription.UTF8String);
    return library;
  }
  void bind(const long* vars) {
    [encoder setComputePipelineState:pipeline];
    [encoder setBuffer:buffer offset:0 atIndex:0];
    [encoder setBytes:vars length:sizeof *vars atIndex:1];
  }
  void dispatch(NSUInteger groups, NSUInteger threads) {
    [encoder dispatchThreadgroups:MTLSizeMake(groups, 1, 1)
            threadsPerThreadgroup:MTLSizeMake(threads, 1, 1)];
  }
  // Runs what was encoded; throws the command buffer's error.
  void finish() {
    [encoder endEncoding];
    [commands commit];
    [commands waitUntilCompleted];
    if (commands.status == MTLCommandBufferStatusError)
      throw std::runtime_error(commands.error.localizedDescription.UTF8String);
  }
  ~Fixture() {
    try {
      [encoder endEncoding];
    } catch (const std::exception&) {
    }
  }
};

int failures = 0;

void expect(const char* name, const std::string& message,
            const std::function<void(Fixture&)>& body) {
  std::string got = "nothing was refused";
  @autoreleasepool {
    try {
      Fixture fixture;
      body(fixture);
    } catch (const std::exception& e) {
      got = e.what();
    }
  }
  const bool matches =
      message.empty() ? got == "nothing was refused" : got.find(message) != std::string::npos;
  if (matches) return;
  std::printf("%s: expected `%s`, got `%s`\n", name, message.c_str(), got.c_str());
  ++failures;
}

}  // namespace

int main() {
  const long seven = 7;
  expect("a good launch", "", [&](Fixture& f) {
    f.bind(&seven);
    f.dispatch(2, 32);
    f.finish();
    if (static_cast<float*>(f.buffer.contents)[63] != 7) throw std::runtime_error("wrong result");
  });
  expect("buffer index", "buffer index 31",
         [](Fixture& f) { [f.encoder setBuffer:f.buffer offset:0 atIndex:31]; });
  expect("offset", "offset 256",
         [](Fixture& f) { [f.encoder setBuffer:f.buffer offset:256 atIndex:0]; });
  expect("setBytes", "setBytes of 4097 bytes", [](Fixture& f) {
    const std::string bytes(4097, 'x');
    [f.encoder setBytes:bytes.data() length:bytes.size() atIndex:1];
  });
  expect("no pipeline", "without a pipeline", [](Fixture& f) { f.dispatch(1, 32); });
  expect("missing buffer", "nothing is bound at buffer index 0", [](Fixture& f) {
    [f.encoder setComputePipelineState:f.pipeline];
    f.dispatch(1, 32);
  });
  expect("memory that is not whole pages", "not whole pages", [](Fixture& f) {
    (void)[f.device newBufferWithBytesNoCopy:static_cast<char*>(f.buffer.contents) + 8
                                      length:4096
                                     options:MTLResourceStorageModeShared
                                 deallocator:nil];
  });
  // Through an address: only what the encoder was told of may be accessed.
  for (const bool is_told : {false, true})
    expect("a resource by its address", is_told ? "" : "out of bounds", [&](Fixture& f) {
      f.pipeline =
          [f.device newComputePipelineStateWithFunction:[f.library newFunctionWithName:@"indirect"]
                                                  error:nil];
      const unsigned long address = f.buffer.gpuAddress;
      [f.encoder setComputePipelineState:f.pipeline];
      [f.encoder setBytes:&address length:sizeof address atIndex:0];
      if (is_told) [f.encoder useResource:f.buffer usage:MTLResourceUsageWrite];
      f.dispatch(1, 32);
      f.finish();
    });
  expect("too many threads for a kernel", "33 threads per threadgroup (1 to 32)", [](Fixture& f) {
    f.pipeline =
        [f.device newComputePipelineStateWithFunction:[f.library newFunctionWithName:@"indirect"]
                                                error:nil];
    [f.encoder setComputePipelineState:f.pipeline];
    f.dispatch(1, 33);
  });
  expect("too many threads", "1025 threads per threadgroup", [&](Fixture& f) {
    f.bind(&seven);
    f.dispatch(1, 1025);
  });
  expect("out of bounds", "out of bounds", [&](Fixture& f) {
    f.bind(&seven);
    f.dispatch(3, 32);
    f.finish();
  });
  expect("no threads", "0 threads per threadgroup", [&](Fixture& f) {
    f.bind(&seven);
    f.dispatch(1, 0);
  });
  expect("no threadgroups", "an empty grid", [&](Fixture& f) {
    f.bind(&seven);
    f.dispatch(0, 32);
  });
  expect("a grid beyond 32 bits", "more than 4294967295 threads", [&](Fixture& f) {
    f.bind(&seven);
    [f.encoder dispatchThreads:MTLSizeMake(1ul << 32, 1, 1)
         threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
  });
  expect("nil as a pipeline", "no pipeline",
         [](Fixture& f) { [f.encoder setComputePipelineState:nil]; });
  expect("nil as a resource", "useResource without a resource",
         [](Fixture& f) { [f.encoder useResource:nil usage:MTLResourceUsageRead]; });
  expect("a barrier for nothing", "not for buffers",
         [](Fixture& f) { [f.encoder memoryBarrierWithScope:static_cast<MTLBarrierScope>(2)]; });
  expect("a buffer without bytes", "a buffer of 0 bytes", [](Fixture& f) {
    (void)[f.device newBufferWithLength:0 options:MTLResourceStorageModeShared];
  });
  expect("a pipeline of nil", "a pipeline without a function",
         [](Fixture& f) { (void)[f.device newComputePipelineStateWithFunction:nil error:nil]; });
  expect("an encoder after the commit", "an encoder of a committed command buffer", [](Fixture& f) {
    f.finish();
    (void)[f.commands computeCommandEncoder];
  });
  expect("a handler after the commit", "a completion handler for a committed", [](Fixture& f) {
    f.finish();
    [f.commands addCompletedHandler:^(id<MTLCommandBuffer>){
    }];
  });
  const long violations = rune_metal_emulator_count("violations");
  @autoreleasepool {
    (void)[[[MTLCreateSystemDefaultDevice() newCommandQueue] commandBufferWithUnretainedReferences]
        computeCommandEncoder];
  }
  expect("an encoder that dies open", "", [=](Fixture&) {
    if (rune_metal_emulator_count("violations") == violations)
      throw std::runtime_error("no violation was counted");
  });
  expect("missing endEncoding", "before endEncoding", [](Fixture& f) { [f.commands commit]; });
  expect("after endEncoding", "after endEncoding", [](Fixture& f) {
    [f.encoder endEncoding];
    [f.encoder setComputePipelineState:f.pipeline];
  });
  expect("second encoder", "second encoder",
         [](Fixture& f) { (void)[f.commands computeCommandEncoder]; });
  expect("second commit", "committed twice", [&](Fixture& f) {
    f.finish();
    [f.commands commit];
  });
  expect("use after release", "was released before it was used", [&](Fixture& f) {
    @autoreleasepool {
      f.bind(&seven);
    }
    f.dispatch(1, 32);
    f.buffer = nil;
    f.finish();
  });
  expect("threadgroup memory", "", [](Fixture& f) {
    NSError* error = nil;
    if ([f.device newComputePipelineStateWithFunction:[f.library newFunctionWithName:@"large"]
                                                error:&error])
      throw std::runtime_error("a pipeline was made");
    if (std::string(error.localizedDescription.UTF8String).find("exceeds the maximum") ==
        std::string::npos)
      throw std::runtime_error("another error");
  });
  expect("unknown function", "", [](Fixture& f) {
    if ([f.library newFunctionWithName:@"no"]) throw std::runtime_error("a function was found");
  });
  expect("compile error", "use of undeclared identifier", [](Fixture& f) {
    f.compile("#include <metal_stdlib>\nkernel void k(device float* b [[buffer(0)]]) { b[0] = "
              "nothing; }");
  });
  expect("bfloat before Metal 3.1", "unknown type name 'bfloat'", [](Fixture& f) {
    f.compile("#include <metal_stdlib>\nkernel void k(device bfloat* b [[buffer(0)]]) {}", true,
              MTLLanguageVersion3_0);
  });
  expect("SIMD-group operations on an old GPU", "not supported", [](Fixture& f) {
    rune_metal_emulator_inject("old_gpu", 1);
    const auto end = [](void*) { rune_metal_emulator_inject("old_gpu", 0); };
    const std::unique_ptr<void, decltype(end)> guard(&f, end);
    f.compile("#include <metal_stdlib>\nkernel void k(device float* b [[buffer(0)]]) { b[0] = "
              "metal::simd_sum(b[0]); }");
  });
  // The product of 1 + 2^-12 by itself has 25 bits: only a fused operation keeps the last one.
  for (const bool has_pragma : {false, true})
    for (const MTLLanguageVersion version : {MTLLanguageVersion3_1, MTLLanguageVersion3_2})
      expect("contraction", "", [&](Fixture& f) {
        const std::string text =
            std::string("#include <metal_stdlib>\n") +
            (has_pragma ? "#pragma METAL fp contract(off)\n" : "") +
            "kernel void k(device float* b [[buffer(0)]]) {\n  b[0] = b[0] * b[0] + b[1];\n"
            "  b[2] = __METAL_VERSION__;\n}";
        const id<MTLLibrary> library = f.compile(text.c_str(), true, version);
        f.pipeline =
            [f.device newComputePipelineStateWithFunction:[library newFunctionWithName:@"k"]
                                                    error:nil];
        auto* const numbers = static_cast<float*>(f.buffer.contents);
        numbers[0] = 1 + 0x1p-12f;
        numbers[1] = -1 - 0x1p-11f;
        [f.encoder setComputePipelineState:f.pipeline];
        [f.encoder setBuffer:f.buffer offset:0 atIndex:0];
        f.dispatch(1, 1);
        f.finish();
        if (numbers[0] != (has_pragma ? 0 : 0x1p-24f)) throw std::runtime_error("wrong result");
        if (numbers[2] != (version == MTLLanguageVersion3_1 ? 310 : 320))
          throw std::runtime_error("wrong version");
      });
  expect("fast math", "safe math only", [](Fixture& f) { f.compile(kSource, false); });
  expect("an injected fault", "injected", [&](Fixture& f) {
    rune_metal_emulator_inject("fail_command_buffers", 1);
    f.finish();
  });
  for (const char* what :
       {"buffers", "command_buffers", "encoders", "libraries", "pipelines", "functions", "options"})
    if (const long left = rune_metal_emulator_count(what)) {
      std::printf("%ld %s are left\n", left, what);
      ++failures;
    }
  if (!failures) std::puts("all refused as they should be");
  return failures;
}
