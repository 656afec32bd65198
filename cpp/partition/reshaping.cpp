#include "partition/reshaping.h"

namespace rune::partition {

namespace {

// The first axis of [begin, end) that has more than one element, or `end`.
size_t first_long(const Ints& sizes, size_t begin, size_t end) {
  while (begin < end && sizes[begin] == 1) ++begin;
  return begin;
}

int64_t elements(const Ints& sizes, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= sizes[i];
  return count;
}

}  // namespace

std::vector<AxisGroup> axis_groups(const Ints& from, const Ints& to) {
  std::vector<AxisGroup> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    AxisGroup group{i, i, j, j};
    int64_t of_from = i < from.size() ? from[i++] : 1;
    int64_t of_to = j < to.size() ? to[j++] : 1;
    while (of_from != of_to) {
      if (of_from < of_to)
        of_from *= from[i++];
      else
        of_to *= to[j++];
    }
    group.from_end = i;
    group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

Reshaping reshaping_of(const Ints& from, const Ints& to, const Box& box) {
  Reshaping result{Box(from.size()), box, {}};
  for (const AxisGroup& group : axis_groups(from, to)) {
    // Widens the box to a run: takes the axes after the first one with several elements as a whole.
    size_t axis = group.to;
    while (axis < group.to_end && box[axis].second - box[axis].first == 1) ++axis;
    for (++axis; axis < group.to_end; ++axis) result.wide[axis] = {0, to[axis]};
    int64_t first = 0, last = 0;
    for (size_t d = group.to; d < group.to_end; ++d) {
      first = first * to[d] + result.wide[d].first;
      last = last * to[d] + result.wide[d].second - 1;
    }
    // The operand's box: along the first axis at which the run's ends differ, the range between
    // them, and the axes after it as a whole.
    int64_t stride = elements(from, group.from, group.from_end), at_first = first, at_last = last;
    int64_t start = 0;
    bool differs = false;
    for (size_t d = group.from; d < group.from_end; ++d) {
      stride /= from[d];
      const int64_t low = at_first / stride, high = at_last / stride;
      result.operand[d] = differs ? std::pair<int64_t, int64_t>{0, from[d]}
                                  : std::pair<int64_t, int64_t>{low, high + 1};
      differs |= low != high;
      at_first %= stride;
      at_last %= stride;
      start += result.operand[d].first * stride;
    }
    result.offsets.push_back(first - start);
  }
  return result;
}

Chunks reshaped_chunks(const Ints& from, const Ints& to, const Chunks& chunks) {
  Chunks result = one_chunk(to);
  if (elements(from, 0, from.size()) == 0) return result;
  for (const AxisGroup& group : axis_groups(from, to)) {
    const size_t outer = first_long(from, group.from, group.from_end);
    if (outer == group.from_end || chunks[outer].size() == 1) continue;
    const size_t target = first_long(to, group.to, group.to_end);
    const int64_t from_inner = elements(from, outer + 1, group.from_end);
    const int64_t to_inner = elements(to, target + 1, group.to_end);
    Ints ends;
    for (const int64_t end : ends_of(chunks[outer])) ends.push_back(end * from_inner / to_inner);
    result[target] = chunks_between(ends);
  }
  return result;
}

}  // namespace rune::partition
