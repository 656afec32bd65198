#include "schedule/mapping/packing.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/math.h"
#include "schedule/mapping/mapping.h"

namespace rune::schedule {

namespace {

// The vectors of the register tile's columns. This many fused multiply-adds for each row hide their
// own latency and the loads of the rows' elements.
constexpr int64_t kColumnVectors = 2;
// The registers that hold no accumulators: the columns' vectors, and values that are being loaded.
constexpr int64_t kOtherRegisters = 4;
// The least multiply-adds, terms and rows of a contraction that is packed. Less repays no copies.
constexpr double kLeastMultiplies = 1 << 21;
constexpr int64_t kLeastReduced = 32, kLeastRows = 16;
// The least register tiles in a block of rows; kFewRowTiles or fewer are one block. In too small a
// block, columns are read too often, so the reduced axis is divided into parts of kLeastKeptTerms.
constexpr int64_t kLeastRowTiles = 4, kFewRowTiles = 12;
constexpr int64_t kLeastKeptTerms = 192;
// The least multiply-adds of a contraction with widened operands that is packed. Without copies,
// operands would be widened again for each use.
constexpr double kLeastWidened = 1 << 15;
// The cost of copying an operand's element, and of reading a column's element from the last-level
// cache for another block of rows, in multiply-adds.
constexpr double kCopyMultiplies = 25, kReadMultiplies = 6;
// The most column tiles whose transposition less than two register tiles of rows repay.
constexpr int64_t kTransposedColumns = 4;
// Addresses at a multiple of this distance fall into the same set of the first-level cache. A set
// holds at least kMostInSet of them.
constexpr int64_t kSetPeriodBytes = 4096, kMostInSet = 4;
// The columns of a workgroup, whose copies should fit the second-level cache unless it holds fewer
// columns than this. Each workgroup copies its rows, which costs more than reading columns from the
// last-level cache.
constexpr int64_t kLeastMostColumns = 512;
// The time that a core may be late, in workgroups, because another thread uses it for a while. If
// only half of a product is computed, workgroups also differ in work.
constexpr double kLate = 0.25, kMirroredLate = 1;
constexpr int64_t kMostGroupsPerCore = 16;

// An operand as a matrix over one free axis of the kernel and the reduced one.
struct Operand {
  Value value;
  Index index;
  sym::Expr position;  // row-major
  int64_t axis = -1;   // the free axis that is tiled
};

class Packer {
 public:
  Packer(const Graph& graph, const Capabilities& caps, Kernel& kernel, const Kernel* around)
      : graph_(graph),
        caps_(caps),
        kernel_(kernel),
        around_(around),
        outer_(outer_axes(kernel)),
        row_tile_(register_tile_rows(caps)) {}

  bool run() {
    if (!find_operands() || !choose_axes()) return false;
    mirrored_ = is_symmetric();
    copies_rows_ = !reads_rows_in_place();
    if (!choose_tiles()) return false;
    const auto row_weights = weights(rows_), column_weights = weights(columns_);
    if (!row_weights || !column_weights) return false;
    // Runs of a register tile's width must be along one dimension.
    if (std::count_if(column_weights->begin(), column_weights->end(),
                      [&](const Weight& w) { return w.axis == columns_.axis; }) != 1)
      return false;
    map();
    if (copies_rows_) keep_rows(*row_weights);
    keep_columns(*column_weights);
    if (mirrored_) std::get<Staged>(kernel_.body).mirror = Mirror{rows_.axis, columns_.axis};
    return true;
  }

 private:
  int64_t extent(int64_t axis) const { return kernel_.iter.axes[axis].extent(); }
  int64_t bytes(Value v) const { return size_of(graph_[v].dtype()); }

  bool find_operands() {
    if (!is_contraction(graph_, kernel_)) return false;
    const Stage& first = kernel_.stages()[0];
    const std::set<DType> dtypes{DType::Float32, DType::Float64, DType::Int32, DType::Int64};
    if (!dtypes.count(graph_[first.values[0].value].dtype())) return false;
    reduced_ = first.axes[0];
    const std::vector<Seed> seeds = stage_seeds(graph_, first, axis_variables(kernel_.iter));
    std::vector<Access> accesses = seed_accesses(graph_, seeds[0]);
    for (int i = 0; i < 2; ++i) {
      operands_[i].value = accesses[i].value;
      operands_[i].position = flatten_index(accesses[i].index, graph_[accesses[i].value].shape());
      operands_[i].index = std::move(accesses[i].index);
    }
    return true;
  }

