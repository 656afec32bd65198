// The extension module rune_jit._core.
#include "bindings/bindings.h"
#include "bindings/profile.h"

// The GIL guards the caches of calls and their accesses to Python objects. The module does not
// declare mod_gil_not_used, so a free-threaded interpreter enables the GIL for it.
PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiler core of rune_jit.";
  m.attr("__version__") = RUNE_VERSION;
  rune::bindings::bind_errors(m);
  rune::bindings::bind_types(m);
  rune::bindings::bind_graph(m);
  rune::bindings::bind_array(m);
  rune::bindings::bind_dlpack(m);
  rune::bindings::bind_executable(m);
  rune::bindings::bind_segments(m);
  rune::bindings::bind_dispatch(m);
  rune::bindings::bind_driver(m);
  rune::bindings::bind_hooks(m);
  rune::bindings::bind_ir(m);
  rune::bindings::bind_partition(m);
  rune::bindings::bind_sizes(m);
  rune::bindings::bind_profile(m);
  rune::bindings::bind_context(m);
  rune::bindings::bind_tracers(m);
  rune::bindings::bind_shortcuts(m);
}
