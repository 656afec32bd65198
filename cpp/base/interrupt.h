// Lets the user end long work by Ctrl-C.
#pragma once

namespace rune {

// Throws to end the current work, or returns to let it go on. It may be called on any thread.
using InterruptHook = void (*)();

// Sets the function that check_interrupt calls. At first there is none.
void set_interrupt_hook(InterruptHook hook);

// Calls the hook, but at most 20 times a second on one thread. Passes call this once for each node,
// kernel and so on.
void check_interrupt();

}  // namespace rune