  bool depends(const Operand& operand, int64_t axis) const {
    return operand.position.depends_on(static_cast<uint32_t>(axis));
  }
  std::optional<int64_t> stride(const Operand& operand, int64_t axis) const {
    return operand.position.coefficient_of(static_cast<uint32_t>(axis));
  }

  // Whether the kernel widens the operand's elements, one by one.
  bool is_widened(const Operand& operand) const {
    return graph_[operand.value].kind() == graph::NodeKind::Cast &&
           contains(kernel_.ops, operand.value);
  }

  // Chooses the axis of columns: the one along which results are adjacent, or any axis that only
  // one operand has.
  bool choose_axes() {
    int column_operand = -1;
    int64_t column = -1;
    for (const int64_t axis : outer_) {
      const bool a = depends(operands_[0], axis), b = depends(operands_[1], axis);
      if (a == b || (around_ && axis < num_shared())) continue;
      const bool adjacent = kernel_.stages().back().values[0].strides[axis] == 1;
      if (column >= 0 && !adjacent) continue;
      column = axis;
      column_operand = a ? 0 : 1;
      if (adjacent) break;
    }
    if (column < 0) return false;
    columns_ = operands_[column_operand];
    rows_ = operands_[1 - column_operand];
    columns_.axis = column;
    for (const int64_t axis : outer_)
      if (depends(rows_, axis) && !depends(columns_, axis) &&
          (around_ ? axis == num_shared() - 1
                   : rows_.axis < 0 || extent(axis) > extent(rows_.axis)))
        rows_.axis = axis;
    if (rows_.axis < 0) return false;
    if (around_ && static_cast<int64_t>(outer_.size()) != num_shared() + 1) return false;
    for (const int64_t axis : outer_)
      if (axis != rows_.axis && axis != columns_.axis) others_.push_back(axis);
    return true;
  }

  // An operand's position in the value that it permutes.
  std::pair<Value, sym::Expr> before_permutation(const Operand& operand) const {
    const graph::Node& node = graph_[operand.value];
    const auto* permute = node.as<graph::Permute>();
    if (!permute) return {operand.value, operand.position};
    Index index(operand.index.size());
    for (size_t d = 0; d < index.size(); ++d) index[permute->axes[d]] = operand.index[d];
    return {node.inputs[0], flatten_index(index, graph_[node.inputs[0]].shape())};
  }

  // Whether the operand's elements along the axis are adjacent in memory.
  bool is_adjacent(const Operand& operand, int64_t axis) const {
    return before_permutation(operand).second.coefficient_of(static_cast<uint32_t>(axis)) == 1;
  }

  // Whether v, at each point, depends only on the contraction's value there and on values that all
  // points share.
  bool follows(Value v, Value contraction) const {
    const graph::Node& node = graph_[v];
    if (v == contraction || max_elements(node.shape()) == 1) return true;
    if (node.as<graph::Expand>()) return follows(node.inputs[0], contraction);
    if (evaluation_of(node) != Evaluation::Alu && !node.as<graph::Cast>() &&
        !node.as<graph::Contiguous>())
      return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](Value x) { return follows(x, contraction); });
  }

  // Whether the kernel multiplies a matrix by its own transpose and stores only symmetric values.
  bool is_symmetric() const {
    const std::vector<Stage>& stages = kernel_.stages();
    if (around_ || !others_.empty() || extent(rows_.axis) != extent(columns_.axis) ||
        stages.size() != 2 || stages[1].values.size() != 1)
      return false;
    const auto [rows, of_rows] = before_permutation(rows_);
    const auto [columns, of_columns] = before_permutation(columns_);
    const sym::Expr swapped =
        of_rows.substitute([&](uint32_t variable) -> std::optional<sym::Expr> {
          if (variable != rows_.axis) return std::nullopt;
          return axis_variables(kernel_.iter)[columns_.axis];
        });
    const StageValue& stored = stages[1].values[0];
    const int64_t size = extent(rows_.axis);
    const bool is_matrix = stored.strides[rows_.axis] == size && stored.strides[columns_.axis] == 1;
    return rows == columns && swapped == of_columns && is_matrix &&
           max_elements(graph_[stored.value].shape()) == size * size &&
           follows(stored.value, stages[0].values[0].value);
  }

