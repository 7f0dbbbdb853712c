// The kernels of one level, as plain functions over f32 arrays. All images are channels-last and dense. `memory` is
// scratch of as many floats as the function beside tells, aligned to 64 bytes; what it holds does not matter.
//
// Nothing here knows libtorch: kernels are compiled once a level, with that level's instructions, and what libtorch's
// headers inline must not be.

#pragma once

#include "shapes.hpp"

namespace simic {

struct Kernels {
  const char* level;

  // ---- convolution, weights packed for it
  void (*pack)(const ConvShape&, const float* weights, float* packed);
  void (*pack_backwards)(const ConvShape&, const float* weights, float* packed);

  // ---- blocks of hosts
  int64_t (*block_scratch_forward)(const ConvShape&);
  int64_t (*block_scratch_backward)(const ConvShape&);
  void (*block_forward)(const ConvShape&, const float* x, const float* packed, float* z, double* mean, double* variance,
                        float* memory);
  void (*block_activate)(const ConvShape&, const float* z, const float* scale, const float* shift, bool pooled, float* out,
                         int64_t images, float* memory);
  void (*block_backward)(const ConvShape&, const float* x, const float* z, const float* grad, bool pooled,
                         const float* scale, const float* shift, const float* mean, const float* inverse,
                         const float* backwards, float* x_grad, float* weight_grad, float* gamma_grad, float* beta_grad,
                         float* memory);
  void (*block_folded)(const ConvShape&, const float* x, const float* packed, const float* bias, bool pooled, float* out,
                       float* memory);
  void (*block_fold)(const ConvShape&, const float* weights, const float* gamma, const float* beta, const float* mean,
                     const float* variance, double epsilon, float* packed, float* bias);
};

extern const Kernels avx512_kernels, avx2_kernels, plain_kernels;

}  // namespace simic
