#include "lower/passes/squares.h"

#include <array>

namespace rune::lower {

using sym::Expr;
using sym::Mask;

namespace {

// The two axes of a rectangle. Sides and patches are counted in pieces, squares with sides of `own`
// points.
class Squares : Lowering {
 public:
  Squares(KernelContext& context, const Point& start,
          const std::function<void(const Points&)>& run_stages)
      : Lowering(context),
        kernel_(context.kernel),
        mapping_(context.kernel.iter.mapping),
        run_stages_(run_stages),
        first_(start) {
    const std::vector<Expr> groups = nest_.workgroup_tiles();
    for (size_t i = 0; i < mapping_.block.size(); ++i) {
      const int64_t axis = mapping_.block[i];
      const Ints& tiles = kernel_.iter.tiles[axis];
      first_.axes[axis] = groups[i];
      if (tiles.size() < 3) continue;
      axes_.push_back(axis), own_.push_back(tiles[2]);
      sides_.push_back(tiles[0] / tiles[2]), patch_.push_back(tiles[1] / tiles[2]);
      corner_.push_back(groups[i] * sides_.back());
      whole_.require_nonnegative(Expr(nest_.extent(axis) - tiles[0]) - groups[i] * tiles[0]);
    }
    image_ = first_;
    if (mapping_.mirrored != true) return;
    std::swap(image_.axes[axes_[0]], image_.axes[axes_[1]]);
    image_.stored.require_nonnegative(groups[1] - groups[0] - 1);  // on the diagonal it is the same
  }

  void deal() {
    const int64_t each = sides_[0] * sides_[1] / nest_.threads();
    const Var is_whole = index_.emit(whole_);
    if (is_whole.valid()) builder_.open_if(is_whole);
    if (mapping_.exchanged == true)
      deal_exchanged();
    else
      deal_whole(each);
    if (!is_whole.valid()) return;
    builder_.close_if();
    builder_.open_if(
        builder_.alu(AluOp::Cmpeq, {is_whole, builder_.constant(Scalar::of(DType::Bool, 0))}));
    nest_.loop(each, [&](const Expr& i) { deal_rest(i); });
    builder_.close_if();
  }

 private:
  using Place = std::array<Expr, 2>;

  // The position in the rectangle of the thread's piece with this number.
  Place within(const Expr& number) {
    const int64_t width = patch_[0] * patch_[1], threads = nest_.threads();
    const int64_t across = sides_[1] / patch_[1];  // number of patches in a row
    const Expr thread = nest_.thread_number(threads);
    const Expr lane = mod(thread, width);
    const Expr turn = floordiv(thread, width) + number * (threads / width);
    return {floordiv(turn, across) * patch_[0] + floordiv(lane, patch_[1]),
            mod(turn, across) * patch_[1] + mod(lane, patch_[1])};
  }

  Points points_at(const Point& start, const Place& place) {
    Points points{start};
    for (size_t i = 0; i < 2; ++i)
      points = nest_.extend(points, axes_[i], place[i] * own_[i], own_[i], false);
    return points;
  }
  int64_t pieces(size_t i) const { return nest_.extent(axes_[i]) / own_[i]; }

  // The points of the piece at this position of the rectangle, and of its mirror image.
  Points both(const Place& place, bool in_place) {
    const auto at = [&](const Point& start, size_t row) {
      Place from{corner_[row] + place[0], corner_[1 - row] + place[1]};
      if (!in_place)
        for (size_t i = 0; i < 2; ++i) from[i] = index_.emit_and_bind(from[i], pieces(i));
      return points_at(start, from);
    };
    Points points = at(first_, 0);
    if (mapping_.mirrored == true)
      for (Point& point : at(image_, 1)) points.push_back(std::move(point));
    return points;
  }

  void deal_whole(int64_t each) {
    Points all;
    for (int64_t i = 0; i < each; ++i)
      for (Point& point : both(within(Expr(i)), false)) all.push_back(std::move(point));
    run_stages_(all);
  }

  void deal_exchanged() {
    Place place = within(Expr(0));
    for (size_t i = 0; i < 2; ++i) place[i] = index_.emit_and_bind(place[i], sides_[i]);
    const size_t column = mapping_.vec[0] == axes_[0] ? 0 : 1;
    memory_.exchange({{place[1 - column], place[column], sides_[0]}});
    run_stages_(both(place, true));
    memory_.exchange({});
  }

  void deal_rest(const Expr& number) {
    const Place place = within(number);
    const auto run = [&](const Point& start, size_t row) {
      const Place from{corner_[row] + place[0], corner_[1 - row] + place[1]};
      Mask inside = start.stored;
      for (size_t d = 0; d < 2; ++d) inside.require_between(from[d], 0, pieces(d));
      builder_.open_if(index_.emit(inside));
      run_stages_(points_at(start, {index_.emit_and_bind(from[0], pieces(0)),
                                    index_.emit_and_bind(from[1], pieces(1))}));
      builder_.close_if();
    };
    run(first_, 0);
    if (mapping_.mirrored == true) run(image_, 1);
  }

  const schedule::Kernel& kernel_;
  const schedule::Mapping& mapping_;
  const std::function<void(const Points&)>& run_stages_;
  Point first_, image_;
  std::vector<int64_t> axes_;
  Ints sides_, patch_, own_;
  std::vector<Expr> corner_;
  Mask whole_;
};

}  // namespace

void deal_squares(KernelContext& context, const Point& start,
                  const std::function<void(const Points&)>& run_stages) {
  Squares(context, start, run_stages).deal();
}

}  // namespace rune::lower
