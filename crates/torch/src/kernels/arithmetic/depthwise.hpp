// Depthwise convolutions: a filter for each channel. Rows are walked flat, with weights that repeat with the channels.

#pragma once

#include "images.hpp"

namespace {

// Weights `[channels, k, k]` (one input a channel) as `[k·k, period]`; `turned` by 180 degrees for gradients.
void pack_depthwise(const ConvShape& s, const float* weights, bool turned, float* packed) {
  const int64_t taps = s.kernel * s.kernel, period = period_of(s.outputs);
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t i = 0, c = 0; i < period; ++i, c = c + 1 == s.outputs ? 0 : c + 1)
      packed[tap * period + i] = weights[c * taps + (turned ? taps - 1 - tap : tap)];
}

void convolve_depthwise(const Padded& in, int64_t images, int64_t kernel, const float* packed, float* out) {
  const int64_t period = period_of(in.channels), row = in.width * in.channels;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < in.height; ++y, out += row) {
      const float* line = in.data + n * in.image + y * in.row;
      over_flat(row, period, [&](int64_t at, int64_t offset, int count) INLINE_LAMBDA {
        auto sum = Flat::zero();
        const float* weights = packed + offset;
        for (int64_t dy = 0; dy < kernel; ++dy)
          for (int64_t dx = 0; dx < kernel; ++dx, weights += period)
            sum = Flat::fma(Flat::load_at_most(line + dy * in.row + dx * in.channels + at, count), Flat::load(weights), sum);
        Flat::store_at_most(out + at, sum, count);
      });
    }
}

// Adds the gradients of the weights over `images` images to `totals [k·k, channels]`.
void add_depthwise_grads(const Padded& x, const Padded& grad, int64_t images, int64_t kernel, double* totals) {
  const int64_t channels = x.channels, period = period_of(channels), row = x.width * channels;
  float lanes[16];
  for (int64_t dy = 0; dy < kernel; ++dy)
    for (int64_t dx = 0; dx < kernel; ++dx, totals += channels) {
      int64_t first = 0;
      for (int64_t offset = 0; offset < period && offset < row; offset += 16) {
        auto sum = Flat::zero();
        for (int64_t n = 0; n < images; ++n)
          for (int64_t y = 0; y < x.height; ++y) {
            const float* from = x.data + n * x.image + (y + dy) * x.row + dx * channels;
            const float* g = grad.data + n * grad.image + (y + grad.pad) * grad.row + grad.pad * channels;
            for (int64_t at = offset; at < row; at += period) {
              const int count = static_cast<int>(least(16, row - at));
              sum = Flat::fma(Flat::load_at_most(from + at, count), Flat::load_at_most(g + at, count), sum);
            }
          }
        Flat::store(lanes, sum);
        int64_t c = first;
        for (int lane = 0; lane < 16; ++lane, c = c + 1 == channels ? 0 : c + 1) totals[c] += lanes[lane];
        first = (first + 16) % channels;
      }
    }
}

// Totals `[k·k, channels]` as a gradient `[channels, k, k]`.
void unpack_depthwise_grads(const ConvShape& s, const double* totals, float* grad) {
  const int64_t taps = s.kernel * s.kernel;
  for (int64_t c = 0; c < s.outputs; ++c)
    for (int64_t tap = 0; tap < taps; ++tap) grad[c * taps + tap] = static_cast<float>(totals[tap * s.outputs + c]);
}

}  // namespace
