// The arithmetic of examples/photo.py as the obvious loops, for benchmarks/photo.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kRadius = 3, kChannels = 3;
constexpr float kLuma[kChannels] = {0.299F, 0.587F, 0.114F};

int64_t clamped(int64_t i, int64_t size) {
  return std::clamp<int64_t>(i, 0, size - 1);
}

}  // namespace

// `photo` and `after` are [height, width, 3], `edges` is [height - 2, width - 2]; `weights` are
// those of the seven neighbours.
extern "C" void develop(const uint8_t* photo, int64_t height, int64_t width, const float* weights,
                        uint8_t* after, uint8_t* edges) {
  static std::vector<float> image, by_rows, soft, gray;  // kept from call to call
  const int64_t row = width * kChannels;
  image.resize(height * row);
  by_rows.resize(height * row);
  soft.resize(height * row);
  gray.resize(height * width);

  for (int64_t i = 0; i < height * row; ++i) image[i] = static_cast<float>(photo[i]) / 255;

  for (int64_t y = 0; y < height; ++y) {
    const float* rows[2 * kRadius + 1];
    for (int64_t k = 0; k <= 2 * kRadius; ++k)
      rows[k] = &image[clamped(y + k - kRadius, height) * row];
    float* out = &by_rows[y * row];
    for (int64_t i = 0; i < row; ++i) {
      float sum = 0;
      for (int64_t k = 0; k <= 2 * kRadius; ++k) sum += weights[k] * rows[k][i];
      out[i] = sum;
    }
  }

  for (int64_t y = 0; y < height; ++y) {
    const float* in = &by_rows[y * row];
    float* out = &soft[y * row];
    const auto at_border = [&](int64_t x) {
      for (int64_t c = 0; c < kChannels; ++c) {
        float sum = 0;
        for (int64_t k = 0; k <= 2 * kRadius; ++k)
          sum += weights[k] * in[clamped(x + k - kRadius, width) * kChannels + c];
        out[x * kChannels + c] = sum;
      }
    };
    for (int64_t x = 0; x < kRadius; ++x) at_border(x);
    for (int64_t i = kRadius * kChannels; i < (width - kRadius) * kChannels; ++i) {
      float sum = 0;
      for (int64_t k = 0; k <= 2 * kRadius; ++k)
        sum += weights[k] * in[i + (k - kRadius) * kChannels];
      out[i] = sum;
    }
    for (int64_t x = width - kRadius; x < width; ++x) at_border(x);
  }

  const float low = 1 / (1 + std::exp(3.5)), high = 1 / (1 + std::exp(-3.5));
  for (int64_t i = 0; i < height * row; ++i) {
    const float sharp = std::clamp(image[i] + 0.8F * (image[i] - soft[i]), 0.0F, 1.0F);
    const float curved = 1 / (1 + std::exp(-7 * (sharp - 0.5F)));
    after[i] = static_cast<uint8_t>(std::rint(255 * ((curved - low) / (high - low))));
  }

  for (int64_t i = 0; i < height * width; ++i) {
    float sum = 0;
    for (int64_t c = 0; c < kChannels; ++c) sum += soft[i * kChannels + c] * kLuma[c];
    gray[i] = sum;
  }

  for (int64_t y = 1; y < height - 1; ++y) {
    const float *above = &gray[(y - 1) * width], *here = &gray[y * width],
                *below = &gray[(y + 1) * width];
    uint8_t* out = &edges[(y - 1) * (width - 2)];
    for (int64_t x = 1; x < width - 1; ++x) {
      const float horizontal = (above[x + 1] - above[x - 1]) + 2 * (here[x + 1] - here[x - 1]) +
                               (below[x + 1] - below[x - 1]);
      const float vertical = (below[x - 1] - above[x - 1]) + 2 * (below[x] - above[x]) +
                             (below[x + 1] - above[x + 1]);
      const float length = std::sqrt(horizontal * horizontal + vertical * vertical);
      out[x - 1] = static_cast<uint8_t>(std::rint(255 * std::clamp(1.5F * length, 0.0F, 1.0F)));
    }
  }
}
