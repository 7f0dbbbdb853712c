// The images of a batch: gathered from stored bytes, cropped and normalised in one pass.

#pragma once

#include "lanes.hpp"
#include "steps.hpp"

namespace {

using simic::WindowShape;

// Value times `a` plus `b`, in two roundings, for the windows that `windows` names; `a` and `b` are laid out as a window.
void gather_images(const WindowShape& shape, const uint8_t* stored, const int64_t* windows, int64_t count,
                   const float* __restrict a, const float* __restrict b, float* __restrict out) {
  const bool is_dense = shape.pitch == shape.run;
  const int64_t rows = is_dense ? 1 : shape.rows, run = is_dense ? shape.rows * shape.run : shape.run;
  for (int64_t n = 0; n < count; ++n) {
    const uint8_t* window = stored + windows[n] * shape.step;
    for (int64_t y = 0; y < rows; ++y, out += run) {
      const uint8_t* from = window + y * shape.pitch;
      const float *factors = a + y * run, *offsets = b + y * run;
      for (int64_t i = 0; i < run; ++i) out[i] = static_cast<float>(from[i]) * factors[i] + offsets[i];
    }
  }
}

}  // namespace
