#include "partition/box.h"

#include <algorithm>
#include <limits>

namespace rune::partition {

namespace {

// The most boxes of one value that are kept apart.
constexpr size_t kMostBoxes = 6;

Box hull(const Box& a, const Box& b) {
  Box result = a;
  for (size_t i = 0; i < a.size(); ++i)
    result[i] = {std::min(a[i].first, b[i].first), std::max(a[i].second, b[i].second)};
  return result;
}

// Whether the box around both costs at most a quarter more than the two boxes.
bool are_close(const Box& a, const Box& b) {
  const double both = static_cast<double>(volume(a)) + static_cast<double>(volume(b));
  return static_cast<double>(volume(hull(a, b))) <= 1.25 * both;
}

}  // namespace

Box whole(const Ints& sizes) {
  Box box;
  for (const int64_t size : sizes) box.emplace_back(0, size);
  return box;
}

Ints sizes_of(const Box& box) {
  Ints sizes;
  for (const auto& [low, high] : box) sizes.push_back(high - low);
  return sizes;
}

int64_t volume(const Box& box) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  int64_t count = 1;
  for (const auto& [low, high] : box)
    if (__builtin_mul_overflow(count, high - low, &count)) count = most;
  return count;
}

bool is_empty(const Box& box) {
  return std::any_of(box.begin(), box.end(), [](const auto& r) { return r.first >= r.second; });
}

bool contains(const Box& outer, const Box& inner) {
  for (size_t i = 0; i < outer.size(); ++i)
    if (inner[i].first < outer[i].first || inner[i].second > outer[i].second) return false;
  return true;
}

void add_box(std::vector<Box>& boxes, Box box) {
  if (is_empty(box)) return;
  for (const Box& known : boxes)
    if (contains(known, box)) return;
  for (size_t i = 0; i < boxes.size();) {
    if (!are_close(boxes[i], box)) {
      ++i;
      continue;
    }
    box = hull(boxes[i], box);
    boxes.erase(boxes.begin() + static_cast<int64_t>(i));
    i = 0;
  }
  boxes.push_back(std::move(box));
  if (boxes.size() <= kMostBoxes) return;
  Box all = boxes[0];
  for (const Box& other : boxes) all = hull(all, other);
  boxes = {std::move(all)};
}

Chunks one_chunk(const Ints& sizes) {
  Chunks chunks;
  for (const int64_t size : sizes) chunks.push_back({size});
  return chunks;
}

Ints ends_of(const Ints& chunks) {
  Ints ends;
  int64_t end = 0;
  for (const int64_t size : chunks) ends.push_back(end += size);
  return ends;
}

Ints chunks_between(const Ints& ends) {
  Ints chunks;
  int64_t start = 0;
  for (const int64_t end : ends) {
    if (end > start) chunks.push_back(end - start);
    start = std::max(start, end);
  }
  if (chunks.empty()) chunks.push_back(0);
  return chunks;
}

}  // namespace rune::partition
