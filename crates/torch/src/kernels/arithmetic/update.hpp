// Gradients and updates of single parameters.
//
// Updates and sums in double precision are plain loops: whether a level computes an element alone or in a vector does
// not show in its bits.

#pragma once

#include "lanes.hpp"
#include "steps.hpp"

namespace {

using simic::AdamwStep;
using simic::SgdStep;

// Σ x² in f64, in eight interleaved partial sums: a fixed order. The square of an f32 is exact.
double sum_of_squares(const float* x, int64_t n) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * value;
    }
  for (; i < n; ++i) sums[i % 8] += static_cast<double>(x[i]) * x[i];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// `velocity` is null without momentum.
void sgd(const SgdStep& step, int64_t n, const float* __restrict grad, float* __restrict velocity,
         float* __restrict param) {
  const SgdStep s = step;
  if (velocity == nullptr) {
    for (int64_t i = 0; i < n; ++i) param[i] -= s.lr * (grad[i] * s.scale + s.weight_decay * param[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const float v = s.momentum * velocity[i] + (grad[i] * s.scale + s.weight_decay * param[i]);
    velocity[i] = v;
    param[i] -= s.lr * v;
  }
}

void adamw(const AdamwStep& step, int64_t n, const float* __restrict grad, float* __restrict first,
           float* __restrict second, float* __restrict param) {
  const AdamwStep s = step;
  for (int64_t i = 0; i < n; ++i) {
    const float g = grad[i] * s.scale;
    const float m = s.beta1 * first[i] + s.one_less_beta1 * g;
    const float v = s.beta2 * second[i] + s.one_less_beta2 * (g * g);
    first[i] = m;
    second[i] = v;
    param[i] = s.keep * param[i] - s.lr * (m / (__builtin_sqrtf(s.correction * v) + s.eps));
  }
}

}  // namespace
