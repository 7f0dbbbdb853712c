// Dense convolutions at every second row and column of images with whole vectors of channels. An output is one chain of
// fused multiply-adds over taps and inputs, a weight's gradient one over the positions of an image.

#pragma once

#include "products.hpp"

namespace {

// The convolution of `images` padded images. `weights`: as `pack` makes them.
void convolve_strided(const ConvShape& s, const Padded& in, int64_t images, const float* weights, float* out) {
  const int64_t height = s.out_height(), width = s.out_width(), kernel = s.kernel;
  Tap taps[9];
  for (int64_t tap = 0; tap < kernel * kernel; ++tap)
    taps[tap] = {tap / kernel * in.row + tap % kernel * s.inputs, weights + tap * s.inputs * s.outputs};
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < height; ++y, out += width * s.outputs)
      multiply_run({taps, kernel * kernel, s.inputs, s.outputs, width, in.data + n * in.image + 2 * y * in.row, 2 * s.inputs,
                     out, s.outputs});
}

// The gradient of x from padded gradients `dz`. `weights`: as `pack_backwards` makes them.
//
// Even and odd rows and columns of x lie under different taps, each under as many as it needs.
void convolve_strided_back(const ConvShape& s, const Padded& dz, int64_t images, const float* weights, float* x_grad) {
  const int64_t kernel = s.kernel, pad = s.pad();
  for (int64_t phase = 0; phase < 4; ++phase) {
    const int64_t row = phase / 2, column = phase % 2;
    Tap taps[9];
    int64_t n_taps = 0;
    for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
      const int64_t down = row + pad - tap / kernel, right = column + pad - tap % kernel;
      if (down % 2 != 0 || right % 2 != 0) continue;
      const int64_t turned = kernel * kernel - 1 - tap;
      taps[n_taps++] = {down / 2 * dz.row + right / 2 * s.outputs, weights + turned * s.outputs * s.inputs};
    }
    for (int64_t n = 0; n < images; ++n)
      for (int64_t y = row; y < s.height; y += 2) {
        const float* from = dz.data + n * dz.image + (y / 2 + dz.pad) * dz.row + dz.pad * s.outputs;
        float* to = x_grad + ((n * s.height + y) * s.width + column) * s.inputs;
        multiply_run({taps, n_taps, s.outputs, s.inputs, (s.width - column + 1) / 2, from, s.outputs, to, 2 * s.inputs});
      }
  }
}

// Adds the gradients of the weights over `images` images to `totals [elements, outputs]`.
void add_strided_grads(const ConvShape& s, const Padded& x, const Padded& dz, int64_t images, double* totals) {
  const int64_t kernel = s.kernel;
  for (int64_t n = 0; n < images; ++n) {
    const Area grads = {dz.data + n * dz.image + dz.pad * (dz.row + s.outputs), s.outputs, s.outputs, dz.row};
    for (int64_t tap = 0; tap < kernel * kernel; ++tap) {
      const float* under = x.data + n * x.image + tap / kernel * x.row + tap % kernel * s.inputs;
      add_all_products({under, s.inputs, 2 * s.inputs, 2 * x.row}, grads, s.out_height(), s.out_width(),
                       totals + tap * s.inputs * s.outputs);
    }
  }
}

}  // namespace
