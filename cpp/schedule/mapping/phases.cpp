#include "schedule/mapping/phases.h"

#include <algorithm>
#include <set>

#include "base/math.h"
#include "schedule/mapping/mapping.h"
#include "schedule/mapping/packing.h"

namespace rune::schedule {

namespace {

constexpr int64_t kTilesPerCore = 2;
constexpr int64_t kLongRowLines = 8;

class PhaseMapper {
 public:
  PhaseMapper(const Graph& graph, const Capabilities& caps, Kernel& kernel)
      : graph_(graph), caps_(caps), kernel_(kernel), tiled_(num_axes() - 1) {}

  bool run() {
    const std::vector<Value> between = values_between_phases(kernel_);
    int64_t bytes = 0;  // for one point of the shared axes
    for (const Value v : between) bytes += row_stride(v) * size_of(graph_[v].dtype());
    if (!choose_tiles(bytes)) return false;
    for (const Value v : between) kernel_.scratch.push_back(scratch(v));
    for (Kernel& phase : std::get<Phased>(kernel_.body).phases)
      if (!map_phase(graph_, caps_, kernel_, phase)) return false;
    return true;
  }

 private:
  int64_t num_axes() const { return static_cast<int64_t>(kernel_.iter.axes.size()); }
  int64_t extent(int64_t axis) const { return kernel_.iter.axes[axis].extent(); }

  bool choose_tiles(int64_t bytes) {
    const int64_t unit = register_tile_rows(caps_), size = extent(tiled_);
    const int64_t fitting = caps_.l2_bytes / 2 / bytes / unit * unit;
    if (fitting == 0) return false;
    Mapping& mapping = kernel_.iter.mapping;
    int64_t points = 1;
    for (int64_t axis = 0; axis < num_axes(); ++axis) {
      mapping.block.push_back(axis);
      mapping.serial.push_back(axis);
      if (axis != tiled_) points *= extent(axis);
    }
    // A workgroup prepares its part of the other operands once for all of its tiles.
    const int64_t groups = ceil_div(kTilesPerCore * caps_.num_cores, points);
    const int64_t piece = ceil_div(size, groups);
    const int64_t tile = round_up(ceil_div(piece, ceil_div(piece, fitting)), unit);
    const int64_t part = round_up(piece, tile);
    kernel_.iter.tiles.assign(num_axes(), Ints{1, 1});
    kernel_.iter.tiles[tiled_] = {part, tile};
    return true;
  }

  int64_t row_elements(Value v) const {
    int64_t elements = max_elements(graph_[v].shape());
    for (int64_t axis = 0; axis < num_axes(); ++axis) elements /= extent(axis);
    return elements;
  }

  // The number of elements from one row to the next. It avoids that long rows begin whole pages
  // apart, because they would then fall into few cache sets.
  int64_t row_stride(Value v) const {
    const int64_t line = kCacheLineBytes / size_of(graph_[v].dtype());
    const int64_t row = round_up(row_elements(v), line);
    return row < kLongRowLines * line ? row : row + line;
  }

  // Scratch memory for rows along the tiled axis, each row-major.
  Scratch scratch(Value v) const {
    Scratch info{v, bounds_of(graph_[v].shape()), contiguous_strides(graph_[v].shape())};
    const int64_t row = row_stride(v);
    const int64_t rows = kernel_.iter.tiles[tiled_].back();
    const Ints& along = kernel_.stored(v)->strides;
    int64_t inner = 1;
    for (size_t d = info.shape.size(); d-- > 0;) {
      const int64_t stride = info.strides[d];
      const auto axis = std::find(along.begin(), along.begin() + num_axes(), stride);
      if (info.shape[d] == 1 || axis == along.begin() + num_axes()) {
        info.strides[d] = inner;
        inner *= info.shape[d];
        continue;
      }
      const bool is_tiled = axis - along.begin() == tiled_;
      info.shape[d] = is_tiled ? rows : 1;
      info.strides[d] = is_tiled ? row : 0;
    }
    info.elements = rows * row;
    return info;
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Kernel& kernel_;
  const int64_t tiled_;
};

}  // namespace

std::vector<Value> values_between_phases(const Kernel& kernel) {
  std::set<Value> between;
  for (const Kernel& phase : kernel.phases())
    between.insert(phase.outputs.begin(), phase.outputs.end());
  for (const Value v : kernel.outputs) between.erase(v);
  return {between.begin(), between.end()};
}

bool map_phases(const Graph& graph, const Capabilities& caps, Kernel& kernel) {
  return PhaseMapper(graph, caps, kernel).run();
}

}  // namespace rune::schedule
