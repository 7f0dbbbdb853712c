// The kernels of one level, as plain functions over f32 arrays. All images are channels-last and dense. `memory` is
// scratch of as many floats as the function next to it says, aligned to 64 bytes; what it holds does not matter.
//
// Nothing here knows libtorch: kernels are compiled once a level, with that level's instructions, and what libtorch's
// headers inline must not be.

#pragma once

#include "shapes.hpp"
#include "steps.hpp"

namespace simic {

struct Kernels {
  const char* level;

  // ---- weights of convolutions
  int64_t (*conv_packed_floats)(const ConvShape&, bool backwards);
  void (*conv_pack)(const ConvShape&, const float* weights, bool backwards, float* packed);

  // ---- blocks of hosts
  int64_t (*block_scratch_forward)(const ConvShape&);
  int64_t (*block_scratch_backward)(const ConvShape&);
  void (*block_forward)(const ConvShape&, const float* x, const float* packed, float* z, double* mean, double* variance,
                        float* memory);
  void (*block_activate)(const ConvShape&, const float* z, const float* scale, const float* shift, bool pooled,
                         const float* residual, float* out, float* chosen, int64_t images, float* memory);
  void (*block_backward)(const ConvShape&, const float* x, const float* z, const float* chosen, const float* residual,
                         const float* grad, const float* scale, const float* shift, const float* mean, const float* inverse,
                         const float* backwards, float* x_grad, bool is_begun, float* weight_grad, float* gamma_grad,
                         float* beta_grad, float* residual_grad, float* memory);
  void (*block_folded)(const ConvShape&, const float* x, const float* packed, const float* bias, bool pooled,
                       const float* residual, float* out, float* memory);
  void (*block_fold)(const ConvShape&, const float* weights, const float* gamma, const float* beta, const float* mean,
                     const float* variance, double epsilon, float* folded, float* bias);
  void (*pool)(const ConvShape&, const float* x, const float* grad, float* out);

  // ---- heads of hosts
  int64_t (*head_scratch)(const ConvShape&);
  void (*head_forward)(const ConvShape&, const float* x, const float* weight, const float* bias, float* means,
                       float* logits, float* memory);
  void (*head_backward)(const ConvShape&, const float* means, const float* weight, const float* grad, float* x_grad,
                        float* weight_grad, float* bias_grad, float* memory);

  // ---- seeds
  int64_t (*layer_scratch_forward)(const Layer&);
  int64_t (*layer_scratch_backward)(const Layer&);
  void (*layer_forward)(const Layer&, const float* x, const float* packed, const float* gamma, const float* beta,
                        const float* onto, float alpha, float* z, float* out, float* means, float* inverses,
                        float* memory);
  void (*layer_backward)(const Layer&, const float* x, const float* z, const float* means, const float* inverses,
                         const float* gamma, const float* beta, const float* grad, float alpha, bool is_added,
                         const float* backwards, float* x_grad, float* weight_grad, float* gamma_grad, float* beta_grad,
                         float* memory);
  int64_t (*norm_scratch)(const Layer&);
  void (*norm_forward)(const Layer&, const float* x, const float* gamma, const float* beta, float strength, float* out,
                       float* means, float* inverses, float* memory);
  void (*norm_backward)(const Layer&, const float* x, const float* means, const float* inverses, const float* gamma,
                        const float* beta, float strength, const float* grad, float* x_grad, float* gamma_grad,
                        float* beta_grad, float* strength_grad, float* memory);
  int64_t (*excite_scratch)(const ConvShape&);
  void (*excite_forward)(const ConvShape&, const float* x, const float* squeeze, const float* excite, const float* bias,
                         float* means, float* hidden, float* gates, float* out, float* memory);
  void (*excite_backward)(const ConvShape&, const float* x, const float* squeeze, const float* excite, const float* means,
                          const float* hidden, const float* gates, const float* grad, float* x_grad, float* squeeze_grad,
                          float* excite_grad, float* bias_grad, float* memory);

  // ---- batches and losses
  void (*gather_images)(const Windows& images, const Windows& masks, int64_t count, const float* a, const float* b,
                        float* out);
  void (*cross_entropy)(const float* logits, const int64_t* targets, int64_t rows, int64_t classes, double smoothing,
                        int64_t* predictions, float* grad, double* mean, float* memory);
  void (*add_validation)(const float* logits, const int64_t* targets, int64_t configurations, int64_t samples,
                         int64_t classes, int64_t main, double* losses, double* correct, double* both_correct,
                         uint8_t* flags, float* memory);

  // ---- gradients and updates
  double (*sum_of_squares)(const float* x, int64_t n);
  void (*sgd)(const SgdStep&, int64_t n, const float* grad, float* velocity, float* param);
  void (*adamw)(const AdamwStep&, int64_t n, const float* grad, float* first, float* second, float* param);
};

extern const Kernels avx512_kernels, avx2_kernels, plain_kernels;

}  // namespace simic
