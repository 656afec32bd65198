// The traces that run on this thread, and the place in the user's code.
#pragma once

#include "bindings/bindings.h"
#include "bindings/graph_builder.h"

namespace rune::bindings {

// Whether a trace runs on this thread: what is called becomes part of it.
bool is_tracing();

// Whether jitted functions run NumPy on this thread: a call of one finds out how long NumPy takes.
bool is_on_numpy();

struct ActiveTrace {
  py::object trace;  // tracing.trace.Trace
  PyGraph* graph = nullptr;
  py::object line;  // the user's, as Trace.line, that was noted last
  bool is_segmented = false;
  bool may_shuffle = false;  // whether the user's code that was noted last names `shuffle`
};
// The innermost trace, or null. The pointer is valid until a trace begins or ends.
ActiveTrace* active_trace();
// Notes the user's line in the innermost trace, which there must be.
void note_line();

}  // namespace rune::bindings
