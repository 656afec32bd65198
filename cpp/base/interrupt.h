// Lets the user end long work by Ctrl-C.
#pragma once

namespace rune {

// Throws to end the work at hand, or returns. It may be called on any thread.
using InterruptHook = void (*)();

// Sets the function that check_interrupt calls. At first there is none.
void set_interrupt_hook(InterruptHook hook);

// Passes over programs call this for each of their nodes, kernels and so on. It calls the hook, but
// on one thread no more often than 20 times a second.
void check_interrupt();

}  // namespace rune
