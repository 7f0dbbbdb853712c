// The images of a batch: gathered from stored bytes, cropped, normalised and cut out in one pass.

#pragma once

#include "lanes.hpp"
#include "steps.hpp"

namespace {

using simic::WindowShape;
using simic::Windows;

// Zeros where the mask is set, in an image that was just written.
void blank(const WindowShape& shape, const uint8_t* mask, float* __restrict image) {
  for (int64_t y = 0; y < shape.rows; ++y, mask += shape.pitch, image += shape.run)
    for (int64_t i = 0; i < shape.run; ++i) image[i] = mask[i] ? 0.0f : image[i];
}

// Value times `a` plus `b`, in two roundings, or zero where an image's mask is set; `a` and `b` are laid out as a window.
void gather_images(const Windows& images, const Windows& masks, int64_t count, const float* __restrict a,
                   const float* __restrict b, float* __restrict out) {
  const WindowShape& shape = images.shape;
  const bool is_dense = shape.pitch == shape.run;
  const int64_t rows = is_dense ? 1 : shape.rows, run = is_dense ? shape.rows * shape.run : shape.run;
  for (int64_t n = 0; n < count; ++n) {
    float* image = out;
    const uint8_t* window = images.stored + images.numbers[n] * shape.step;
    for (int64_t y = 0; y < rows; ++y, out += run) {
      const uint8_t* from = window + y * shape.pitch;
      const float *factors = a + y * run, *offsets = b + y * run;
      for (int64_t i = 0; i < run; ++i) out[i] = static_cast<float>(from[i]) * factors[i] + offsets[i];
    }
    if (masks.stored) blank(masks.shape, masks.stored + masks.numbers[n] * masks.shape.step, image);
  }
}

}  // namespace
