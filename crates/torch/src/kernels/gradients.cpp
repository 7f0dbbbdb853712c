// Gradients of a parameter list: dropped, zeroed, clipped, measured, unscaled; by the engine's own sums for f32 on a CPU.

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

namespace {

Tensors defined_grads(Tensor* const* params, size_t n) {
  Tensors grads;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& grad = params[i]->grad();
    if (grad.defined()) grads.push_back(grad);
  }
  return grads;
}

// Measurements of a group's gradients, tensor by tensor, in the order of its columns.
struct Statistics {
  double squares = 0, vanishing = 0, exploding = 0, tensors = 0, elements = 0;

  void add(const float* grad, int64_t size, double vanishes_below, double explodes_above) {
    const double square = kernels().sum_of_squares(grad, size), norm = std::sqrt(square);
    squares += square;
    vanishing += norm < vanishes_below;
    exploding += norm > explodes_above || !std::isfinite(norm);
    tensors += 1;
    elements += static_cast<double>(size);
  }
};

double sum_of_squares(const Tensor& t) { return kernels().sum_of_squares(t.const_data_ptr<float>(), t.numel()); }

void scale_in_place(const Tensor& t, float factor) {
  float* x = t.data_ptr<float>();
  const int64_t n = t.numel();
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
  t.unsafeGetTensorImpl()->bump_version();
}

// One f64 vector of the tensors' L2 norms, on their device.
Tensor norms_of(const Tensors& tensors) {
  return at::stack(at::_foreach_norm(tensors, 2, at::kDouble));
}

// The gradient with the parameter's strides, which the fused kernels take for granted.
Tensor grad_in_layout_of(const Tensor& param, const Tensor& grad) {
  if (same_layout(param, grad)) return grad;
  return at::empty_like(param, grad.options()).copy_(grad);
}

}  // namespace

extern "C" {

char* simic_zero_grads(Tensor* const* params, size_t n) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    zero_tensors(defined_grads(params, n));
  });
}

char* simic_drop_grads(Tensor* const* params, size_t n) {
  return guarded([&] {
    for (size_t i = 0; i < n; ++i) params[i]->mutable_grad().reset();
  });
}

// norm: f64 scalar, the L2 norm before clipping; bad: f32 scalar, 1 where that norm is not finite.
// max_norm < 0: measure without clipping. Gradients of a bad group are left in an unspecified state.
char* simic_clip_grads(Tensor* const* params, size_t n, double max_norm, Tensor* norm, Tensor* bad) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    const Tensors grads = defined_grads(params, n);
    if (grads.empty()) {
      norm->zero_();
      bad->zero_();
      return;
    }
    if (norm->device().is_cpu() && bad->device().is_cpu() && all_flat_cpu_f32(grads)) {
      double squares = 0;
      for (const Tensor& grad : grads) squares += sum_of_squares(grad);
      const double total = std::sqrt(squares);
      *norm->data_ptr<double>() = total;
      *bad->data_ptr<float>() = std::isfinite(total) ? 0.f : 1.f;
      const double coefficient = max_norm / (total + 1e-6);
      if (max_norm >= 0 && coefficient < 1) {
        for (const Tensor& grad : grads) scale_in_place(grad, static_cast<float>(coefficient));
      }
      return;
    }
    norm->copy_(at::linalg_vector_norm(norms_of(grads), 2));
    bad->copy_(at::isfinite(*norm).logical_not());
    if (max_norm >= 0) {
      const Tensor coefficient = norm->add(1e-6).reciprocal().mul(max_norm).clamp_max(1).to(grads[0].scalar_type());
      at::_foreach_mul_(grads, coefficient);
    }
  });
}

// out: f64 [5] = Σ‖g‖², tensors with norm < vanishing, tensors with norm > exploding or not finite, tensors with a
// gradient, their elements.
char* simic_grad_stats(Tensor* const* params, size_t n, double vanishing, double exploding, Tensor* out) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    const Tensors grads = defined_grads(params, n);
    if (grads.empty()) {
      out->zero_();
      return;
    }
    if (out->device().is_cpu() && all_flat_cpu_f32(grads)) {
      Statistics found;
      for (const Tensor& grad : grads) found.add(grad.const_data_ptr<float>(), grad.numel(), vanishing, exploding);
      std::memcpy(out->data_ptr<double>(), &found, sizeof found);
      return;
    }
    double elements = 0;
    for (const Tensor& grad : grads) elements += static_cast<double>(grad.numel());
    const Tensor norms = norms_of(grads);
    out->select(0, 0).copy_(norms.square().sum());
    out->select(0, 1).copy_(norms.lt(vanishing).sum());
    out->select(0, 2).copy_(norms.gt(exploding).logical_or(at::isfinite(norms).logical_not()).sum());
    out->select(0, 3).fill_(static_cast<double>(grads.size()));
    out->select(0, 4).fill_(elements);
  });
}

// Multiplies every gradient by inverse_scale and sets found_inf to 1 where one is not finite.
char* simic_unscale_grads(Tensor* const* params, size_t n, const Tensor* inverse_scale, Tensor* found_inf) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    const Tensors grads = defined_grads(params, n);
    if (!grads.empty()) at::_amp_foreach_non_finite_check_and_unscale_(grads, *found_inf, *inverse_scale);
  });
}

}  // extern "C"
