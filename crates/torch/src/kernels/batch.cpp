// Batches and their losses on a CPU: images gathered in one pass, cross entropy with its gradient, sums over validation.

namespace {

// Targets become addresses.
const int64_t* checked_targets(const Tensor& targets, int64_t classes) {
  TORCH_CHECK(targets.scalar_type() == at::kLong && targets.is_contiguous(), "targets must be dense and i64");
  const int64_t* classes_of = targets.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < targets.numel(); ++i)
    TORCH_CHECK(classes_of[i] >= 0 && classes_of[i] < classes, "a label is ", classes_of[i], ", but there are ", classes,
                " classes");
  return classes_of;
}

// Windows of bytes, and which of them a batch takes; numbers become addresses.
simic::Windows checked_windows(const Tensor& windows, at::ScalarType kind, const Tensor& numbers, const char* what) {
  TORCH_CHECK(windows.scalar_type() == kind && windows.stride(2) == 1, what, "s must be bytes in dense runs");
  TORCH_CHECK(numbers.scalar_type() == at::kLong && numbers.is_contiguous(), "positions must be dense and i64");
  const int64_t* at = numbers.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < numbers.numel(); ++i)
    TORCH_CHECK(at[i] >= 0 && at[i] < windows.size(0), "there is no ", what, " ", at[i]);
  return {{windows.size(1), windows.size(2), windows.stride(1), windows.stride(0)},
          static_cast<const uint8_t*>(windows.const_data_ptr()),
          at};
}

struct CrossEntropyNode final : KernelNode {
  // The gradient of the objective by the logits.
  Tensor grad;

  std::string name() const override { return "SimicCrossEntropy"; }

  void release_variables() override { grad.reset(); }

  variable_list apply(variable_list&& grads) override {
    forbid_second_derivative();
    variable_list out(1);
    if (!grads[0].defined()) return out;
    const float factor = *read(grads[0]);
    if (factor == 1) {
      out[0] = grad;
      return out;
    }
    out[0] = new_grad(grad);
    const float* from = read(grad);
    float* to = write(out[0]);
    for (int64_t i = 0; i < grad.numel(); ++i) to[i] = from[i] * factor;
    return out;
  }
};

}  // namespace

extern "C" {

// windows: u8 [windows, rows, run], overlapping; masks: bool [masks, rows, run], overlapping, or none; positions, places:
// i64 [n]; a, b: f32 [rows, run]; out: f32 [n, rows, run].
char* simic_gather_images(const Tensor* windows, const Tensor* positions, const Tensor* masks, const Tensor* places,
                          const Tensor* a, const Tensor* b, Tensor* out) {
  return guarded([&] {
    const simic::Windows images = checked_windows(*windows, at::kByte, *positions, "window");
    const simic::Windows blanks = masks ? checked_windows(*masks, at::kBool, *places, "mask") : simic::Windows{};
    const simic::WindowShape& shape = images.shape;
    const int64_t n = positions->numel();
    if (masks)
      TORCH_CHECK(blanks.shape.rows == shape.rows && blanks.shape.run == shape.run && places->numel() == n,
                  "masks must be the same size as the windows");
    for (const Tensor* values : {a, b, static_cast<const Tensor*>(out)})
      TORCH_CHECK(values->scalar_type() == at::kFloat && values->is_contiguous(),
                  "factors, offsets and images must be dense and f32");
    TORCH_CHECK(a->numel() == shape.rows * shape.run && b->numel() == a->numel() && out->numel() == n * a->numel(),
                "factors, offsets and images must be the same size as the windows");
    kernels().gather_images(images, blanks, n, a->const_data_ptr<float>(), b->const_data_ptr<float>(),
                            out->data_ptr<float>());
    out->unsafeGetTensorImpl()->bump_version();
  });
}

// logits: f32 [n, classes]; targets: i64 [n]. Writes predictions[first..first + n] (i64) and adds `share` of the mean loss to
// losses[batch] (f64); `out` is the objective.
char* simic_cross_entropy(const Tensor* logits, const Tensor* targets, double smoothing, Tensor* predictions,
                          int64_t first, Tensor* losses, int64_t batch, double share, Tensor** out) {
  return guarded([&] {
    TORCH_CHECK(logits->dim() == 2 && logits->scalar_type() == at::kFloat && logits->size(0) == targets->numel(),
                "a cross entropy must be the same size as its targets");
    TORCH_CHECK(predictions->scalar_type() == at::kLong && first + targets->numel() <= predictions->numel() &&
                    losses->scalar_type() == at::kDouble && batch < losses->numel(),
                "there is no room for this batch's predictions and loss");
    const Tensor rows = logits->contiguous();
    const int64_t n = rows.size(0), classes = rows.size(1);
    const Tensor grad = new_tensor({n, classes}, {classes, 1});
    double means[2];
    kernels().cross_entropy(read(rows), checked_targets(*targets, classes), n, classes, smoothing,
                            predictions->data_ptr<int64_t>() + first, write(grad), means, kernel_memory(16 * classes));
    losses->data_ptr<double>()[batch] += share * means[0];
    Tensor objective = new_tensor({}, {});
    *write(objective) = static_cast<float>(means[1]);
    if (is_recorded(*logits)) attach(objective, new CrossEntropyNode(), *logits)->grad = grad;
    *out = new Tensor(objective);
  });
}

// logits: f32 [configurations·n, classes]; targets: i64 [n]. Adds to the pack's columns (f64), one for each configuration,
// that begin at `losses`, `correct` and `both_correct`; each block has `room` columns.
char* simic_add_validation(const Tensor* logits, const Tensor* targets, int64_t main, Tensor* pack, int64_t losses,
                           int64_t correct, int64_t both_correct, int64_t room) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    const Tensor rows = logits->contiguous();
    const int64_t n = targets->numel();
    TORCH_CHECK(rows.dim() == 2 && rows.scalar_type() == at::kFloat && n > 0 && rows.size(0) % n == 0,
                "logits must be the same size as their targets, or a multiple");
    const int64_t configurations = rows.size(0) / n, classes = rows.size(1);
    TORCH_CHECK(main < configurations && configurations <= room, configurations, " configurations do not fit into ", room);
    thread_local std::vector<uint8_t> flags;
    if (static_cast<int64_t>(flags.size()) < n) flags.resize(n);
    double* columns = pack->data_ptr<double>();
    kernels().add_validation(rows.const_data_ptr<float>(), checked_targets(*targets, classes), configurations, n, classes,
                             main, columns + losses, columns + correct, columns + both_correct, flags.data(),
                             kernel_memory(16 * classes));
  });
}

}  // extern "C"
