// Binds profiles: the records of programs, calls and memory.
#include "bindings/profile.h"

namespace rune::bindings {

py::dict fields_of(const runtime::StepInfo& info) {
  using namespace py::literals;
  return py::dict("kind"_a = info.kind, "name"_a = info.name, "location"_a = info.location,
                  "device"_a = info.device, "flops"_a = info.flops,
                  "bytes_read"_a = info.bytes_read, "bytes_written"_a = info.bytes_written,
                  "estimated_ns"_a = info.estimated_ns,
                  "peak_flops_per_ns"_a = info.peak_flops_per_ns,
                  "peak_bytes_per_ns"_a = info.peak_bytes_per_ns);
}

namespace {

using runtime::Interval;

py::dict to_dict(const runtime::ProgramTotals& program) {
  using namespace py::literals;
  py::list steps;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const runtime::StepTotals& totals = program.steps[i];
    steps.append(py::dict("runs"_a = totals.runs, "total_ns"_a = totals.total_ns,
                          "least_ns"_a = totals.least_ns, "most_ns"_a = totals.most_ns,
                          "by_device"_a = totals.by_device, **fields_of(program.info->steps[i])));
  }
  return py::dict("name"_a = program.info->name, "is_dynamic"_a = program.info->is_dynamic,
                  "runs"_a = program.runs, "total_ns"_a = program.total_ns, "steps"_a = steps);
}

// Rows of numbers. Times are relative to the profile's begin.
template <class Items, class Row>
py::array_t<double> to_rows(const Items& items, size_t columns, Row row) {
  py::array_t<double> rows({items.size(), columns});
  double* at = rows.mutable_data();
  for (const auto& item : items) {
    row(item, at);
    at += columns;
  }
  return rows;
}

py::dict end_profile() {
  using namespace py::literals;
  const runtime::Profile profile = runtime::end_profile();
  const auto since_begin = [&](int64_t ns) { return static_cast<double>(ns - profile.begin_ns); };
  py::list programs;
  for (const runtime::ProgramTotals& program : profile.programs) programs.append(to_dict(program));
  py::dict memory;
  for (const auto& [device, use] : profile.memory) {
    const auto points =
        to_rows(use.points, 2, [&](const runtime::MemoryUse::Point& point, double* row) {
          row[0] = since_begin(point.at_ns);
          row[1] = static_cast<double>(point.bytes);
        });
    memory[py::str(device)] = py::dict("begin"_a = use.at_begin, "end"_a = use.now,
                                       "peak"_a = use.peak, "points"_a = points);
  }
  const auto intervals = to_rows(profile.intervals, 6, [&](const Interval& interval, double* row) {
    row[0] = static_cast<double>(interval.kind);
    row[1] = interval.number;
    row[2] = interval.step;
    row[3] = since_begin(interval.begin_ns);
    row[4] = interval.ns;
    row[5] = static_cast<double>(interval.thread);
  });
  return py::dict("begin_ns"_a = profile.begin_ns, "end_ns"_a = profile.end_ns,
                  "programs"_a = programs, "functions"_a = profile.functions,
                  "intervals"_a = intervals, "memory"_a = memory, "left_out"_a = profile.left_out);
}

}  // namespace

void bind_profile(py::module_& m) {
  m.def("begin_profile", &runtime::begin_profile,
        "Begins to record what programs do. Raises RuntimeError while another profile is taken.");
  m.def("end_profile", &end_profile,
        "Ends the profile and returns its records: `programs` with their `steps` and totals; "
        "`functions`; `memory` by device; `intervals`, rows of kind (0 call of a function, 1 run "
        "of a program, 2 step), number of the function or program, number of the step, begin and "
        "duration in ns, and thread; `left_out`, the number of intervals and points of memory that "
        "were not kept. Times are relative to `begin_ns`.");
  m.def("is_profiling", &runtime::is_profiling, "Whether a profile is being taken.");
  m.def("profile_clock_ns", &runtime::profile_clock_ns, "The clock of profiles.");
}

}  // namespace rune::bindings
