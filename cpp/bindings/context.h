// The traces that run on this thread, and the present line of the user's code.
#pragma once

#include "bindings/bindings.h"
#include "bindings/graph_builder.h"

namespace rune::bindings {

// Whether a trace runs on this thread, so that calls become part of it.
bool is_tracing();

// Whether jitted functions run on NumPy on this thread, because a call measures NumPy's time.
bool is_on_numpy();

struct ActiveTrace {
  py::object trace;  // tracing.trace.Trace
  PyGraph* graph = nullptr;
  py::object line;  // the user's line that was noted last, also in Trace.line
  bool is_segmented = false;
  bool may_shuffle = false;  // whether the code with this line contains the name `shuffle`
};
// The innermost trace, or null. The pointer is valid until a trace begins or ends.
ActiveTrace* active_trace();
// Notes the user's present line in the innermost trace. There must be a trace.
void note_line();

}  // namespace rune::bindings