  // Whether rows are read in place. A row's elements must be adjacent in memory, and the rows of a
  // tile must fall into different sets of the first-level cache. Each register tile of rows is then
  // multiplied by all columns, so these must fit the second-level cache.
  bool reads_rows_in_place() const {
    if (around_) return around_->scratch_of(rows_.value) != nullptr;
    if (stride(rows_, reduced_) != 1 || !contains(kernel_.inputs, rows_.value)) return false;
    const int64_t reduced = extent(reduced_);
    if (!holds_all_columns(can_carry() ? std::min(reduced, kLeastKeptTerms) : reduced))
      return false;
    const int64_t row = std::abs(stride(rows_, rows_.axis).value_or(0)) * bytes(rows_.value);
    std::map<int64_t, int64_t> in_set;
    for (int64_t i = 0; i < row_tile_; ++i)
      if (++in_set[i * row % kSetPeriodBytes / kCacheLineBytes] > kMostInSet) return false;
    return true;
  }

  bool choose_tiles() {
    int64_t widest = bytes(kernel_.stages()[0].values[0].value);
    for (const Value v : kernel_.ops)
      if (!is_bool(graph_[v].dtype())) widest = std::max(widest, bytes(v));
    lanes_ = caps_.vector_bits / (8 * widest);
    column_tile_ = kColumnVectors * lanes_;
    const int64_t rows = extent(rows_.axis), columns = extent(columns_.axis);
    const int64_t reduced = extent(reduced_);
    if (lanes_ < 2 || reduced < kLeastReduced) return false;
    if (around_ ? rows < 2 * row_tile_ || columns < column_tile_ : is_too_narrow(rows, columns))
      return false;
    double multiplies =
        static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(reduced);
    if (around_)
      for (const int64_t axis : others_) multiplies *= static_cast<double>(extent(axis));
    if (multiplies < (is_widened(rows_) || is_widened(columns_) ? kLeastWidened : kLeastMultiplies))
      return false;
    kept_terms_ = reduced;
    if (around_) {
      row_group_ = around_->iter.tiles[rows_.axis].front();
      row_block_ = around_->iter.tiles[rows_.axis].back();
      column_block_ = round_up(columns, column_tile_);
      return true;
    }
    const int64_t row_tiles = ceil_div(rows, row_tile_);
    if (can_carry())
      for (int64_t parts = 2; !fits_cache(row_tiles) && reduced / parts >= kLeastKeptTerms; ++parts)
        kept_terms_ = round_up(ceil_div(reduced, parts), lanes_);
    const int64_t column_bytes = kept_terms_ * bytes(columns_.value);
    const int64_t blocks =
        copies_rows_ ? ceil_div(row_tiles, std::max<int64_t>(1, fitting_tiles())) : row_tiles;
    row_block_ = ceil_div(row_tiles, blocks) * row_tile_;
    const int64_t most_columns = std::max(kLeastMostColumns, caps_.l2_bytes / column_bytes);
    split_between_groups(rows, columns, most_columns);
    return true;
  }

  // Whether the result has too few rows or columns to repay copies. Register tiles along a short
  // side are partly empty. With fewer than two of them copies only pay if the operand with the
  // columns does not fit the second-level cache, since it is read once for each register tile of
  // rows. Few rows do not repay a transposition of many columns.
  bool is_too_narrow(int64_t rows, int64_t columns) const {
    if (rows < kLeastRows || 2 * columns <= column_tile_) return true;
    if (rows >= 2 * row_tile_ && columns >= 2 * column_tile_) return false;
    if (columns * extent(reduced_) * bytes(columns_.value) <= caps_.l2_bytes) return true;
    const bool transposes = is_adjacent(columns_, reduced_);
    return rows < 2 * row_tile_ && transposes && columns > kTransposedColumns * column_tile_;
  }

