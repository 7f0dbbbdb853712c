// Optimizer steps of a group of parameters in one call, those without a gradient skipped: by libtorch's fused kernels, or by
// the engine's own, f32 on a CPU, with statistics, norm, clip and guard.

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>

namespace {

// A parameter that has a gradient, both as flat arrays of one order.
struct Trained {
  size_t index;
  const Tensor* param;
  const float* grad;
  int64_t size;
};

using TrainedList = c10::SmallVector<Trained, 64>;

// `copies` keeps gradients alive that are laid out otherwise than their parameter.
TrainedList trained(Tensor* const* params, size_t n, Tensors& copies) {
  TrainedList list;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& grad = params[i]->grad();
    if (!grad.defined()) continue;
    TORCH_CHECK(is_flat_cpu_f32(*params[i]) && grad.device().is_cpu() && grad.scalar_type() == at::kFloat,
                "the engine's own optimizer steps are for float32 on a CPU");
    const Tensor* in_layout = &grad;
    if (!same_layout(*params[i], grad)) {
      copies.push_back(grad_in_layout_of(*params[i], grad));
      in_layout = &copies.back();
    }
    list.push_back({i, params[i], in_layout->const_data_ptr<float>(), grad.numel()});
  }
  return list;
}

// base to the power of n ≥ 0, the same on every machine.
double power(double base, int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return result;
}

}  // namespace

extern "C" {

// A rule and its state tensors, one for each parameter. SGD: `first` are velocities, read only with momentum; AdamW:
// `first`, `second` and `counts`, f32 scalars.
struct SimicRule {
  bool is_adamw;
  double lr;
  // Momentum of SGD.
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  Tensor* const* first;
  Tensor* const* second;
  Tensor* const* counts;
};

// The treatment of the gradients of a group in one batch. Columns of the pack; -1: not written.
struct SimicTreatment {
  // < 0: not clipped.
  double max_norm;
  double vanishing;
  double exploding;
  int64_t statistics;
  int64_t streak;
  int64_t skipped;
};

}  // extern "C"

namespace {

void step(const TrainedList& list, const SimicRule& rule, float scale) {
  const Kernels& kernel = kernels();
  for (const Trained& t : list) {
    float* param = t.param->data_ptr<float>();
    if (rule.is_adamw) {
      float* count = rule.counts[t.index]->data_ptr<float>();
      *count += 1;
      const auto updates = static_cast<int64_t>(*count);
      simic::AdamwStep s;
      s.scale = scale;
      s.lr = static_cast<float>(rule.lr / (1 - power(rule.beta1, updates)));
      s.beta1 = static_cast<float>(rule.beta1);
      s.one_less_beta1 = static_cast<float>(1 - rule.beta1);
      s.beta2 = static_cast<float>(rule.beta2);
      s.one_less_beta2 = static_cast<float>(1 - rule.beta2);
      s.eps = static_cast<float>(rule.eps);
      s.keep = static_cast<float>(1 - rule.lr * rule.weight_decay);
      s.correction = static_cast<float>(1 / (1 - power(rule.beta2, updates)));
      kernel.adamw(s, t.size, t.grad, rule.first[t.index]->data_ptr<float>(), rule.second[t.index]->data_ptr<float>(),
                   param);
    } else {
      const simic::SgdStep s = {scale, static_cast<float>(rule.lr), static_cast<float>(rule.beta1),
                                static_cast<float>(rule.weight_decay)};
      kernel.sgd(s, t.size, t.grad, rule.beta1 == 0 ? nullptr : rule.first[t.index]->data_ptr<float>(), param);
    }
    t.param->unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace

extern "C" {

// The optimizer step alone; nothing where found_inf is not 0.
char* simic_own_step(Tensor* const* params, size_t n, const SimicRule* rule, const Tensor* found_inf) {
  return guarded([&] {
    if (*found_inf->const_data_ptr<float>() != 0) return;
    Tensors copies;
    step(trained(params, n, copies), *rule, 1);
  });
}

// The same by libtorch's kernels, on any device that has them. `rate`, a scalar there, is read when they run, so that a
// recorded step follows it.
char* simic_fused_step(Tensor* const* params, size_t n, const SimicRule* rule, const Tensor* rate, const Tensor* found_inf) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    Tensors weights, grads, first, second, counts;
    for (size_t i = 0; i < n; ++i) {
      const Tensor& grad = params[i]->grad();
      if (!grad.defined()) continue;
      weights.push_back(*params[i]);
      grads.push_back(grad_in_layout_of(*params[i], grad));
      if (rule->is_adamw || rule->beta1 != 0) first.push_back(*rule->first[i]);
      if (!rule->is_adamw) continue;
      second.push_back(*rule->second[i]);
      counts.push_back(*rule->counts[i]);
    }
    if (weights.empty()) return;
    if (!rule->is_adamw) {
      at::_fused_sgd_(weights, grads, first, rule->weight_decay, /*momentum=*/rule->beta1, *rate, /*dampening=*/0,
                      /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/false, {}, *found_inf);
      return;
    }
    // The kernel expects the count of the step it makes; a suppressed step does not count.
    at::_foreach_add_(counts, found_inf->neg().add(1));
    at::_fused_adamw_(weights, grads, first, second, {}, counts, *rate, rule->beta1, rule->beta2, rule->weight_decay,
                      rule->eps, /*amsgrad=*/false, /*maximize=*/false, {}, *found_inf);
  });
}

// norm: f64 scalar, before clipping; bad: f32 scalar, 1 where the norm is not finite: nothing is updated then. Into the
// pack (f64): statistics as simic_grad_stats has them; streak + 1 where bad, else 0; bad added to what was skipped.
char* simic_own_update(Tensor* const* params, size_t n, const SimicRule* rule, const SimicTreatment* treatment,
                       Tensor* pack, Tensor* norm, Tensor* bad) {
  return guarded([&] {
    Tensors copies;
    const TrainedList list = trained(params, n, copies);
    Statistics found;
    for (const Trained& t : list) found.add(t.grad, t.size, treatment->vanishing, treatment->exploding);
    const double total = std::sqrt(found.squares);
    const bool is_finite = std::isfinite(total);
    double* columns = pack->data_ptr<double>();
    if (treatment->statistics >= 0) std::memcpy(columns + treatment->statistics, &found, sizeof found);
    if (treatment->streak >= 0) {
      double& streak = columns[treatment->streak];
      streak = is_finite ? 0 : streak + 1;
    }
    columns[treatment->skipped] += !is_finite;
    *norm->data_ptr<double>() = total;
    *bad->data_ptr<float>() = is_finite ? 0.f : 1.f;
    if (!is_finite) return;
    const double coefficient = treatment->max_norm / (total + 1e-6);
    step(list, *rule, treatment->max_norm >= 0 && coefficient < 1 ? static_cast<float>(coefficient) : 1.f);
  });
}

}  // extern "C"
