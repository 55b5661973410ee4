// Cutting the output positions of a convolution into products. Not for other
// folders.
#pragma once

#include <algorithm>

#include "host_kernels/convolution.h"
#include "host_kernels/rounding.h"

namespace neuron::host_kernels {

// Elements of unfolded columns that are held at once.
constexpr int64_t kColumnElements = 1 << 19;
constexpr int64_t kFewestPositions = 64;
// Smaller images share a product.
constexpr int64_t kPositionsPerProduct = 512;

// Part of one image, or several whole ones side by side.
struct PositionTile {
  int64_t batch;
  int64_t images;
  int64_t begin;
  int64_t count;  // per image

  int64_t width() const { return images * count; }
};

// Cuts the positions of all images into tiles of about `depth` * width
// elements.
class Tiling {
 public:
  Tiling(const ConvolutionShape& shape, int64_t positions, int64_t depth)
      : batch_(shape.batch), positions_(positions) {
    const auto most = std::max(kFewestPositions, kColumnElements / depth);
    per_image_ = divide_up(positions, most);
    at_once_ = divide_up(positions, per_image_);
    images_ = std::clamp<int64_t>(
        std::min(most, kPositionsPerProduct) / positions, 1, batch_);
  }
  int64_t count() const { return divide_up(batch_, images_) * per_image_; }
  PositionTile operator[](int64_t i) const {
    const auto batch = i / per_image_ * images_;
    const auto begin = i % per_image_ * at_once_;
    return {
        batch,
        std::min(images_, batch_ - batch),
        begin,
        std::min(at_once_, positions_ - begin)};
  }

 private:
  int64_t batch_;
  int64_t positions_;
  int64_t per_image_;
  int64_t at_once_;
  int64_t images_;
};

}  // namespace neuron::host_kernels
