// The agreement of the kernels and libtorch's side: shapes, and the sizes of packed weights. Compiled for every level, so
// all of it is inlined.

#pragma once

#include <cstdint>

namespace simic {

#define SHAPE_INLINE inline __attribute__((always_inline))

// A convolution over channels-last images: square kernel, "same" padding. Dense ones have a kernel of 1 or 3; at every
// second row and column, `stride` 2, they are of whole vectors of channels. Depthwise: one filter a channel,
// `inputs == outputs`, any odd kernel.
struct ConvShape {
  int64_t batch, height, width, inputs, outputs, kernel;
  bool depthwise;
  int64_t stride = 1;

  SHAPE_INLINE int64_t pad() const { return kernel / 2; }
  SHAPE_INLINE int64_t positions() const { return height * width; }
  SHAPE_INLINE int64_t out_height() const { return (height + stride - 1) / stride; }
  SHAPE_INLINE int64_t out_width() const { return (width + stride - 1) / stride; }
  // Weights that each output channel sums over.
  SHAPE_INLINE int64_t elements() const { return kernel * kernel * (depthwise ? 1 : inputs); }
};

// A convolution at every position of the images that `s` leaves.
SHAPE_INLINE ConvShape strided(const ConvShape& s) {
  return {s.batch, s.out_height(), s.out_width(), s.inputs, s.outputs, s.kernel, s.depthwise};
}

// The side of the tiles by which a convolution is computed; 0 for direct sums.
//
// Whole vectors of channels, no positions left out, whole tiles, and much to multiply. The shipped hosts of digits, 8x8 and 28x28,
// stay below: their results keep the bits that direct sums have always given.
SHAPE_INLINE int64_t tile_side(const ConvShape& s) {
  constexpr int64_t PRODUCTS_OF_4 = 30'000, PRODUCTS_OF_2 = 150'000;
  if (s.kernel != 3 || s.stride != 1 || s.depthwise) return 0;
  const int64_t products = s.positions() * s.inputs * s.outputs;
  const auto fits = [&](int64_t side, int64_t channels) {
    return s.height % side == 0 && s.width % side == 0 && s.inputs % channels == 0 && s.outputs % channels == 0;
  };
  if (fits(4, 8) && s.inputs * s.outputs >= 128 && products >= PRODUCTS_OF_4) return 4;
  return fits(2, 16) && products >= PRODUCTS_OF_2 ? 2 : 0;
}

// A layer of a seed: a convolution, then SiLU, group norm and SiLU, each if asked for. Every group of the norm has
// `outputs / groups` neighbouring channels.
struct Layer {
  ConvShape conv;
  bool silu_before, norm, silu_after;
  int64_t groups;
  double epsilon;
};

// Lanes of packed weights: whole vectors.
SHAPE_INLINE int64_t packed_channels(int64_t channels) { return (channels + 15) / 16 * 16; }

// Floats of the packed weights of a dense convolution.
SHAPE_INLINE int64_t packed_weights(int64_t elements, int64_t outputs) { return elements * packed_channels(outputs); }

}  // namespace simic