  // Whether the second-level cache holds a large enough block of rows. If rows are read in place,
  // it must hold the panels of all columns instead, because these are read for each register tile.
  bool fits_cache(int64_t row_tiles) const {
    const int64_t least = row_tiles <= kFewRowTiles ? row_tiles : kLeastRowTiles;
    return copies_rows_ ? fitting_tiles() >= least : holds_all_columns(kept_terms_);
  }

  // Whether the second-level cache holds the panels of all columns with this many terms.
  bool holds_all_columns(int64_t terms) const {
    return terms * bytes(columns_.value) * extent(columns_.axis) <= caps_.l2_bytes / 2;
  }

  // The register tiles of a block of rows that stays in the second-level cache together with a
  // panel of columns.
  int64_t fitting_tiles() const {
    const int64_t panel = kept_terms_ * bytes(columns_.value) * column_tile_;
    return (caps_.l2_bytes * 3 / 4 - panel) / (kept_terms_ * bytes(rows_.value)) / row_tile_;
  }

  // Whether sums can be carried in the output: it has an element of the same dtype for each of
  // them, to which nothing else is written.
  bool can_carry() const {
    const std::vector<Stage>& stages = kernel_.stages();
    if (around_ || stages.size() != 2 || stages[1].values.size() != 1) return false;
    const StageValue &sum = stages[0].values[0], &stored = stages[1].values[0];
    if (stored.offset || graph_[stored.value].dtype() != graph_[sum.value].dtype()) return false;
    const auto along_one = [&](const Operand& operand) {
      return std::count_if(operand.index.begin(), operand.index.end(), [&](const sym::Expr& i) {
               return i.depends_on(static_cast<uint32_t>(reduced_));
             }) == 1;
    };
    return along_one(rows_) && along_one(columns_) &&
           std::all_of(outer_.begin(), outer_.end(),
                       [&](int64_t axis) { return stored.strides[axis] == sum.strides[axis]; });
  }

  // Divides rows and columns such that the cores finish as early as possible. Each workgroup copies
  // its rows. A core copies the columns of each piece once, or for each workgroup if sums are
  // carried. So more pieces cost more copies. With few pieces, cores have no work at the end.
  void split_between_groups(int64_t rows, int64_t columns, int64_t most_columns) {
    const int64_t panels = ceil_div(columns, column_tile_), row_tiles = ceil_div(rows, row_tile_);
    int64_t batch = 1;
    for (const int64_t axis : others_) batch *= extent(axis);
    const int64_t most_groups = kMostGroupsPerCore * caps_.num_cores;
    const double late = caps_.num_cores == 1 ? 0 : mirrored_ ? kMirroredLate : kLate;
    double least_time = std::numeric_limits<double>::infinity();
    const auto consider = [&](int64_t pieces, int64_t row_pieces) {
      const int64_t width = ceil_div(panels, pieces) * column_tile_;
      const int64_t height = ceil_div(row_tiles, row_pieces) * row_tile_;
      const int64_t groups = batch * ceil_div(columns, width) * ceil_div(rows, height);
      const int64_t reads = copies_rows_ ? width * ceil_div(height, row_block_) : 0;
      const double of_group = static_cast<double>(width * height) / (mirrored_ ? 2 : 1) +
                              kReadMultiplies * static_cast<double>(reads) +
                              kCopyMultiplies * static_cast<double>(height);
      const int64_t most = ceil_div(groups, caps_.num_cores), parts = ceil_div(columns, width);
      const int64_t copies = carries() ? most : std::min(most, batch * parts);
      const double of_columns = kCopyMultiplies * static_cast<double>(width);
      const double time = of_group * (static_cast<double>(most) + late) +
                          of_columns * (static_cast<double>(copies) + late);
      if (time >= least_time) return;
      least_time = time;
      column_block_ = width;
      row_group_ = height;
    };
    const int64_t least = ceil_div(columns, most_columns);
    for (int64_t pieces = least; pieces <= std::max(least, std::min(panels, most_groups)); ++pieces)
      for (int64_t row_pieces = 1; row_pieces == 1 || (!mirrored_ && row_pieces <= row_tiles &&
                                                       pieces * row_pieces * batch <= most_groups);
           ++row_pieces)
        consider(pieces, row_pieces);
    row_block_ = ceil_div(row_group_ / row_tile_, ceil_div(row_group_, row_block_)) * row_tile_;
    row_group_ = round_up(row_group_, row_block_);
  }

