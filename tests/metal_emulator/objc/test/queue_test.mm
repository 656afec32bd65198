// When metal/'s queue commits, and that what it launched lives until it has run. A program of its
// own: it prints what is wrong, and returns how much that is.
#import <Metal/Metal.h>

#include <cstdio>

#include "metal/queue.h"

extern "C" int rune_metal_emulator_inject(const char* what, long value);
extern "C" long rune_metal_emulator_count(const char* what);

namespace rune::metal {
namespace {

int failures = 0;

void expect(const char* what, long got, long expected) {
  if (got == expected) return;
  std::printf("%s: expected %ld, got %ld\n", what, expected, got);
  ++failures;
}

long committed() {
  return rune_metal_emulator_count("committed");
}

struct Fixture {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  Queue queue{device};
  id<MTLComputePipelineState> pipeline = make_pipeline();

  id<MTLComputePipelineState> make_pipeline() {
    MTLCompileOptions* const options = [MTLCompileOptions new];
    options.languageVersion = MTLLanguageVersion3_1;
    options.mathMode = MTLMathModeSafe;
    NSString* const text = @"#include <metal_stdlib>\n"
                            "kernel void one(device float* x [[buffer(0)]]) { x[0] += 1.0f; }";
    const id<MTLLibrary> library = [device newLibraryWithSource:text options:options error:nil];
    return [device newComputePipelineStateWithFunction:[library newFunctionWithName:@"one"]
                                                 error:nil];
  }
  std::shared_ptr<Block> make_block() {
    auto block = std::make_shared<Block>();
    block->bytes = 16;
    block->buffer = [device newBufferWithLength:16 options:MTLResourceStorageModeShared];
    block->buffer.label = @"block";
    *static_cast<float*>(block->buffer.contents) = 0;
    return block;
  }
  // A launch that is said to take this long and to access as much.
  void launch(const std::shared_ptr<Block>& block, double ns, size_t bytes) {
    static const auto name = std::make_shared<const std::string>("one");
    const Binding binding{block, 0, bytes, true};
    queue.launch({name, name, 1, pipeline, 1, 1, false, ns}, {&binding, 1}, {});
  }
};

// Launches until the queue commits.
int launches_of_one_batch(double ns, size_t bytes) {
  Fixture f;
  const auto block = f.make_block();
  const long before = committed();
  int launches = 0;
  while (committed() == before && launches < 1000) {
    f.launch(block, ns, bytes);
    ++launches;
  }
  f.queue.synchronize();
  expect("command buffers", committed() - before, 1);
  expect("results", static_cast<long>(*static_cast<float*>(block->buffer.contents)), launches);
  return launches;
}

void test_lifetime() {
  Fixture f;
  rune_metal_emulator_inject("latency_us", 20'000);
  const long before = rune_metal_emulator_count("buffers");
  {
    auto block = f.make_block();
    f.launch(block, 0, 16);
    const std::weak_ptr<Block> watched = block;
    block.reset();
    expect("the open command buffer holds its block", watched.expired(), false);
    const auto other = f.make_block();
    for (int i = 0; i < 39; ++i) f.launch(other, 0, 16);  // commits
    expect("the running command buffer holds its block", watched.expired(), false);
    f.queue.synchronize();
    expect("nothing holds the block any more", watched.expired(), true);
  }
  rune_metal_emulator_inject("latency_us", 0);
  expect("living buffers", rune_metal_emulator_count("buffers"), before);
}

}  // namespace
}  // namespace rune::metal

int main() {
  using namespace rune::metal;
  @autoreleasepool {
    expect("launches by their number", launches_of_one_batch(0, 16), 40);
    expect("launches by their bytes", launches_of_one_batch(0, size_t{20} << 20), 4);
    expect("launches by their time", launches_of_one_batch(7e6, 16), 3);
    expect("one long launch", launches_of_one_batch(1e9, 16), 1);
    test_lifetime();
  }
  expect("violations", rune_metal_emulator_count("violations"), 0);
  if (!failures) std::puts("the queue commits as it should");
  return failures;
}
