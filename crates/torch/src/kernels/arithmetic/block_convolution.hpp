// The convolution of a block: at every second position, tile by tile where that pays, or else direct sums.

#pragma once

#include "convolution.hpp"
#include "strided.hpp"
#include "winograd.hpp"

namespace {

INLINE int64_t block_images_at_a_time(const ConvShape& s) {
  return is_tiled(s) ? tiled_images_at_a_time(s) : images_at_a_time(s);
}

INLINE int64_t block_room(const ConvShape& s) {
  if (s.stride > 1) return 0;
  return is_tiled(s) ? tiles_room(s) : convolution_room(s, images_at_a_time(s));
}

// Values of a weight's gradient as they are summed.
INLINE int64_t block_totals(const ConvShape& s) {
  return is_tiled(s) ? tiled_weights(s) : packed_weights(s.elements(), s.outputs);
}

// Floats of the weights as `block_pack` makes them, and turned for the way back.
int64_t block_packed_floats(const ConvShape& s, bool backwards) {
  if (is_tiled(s)) return tiled_weights(s);
  return backwards ? packed_weights(s.kernel * s.kernel * s.outputs, s.inputs) : packed_weights(s.elements(), s.outputs);
}

void block_pack(const ConvShape& s, const float* weights, bool backwards, float* packed) {
  if (is_tiled(s)) pack_tiled(s, weights, backwards, packed, [](int64_t, float weight) INLINE_LAMBDA { return weight; });
  else if (backwards) pack_backwards(s, weights, packed);
  else pack(s, weights, packed);
}

// Room for images with the borders that the convolution wants, from which `scratch` lends; none for tiles.
INLINE Padded block_padded(const ConvShape& s, int64_t images, Scratch& scratch) {
  return is_tiled(s) ? unfilled(s, s.inputs) : pad(s, s.inputs, images, images_in_lanes(s.outputs), scratch);
}

// `in`: as `block_padded` gives it.
INLINE void convolve_block(const ConvShape& s, const float* x, const Padded& in, int64_t images, const float* packed,
                           const float* bias, float* out, float* room) {
  if (is_tiled(s)) return convolve_tiles(s, x, images, packed, bias, out, room);
  fill(in, x, images);
  if (s.stride > 1) convolve_strided(s, in, images, packed, out);
  else convolve(in, images, s.kernel, packed, bias, out, s.outputs, room);
}

// As `tiles_backward`, for every algorithm; `dz` has a border, but for tiles. `in`: room for the padded images where
// positions are left out.
INLINE void convolve_block_backward(const ConvShape& s, const float* x, const Padded& in, const Padded& dz, int64_t images,
                                    const float* backwards, float* x_grad, double* totals, float* room) {
  if (s.stride > 1) {
    if (x_grad != nullptr) convolve_strided_back(s, dz, images, backwards, x_grad);
    if (totals == nullptr) return;
    fill(in, x, images);
    return add_strided_grads(s, in, dz, images, totals);
  }
  if (is_tiled(s)) return tiles_backward(s, x, dz.data, images, backwards, x_grad, totals, room);
  if (x_grad != nullptr) convolve(dz, images, s.kernel, backwards, nullptr, x_grad, s.inputs, room);
  if (totals != nullptr) add_weight_grads(x, in, dz, images, s.kernel, totals, room);
}

}  // namespace