  // How an operand's index along a dimension contributes to the coordinate of an axis.
  struct Weight {
    int64_t axis = -1;  // -1: the dimension does not vary within a tile
    int64_t factor = 0;
  };

  // The weights of the operand's dimensions. Nothing if a dimension mixes axes or is not linear.
  std::optional<std::vector<Weight>> weights(const Operand& operand) const {
    const Ints strides = contiguous_strides(graph_[operand.value].shape());
    std::vector<Weight> result(operand.index.size());
    for (const int64_t axis : {operand.axis, reduced_}) {
      const auto along = stride(operand, axis);
      if (!along || *along == 0) return std::nullopt;
      for (size_t d = 0; d < operand.index.size(); ++d) {
        if (!operand.index[d].depends_on(static_cast<uint32_t>(axis))) continue;
        const bool mixed = operand.index[d].variables().size() > 1;
        if (mixed || strides[d] % *along != 0) return std::nullopt;
        result[d] = {axis, strides[d] / *along};
      }
    }
    for (const int64_t axis : others_)
      if (!stride(operand, axis)) return std::nullopt;
    return result;
  }

  void map() {
    Mapping& mapping = kernel_.iter.mapping;
    kernel_.iter.tiles.assign(kernel_.iter.axes.size(), Ints{1});
    for (const int64_t axis : others_) {
      mapping.block.push_back(axis);
      mapping.serial.push_back(axis);
      kernel_.iter.tiles[axis] = {1, 1};
    }
    // Workgroups with the same columns follow each other, so that a thread that runs several of
    // them copies the columns once.
    kernel_.iter.tiles[columns_.axis] = {column_tile_};
    if (!around_) {
      mapping.block.push_back(columns_.axis);
      kernel_.iter.tiles[columns_.axis] = {column_block_, column_tile_};
    }
    mapping.block.push_back(rows_.axis);
    kernel_.iter.tiles[rows_.axis] = {row_group_, row_block_, row_tile_};
    mapping.vec = {columns_.axis};
    mapping.lanes = lanes_;
    if (carries()) {
      mapping.serial.insert(mapping.serial.begin(), reduced_);
      kernel_.iter.tiles[reduced_] = {kept_terms_, 1};
    }
    const auto depth = static_cast<int64_t>(others_.size());
    for (const int64_t axis : {rows_.axis, columns_.axis, rows_.axis, reduced_})
      mapping.serial.push_back(axis);
    // Copies vectors: for rows, along the reduced axis. If elements are not adjacent along it,
    // squares of them are transposed.
    keep(columns_, depth, 1, is_adjacent(columns_, reduced_) ? lanes_ : 1);
    const bool by_vectors = is_adjacent(rows_, reduced_) || is_adjacent(rows_, rows_.axis);
    if (copies_rows_) keep(rows_, depth + 1, by_vectors ? lanes_ : 1, 1);
    for (Stage& stage : kernel_.mutable_stages()) {
      if (stage.kind != StageKind::Reduce) continue;
      stage.takes = {columns_.value};
      if (copies_rows_) stage.takes->insert(stage.takes->begin(), rows_.value);
    }
  }

  bool carries() const { return kept_terms_ < extent(reduced_); }
  int64_t num_shared() const { return static_cast<int64_t>(around_->iter.axes.size()); }

