// The agreement of the kernels and libtorch's side about updates: the constants of one step. Compiled for every level.

#pragma once

#include <cstdint>

namespace simic {

// g = scale·grad + weight_decay·p; v = momentum·v + g; p = p - lr·v.
struct SgdStep {
  float scale, lr, momentum, weight_decay;
};

// m = beta1·m + (1-beta1)·g and v = beta2·v + (1-beta2)·g² for g = scale·grad; p = keep·p - lr·m / (√(correction·v) + eps),
// lr and correction with the bias of m and v taken out of them.
struct AdamwStep {
  float scale, lr, beta1, one_less_beta1, beta2, one_less_beta2, eps, keep, correction;
};

// The place of images in stored bytes: `rows` runs of `run` values, `pitch` bytes apart; windows are `step` bytes apart.
struct WindowShape {
  int64_t rows, run, pitch, step;
};

// The windows of a batch, by their numbers; no windows at all where `stored` is null.
struct Windows {
  WindowShape shape;
  const uint8_t* stored;
  const int64_t* numbers;
};

}  // namespace simic
