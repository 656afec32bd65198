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
    options.languageVersion = MTLLanguageVersion3_2;
    options.mathMode = MTLMathModeSafe;
    options.mathFloatingPointFunctions = MTLMathFloatingPointFunctionsPrecise;
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

// Metal gives a queue at most 64 command buffers, and takes one back only after its completion
// handlers have run.
void test_many_command_buffers() {
  Fixture f;
  rune_metal_emulator_inject("latency_us", 500);
  const auto block = f.make_block();
  constexpr int kLaunches = 200;
  try {
    for (int i = 0; i < kLaunches; ++i) f.launch(block, 1e9, 16);  // each commits
    f.queue.synchronize();
  } catch (const std::exception& e) {
    std::printf("many command buffers: %s\n", e.what());
    ++failures;
  }
  rune_metal_emulator_inject("latency_us", 0);
  expect("many command buffers", static_cast<long>(*static_cast<float*>(block->buffer.contents)),
         kLaunches);
}

std::string error_of(Queue& queue, const Block& block) {
  try {
    queue.wait_for(block, true);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

// The first command buffer fails, and its handler runs after that of the second one, which reads
// what the first one should have written.
void test_handlers_out_of_order() {
  Fixture f;
  rune_metal_emulator_inject("late_handlers", 1);
  rune_metal_emulator_inject("fail_command_buffers", 1);
  const auto first = f.make_block(), second = f.make_block();
  f.launch(first, 1e9, 16);
  static const auto name = std::make_shared<const std::string>("one");
  const Binding both[] = {{second, 0, 16, true}, {first, 0, 16, false}};
  f.queue.launch({name, name, 1, f.pipeline, 1, 1, false, 1e9}, both, {});
  expect("the error of a late handler", !error_of(f.queue, *first).empty(), true);
  expect("the error of what was read", !error_of(f.queue, *second).empty(), true);
  f.queue.finish();
}

// Metal may run nothing more of a queue after an error.
void test_a_queue_that_ignores_launches() {
  Fixture f;
  rune_metal_emulator_inject("ignores_after_errors", 1);
  rune_metal_emulator_inject("fail_command_buffers", 1);
  const long queues = rune_metal_emulator_count("queues");
  const auto first = f.make_block(), second = f.make_block(), third = f.make_block();
  f.launch(first, 1e9, 16);
  const std::string error = error_of(f.queue, *first);
  expect("the error tells of the new queue", error.find("new command queue") != error.npos, true);
  f.launch(second, 1e9, 16);
  expect("launches after an error", error_of(f.queue, *second).empty(), true);
  f.launch(third, 1e9, 16);
  expect("more launches after an error", error_of(f.queue, *third).empty(), true);
  expect("queues", rune_metal_emulator_count("queues") - queues, 1);
  rune_metal_emulator_inject("ignores_after_errors", 0);
  f.queue.finish();
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
    test_many_command_buffers();
    test_handlers_out_of_order();
    test_a_queue_that_ignores_launches();
  }
  expect("violations", rune_metal_emulator_count("violations"), 0);
  if (!failures) std::puts("the queue commits as it should");
  return failures;
}