  // Adds a stage that copies an operand's tile. It has an axis of its own for the reduced one, and
  // copies `copies` vectors, or points, along it at once.
  void keep(const Operand& operand, int64_t depth, int64_t lanes, int64_t copies) {
    IterSpace& iter = kernel_.iter;
    const auto own = static_cast<int64_t>(iter.axes.size());
    iter.axes.push_back({"p" + std::to_string(own), extent(reduced_)});
    iter.tiles.push_back({lanes * copies});
    if (carries()) iter.tiles.back().insert(iter.tiles.back().begin(), kept_terms_);
    iter.mapping.serial.push_back(own);
    if (lanes > 1) iter.mapping.vec.push_back(own);
    for (Stage& stage : kernel_.mutable_stages()) {
      for (StageValue& value : stage.values) value.strides.push_back(0);
      if (stage.keeps) stage.keeps->strides.push_back(0);
    }
    Stage stage;
    stage.axes = {own};
    stage.keeps = StageValue{operand.value, Ints(iter.axes.size(), 0)};
    for (const int64_t axis : outer_) stage.keeps->strides[axis] = *stride(operand, axis);
    stage.keeps->strides[own] = *stride(operand, reduced_);
    stage.depth = depth;
    std::vector<Stage>& stages = kernel_.mutable_stages();
    const auto reduce = std::find_if(stages.begin(), stages.end(),
                                     [](const Stage& s) { return s.kind == StageKind::Reduce; });
    stages.insert(reduce, std::move(stage));
  }

  Scratch scratch(const Operand& operand, const std::vector<Weight>& weights, int64_t elements,
                  int64_t tile, int64_t along_axis, int64_t along_reduced) const {
    Scratch info;
    info.value = operand.value;
    info.elements = elements;
    const Ints shape = bounds_of(graph_[operand.value].shape());
    for (size_t d = 0; d < weights.size(); ++d) {
      const auto [axis, factor] = weights[d];
      const bool in_tile = axis == operand.axis;
      const int64_t part = in_tile ? ceil_div(tile, factor) : kept_terms_;
      info.shape.push_back(axis < 0 ? 1 : std::min(shape[d], part));
      info.strides.push_back(axis < 0 ? 0 : factor * (in_tile ? along_axis : along_reduced));
    }
    return info;
  }

  void keep_rows(const std::vector<Weight>& weights) {
    // Rows are an odd number of cache lines apart, so that those of a tile fall into different
    // sets.
    const int64_t line = kCacheLineBytes / bytes(rows_.value);
    const int64_t row = (ceil_div(kept_terms_, line) | 1) * line;
    kernel_.scratch.push_back(scratch(rows_, weights, row_block_ * row, row_block_, row, 1));
  }

  void keep_columns(const std::vector<Weight>& weights) {
    const int64_t panel = kept_terms_ * column_tile_;
    Scratch info = scratch(columns_, weights, column_block_ / column_tile_ * panel, column_block_,
                           panel, column_tile_);
    for (size_t d = 0; d < weights.size(); ++d)
      if (weights[d].axis == columns_.axis) info.run_axis = static_cast<int64_t>(d);
    info.run = column_tile_;
    kernel_.scratch.push_back(std::move(info));
  }

  const Graph& graph_;
  const Capabilities& caps_;
  Kernel& kernel_;
  const Kernel* const around_;
  const Ints outer_;
  Operand operands_[2];
  Operand rows_, columns_;
  Ints others_;  // outer axes that are neither rows nor columns
  int64_t reduced_ = -1;
  bool mirrored_ = false;
  bool copies_rows_ = true;
  int64_t lanes_ = 1;
  const int64_t row_tile_;  // rows of the register tile
  int64_t column_tile_ = 1;
  int64_t row_block_ = 1;                     // rows kept at once
  int64_t kept_terms_ = 0;                    // of the reduced axis, kept at once
  int64_t row_group_ = 1, column_block_ = 1;  // of a workgroup
};

}  // namespace

bool contracts_unpacked(const Kernel& phase) {
  const Ints& reduced = phase.stages().front().axes;
  if (reduced.size() != 1 || phase.iter.axes[reduced[0]].extent() >= kLeastReduced) return false;
  double multiplies = 1;
  for (const Axis& axis : phase.iter.axes) multiplies *= static_cast<double>(axis.extent());
  return multiplies >= kLeastMultiplies;
}

int64_t register_tile_rows(const Capabilities& caps) {
  return (caps.num_vector_registers - kOtherRegisters) / kColumnVectors;
}

bool map_packed_contraction(const Graph& graph, const Capabilities& caps, Kernel& kernel,
                            const Kernel* around) {
  return Packer(graph, caps, kernel, around).run();
}

}  // namespace rune::schedule
