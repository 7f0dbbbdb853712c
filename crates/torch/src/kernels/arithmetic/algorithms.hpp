// A convolution by the algorithm that its shape asks for: depthwise, at every second position, by tiles, or direct sums.

#pragma once

#include "convolution.hpp"
#include "depthwise.hpp"
#include "strided.hpp"
#include "winograd.hpp"

namespace {

// Images that are worked on together.
INLINE int64_t images_of_chunk(const ConvShape& s) { return is_tiled(s) ? tiled_images_at_a_time(s) : images_at_a_time(s); }

// Floats of room for `convolve_chunk` and `convolve_chunk_back`.
INLINE int64_t chunk_room(const ConvShape& s) {
  if (s.stride > 1 || s.depthwise) return 0;
  return is_tiled(s) ? tiles_room(s) : convolution_room(s, images_at_a_time(s));
}

// Values of a weight's gradient as they are summed.
INLINE int64_t weight_totals(const ConvShape& s) {
  if (s.depthwise) return s.elements() * s.outputs;
  return is_tiled(s) ? tiled_weights(s) : packed_weights(s.elements(), s.outputs);
}

// Floats of the weights as `conv_pack` makes them, and turned for the way back.
int64_t conv_packed_floats(const ConvShape& s, bool backwards) {
  if (s.depthwise) return s.kernel * s.kernel * period_of(s.outputs);
  if (is_tiled(s)) return tiled_weights(s);
  return backwards ? packed_weights(s.kernel * s.kernel * s.outputs, s.inputs) : packed_weights(s.elements(), s.outputs);
}

void conv_pack(const ConvShape& s, const float* weights, bool backwards, float* packed) {
  if (s.depthwise) pack_depthwise(s, weights, backwards, packed);
  else if (is_tiled(s)) pack_tiled(s, weights, backwards, packed);
  else if (backwards) pack_backwards(s, weights, packed);
  else pack(s, weights, packed);
}

// Images that are interleaved as they are filled into their borders: what lanes of `channels` channels take.
INLINE int64_t filled_together(const ConvShape& s, int64_t channels) { return s.depthwise ? 1 : images_in_lanes(channels); }

// Those of gradients, which the convolution back to the inputs reads and the sums for the weights: as both want them.
INLINE int64_t grads_together(const ConvShape& s) {
  const int64_t together = filled_together(s, s.outputs);
  return together == filled_together(s, s.inputs) ? together : 1;
}

// Room for images with the borders that the convolution wants, from which `scratch` lends; none for tiles.
INLINE Padded bordered(const ConvShape& s, int64_t channels, int64_t images, int64_t together, Scratch& scratch) {
  return is_tiled(s) ? unfilled(s, channels) : pad(s, channels, images, together, scratch);
}

INLINE Padded bordered_inputs(const ConvShape& s, int64_t images, Scratch& scratch) {
  return bordered(s, s.inputs, images, filled_together(s, s.outputs), scratch);
}

// Dense images with the borders of `room`, where the convolution wants any.
INLINE Padded with_border(const ConvShape& s, const Padded& room, const float* from, int64_t images) {
  if (is_tiled(s) || (s.kernel == 1 && s.stride == 1)) return over_dense(room, from);
  fill(room, from, images);
  return room;
}

// `in`: as `bordered_inputs` gives it. `bias`: only of direct sums and tiles, or null.
INLINE void convolve_chunk(const ConvShape& s, const float* x, const Padded& in, int64_t images, const float* packed,
                           const float* bias, float* out, float* room) {
  const Padded filled = with_border(s, in, x, images);
  if (s.depthwise) convolve_depthwise(filled, images, s.kernel, packed, out);
  else if (s.stride > 1) convolve_strided(s, filled, images, packed, out);
  else if (is_tiled(s)) convolve_tiles(s, x, images, packed, bias, out, room);
  else convolve(filled, images, s.kernel, packed, bias, out, s.outputs, room);
}

// The way back over `images` gradients `dz`, as `with_border` gives them: the gradient of x to `x_grad`, where there is room
// for it, and the sums of the weights' gradients, where there are `totals`. `in`: room for padded images where the
// convolution is depthwise or leaves positions out, and otherwise only sizes.
INLINE void convolve_chunk_back(const ConvShape& s, const float* x, const Padded& in, const Padded& dz, int64_t images,
                                const float* backwards, float* x_grad, double* totals, float* room) {
  if (is_tiled(s)) return tiles_backward(s, x, dz.data, images, backwards, x_grad, totals, room);
  if (x_grad != nullptr) {
    if (s.depthwise) convolve_depthwise(dz, images, s.kernel, backwards, x_grad);
    else if (s.stride > 1) convolve_strided_back(s, dz, images, backwards, x_grad);
    else convolve(dz, images, s.kernel, backwards, nullptr, x_grad, s.inputs, room);
  }
  if (totals == nullptr) return;
  if (!s.depthwise && s.stride == 1) return add_weight_grads(x, in, dz, images, s.kernel, totals, room);
  fill(in, x, images);
  if (s.depthwise) add_depthwise_grads(in, dz, images, s.kernel, totals);
  else add_strided_grads(s, in, dz, images, totals);
}

// Totals as a gradient in the weights' own layout.
INLINE void unpack_totals(const ConvShape& s, const double* totals, float* grad) {
  if (s.depthwise) unpack_depthwise_grads(s, totals, grad);
  else if (is_tiled(s)) unpack_tiled_grads(s, totals, grad);
  else unpack_grads(s, totals, grad);
}

}  // namespace
