// Blocks of hosts as operators: convolution, norm and ReLU in one node, in training and folded; a 2x2 max pool alone.

namespace {

// ---- blocks: convolution, batch norm, ReLU; a residual in front of the ReLU or a 2x2 max pool after it

struct BlockNode final : KernelNode {
  ConvShape shape;
  // `residual`: of blocks with `adds`.
  Kept x, weight, residual;
  bool adds;
  // The gradient of x from other paths, for this node to add to; undefined where it begins here.
  Tensor begun;
  // The convolution's result and, where there is a pool, that of each window which it chose.
  Tensor z, chosen;
  // Scale, shift, mean and 1/√(σ² + ε), packed_channels of each.
  Tensor numbers;

  std::string name() const override { return "SimicBlock"; }

  void release_variables() override {
    for (Kept* saved : {&x, &weight, &residual}) saved->release();
    for (Tensor* kept : {&z, &chosen, &numbers}) kept->reset();
  }

  variable_list apply(variable_list&& grads) override {
    forbid_second_derivative();
    variable_list out(5);
    if (!grads[0].defined()) return out;
    const Tensor image = channels_innermost(x.get()), w = channels_innermost(weight.get());
    const bool is_ours = is_unshared(grads[0]);
    const Tensor grad = channels_innermost(grads[0]), added = adds ? channels_innermost(residual.get()) : Tensor();
    // The gradient that passes the ReLU is the residual's, in the place of the block's own where that is not shared.
    const Tensor passed = !adds ? Tensor() : is_ours ? grad : new_image_like(grad);
    const auto& k = kernels();
    const int64_t stride = packed_channels(shape.outputs);
    const float* number = read(numbers);
    const bool is_begun = begun.defined();
    out[0] = is_begun ? std::move(begun) : needed(0, image);
    if (task_should_compute_output(1)) out[1] = new_grad(w);
    out[2] = new_numbers(shape.outputs);
    out[3] = new_numbers(shape.outputs);
    const float* backwards = out[0].defined() ? packed_weight(shape, w, true) : nullptr;
    k.block_backward(shape, read(image), read(z), read_if_any(chosen), read_if_any(added), read(grad), number, number + stride,
                     number + 2 * stride, number + 3 * stride, backwards, write_if_any(out[0]), is_begun,
                     write_if_any(out[1]), write(out[2]), write(out[3]), write_if_any(passed), kernel_memory(k.block_scratch_backward(shape)));
    if (adds && task_should_compute_output(4)) out[4] = passed;
    return out;
  }
};

// Moves running statistics towards those of a batch, unless these are not finite.
void follow(const Tensor& running_mean, const Tensor& running_variance, const double* mean, const double* variance,
            int64_t channels, double values, double momentum) {
  bool finite = values > 1;
  for (int64_t c = 0; c < channels; ++c) finite = finite && std::isfinite(mean[c]) && std::isfinite(variance[c]);
  if (!finite) return;
  float *means = write(running_mean), *variances = write(running_variance);
  for (int64_t c = 0; c < channels; ++c) {
    means[c] = static_cast<float>((1 - momentum) * means[c] + momentum * mean[c]);
    variances[c] = static_cast<float>((1 - momentum) * variances[c] + momentum * variance[c] * values / (values - 1));
  }
  running_mean.unsafeGetTensorImpl()->bump_version();
  running_variance.unsafeGetTensorImpl()->bump_version();
}

ConvShape dense_shape(const Tensor& x, const Tensor& weight) {
  ConvShape shape = conv_shape(x, weight);
  TORCH_CHECK(!shape.depthwise, "a block's convolution must be dense; weights ", weight.sizes(), " are not");
  return shape;
}

// At every `stride`-th row and column.
ConvShape strided_shape(const Tensor& x, const Tensor& weight, int64_t stride) {
  ConvShape shape = dense_shape(x, weight);
  shape.stride = stride;
  const bool is_whole = shape.inputs % 16 == 0 && shape.outputs % 16 == 0;
  TORCH_CHECK(stride == 1 || (stride == 2 && is_whole), "a block must have stride 1, or 2 with multiples of 16 channels, not ",
              stride, " with ", shape.inputs, " and ", shape.outputs);
  return shape;
}

int64_t halved(int64_t side, bool pooled) { return pooled ? side / 2 : side; }

// `shape`: of what the residual is added to.
void check_residual(const Tensor& residual, const ConvShape& shape, bool pooled) {
  if (!residual.defined()) return;
  TORCH_CHECK(!pooled, "a block with a residual cannot have a pool");
  TORCH_CHECK(is_served(residual) && residual.sizes() == at::IntArrayRef({shape.batch, shape.outputs, shape.height, shape.width}),
              "a residual ", residual.sizes(), " does not fit a block's ", shape.batch, " images of ", shape.outputs, " channels, ",
              shape.height, "x", shape.width);
}

// `residual`: undefined without one.
Tensor block(const Tensor& x, const Tensor& weight, const Tensor& gamma, const Tensor& beta, const Tensor& running_mean,
             const Tensor& running_variance, double momentum, double epsilon, int64_t stride, bool pooled,
             const Tensor& residual) {
  const ConvShape shape = strided_shape(x, weight, stride), outer = simic::strided(shape);
  check_residual(residual, outer, pooled);
  const int64_t channels = shape.outputs, of_numbers = packed_channels(channels);
  for (const Tensor* t : {&gamma, &beta, &running_mean, &running_variance}) check_numbers(*t, channels, "a batch norm's tensor");
  const Tensor image = channels_innermost(x), w = channels_innermost(weight);
  const auto& k = kernels();
  const float* packed = packed_weight(shape, w, false);
  const Tensor z = new_image(shape.batch, channels, outer.height, outer.width);
  std::vector<double> statistics(2 * channels);
  double *mean = statistics.data(), *variance = mean + channels;
  float* memory = kernel_memory(k.block_scratch_forward(shape));
  k.block_forward(shape, read(image), packed, write(z), mean, variance, memory);
  follow(running_mean, running_variance, mean, variance, channels, static_cast<double>(shape.batch * outer.positions()), momentum);

  const Tensor numbers = new_numbers(4 * of_numbers);
  float *scale = write(numbers), *shift = scale + of_numbers, *means = shift + of_numbers, *inverses = means + of_numbers;
  const float *of_gamma = read(gamma), *of_beta = read(beta);
  std::memset(scale, 0, 4 * of_numbers * sizeof(float));
  for (int64_t c = 0; c < channels; ++c) {
    const double inverse = 1 / std::sqrt(variance[c] + epsilon), gain = of_gamma[c] * inverse;
    scale[c] = static_cast<float>(gain);
    shift[c] = static_cast<float>(of_beta[c] - mean[c] * gain);
    means[c] = static_cast<float>(mean[c]);
    inverses[c] = static_cast<float>(inverse);
  }
  Tensor out = new_image(shape.batch, channels, halved(outer.height, pooled), halved(outer.width, pooled));
  const bool recorded = is_recorded(x, weight, gamma, beta, residual);
  const Tensor chosen = recorded && pooled ? new_image_like(out) : Tensor();
  const Tensor added = channels_innermost(residual);
  k.block_activate(shape, read(z), scale, shift, pooled, read_if_any(added), write(out), write_if_any(chosen), shape.batch, memory);
  if (recorded) {
    auto* node = attach(out, new BlockNode(), x, weight, gamma, beta, residual);
    node->shape = shape;
    node->x = Kept(x);
    node->weight = Kept(weight);
    node->adds = residual.defined();
    if (node->adds) node->residual = Kept(residual);
    node->z = z;
    node->chosen = chosen;
    node->numbers = numbers;
  }
  return out;
}

// `weight` and `bias`: as `block_fold` makes them.
Tensor folded_block(const Tensor& x, const Tensor& weight, const Tensor& bias, bool pooled, const Tensor& residual) {
  const ConvShape shape = dense_shape(x, weight);
  check_numbers(bias, packed_channels(shape.outputs), "a block's folded bias");
  check_residual(residual, shape, pooled);
  const Tensor image = channels_innermost(x), w = channels_innermost(weight), added = channels_innermost(residual);
  Tensor out = new_image(shape.batch, shape.outputs, halved(shape.height, pooled), halved(shape.width, pooled));
  const auto& k = kernels();
  k.block_folded(shape, read(image), packed_weight(shape, w, false), read(bias), pooled, read_if_any(added), write(out),
                 kernel_memory(k.block_scratch_forward(shape)));
  return out;
}

// ---- a 2x2 max pool alone

struct PoolNode final : KernelNode {
  Kept x;

  std::string name() const override { return "SimicPool"; }

  void release_variables() override { x.release(); }

  variable_list apply(variable_list&& grads) override {
    forbid_second_derivative();
    variable_list out(1);
    if (!grads[0].defined() || !task_should_compute_output(0)) return out;
    const Tensor image = channels_innermost(x.get()), grad = channels_innermost(grads[0]);
    out[0] = needed(0, image);
    kernels().pool(pool_shape(image), read(image), read(grad), write(out[0]));
    return out;
  }

  static ConvShape pool_shape(const Tensor& x) { return {x.size(0), x.size(2), x.size(3), x.size(1), x.size(1), 1, false}; }
};

Tensor max_pool(const Tensor& x) {
  check_images(x, "a pool");
  const Tensor image = channels_innermost(x);
  Tensor out = new_image(x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2);
  kernels().pool(PoolNode::pool_shape(image), read(image), nullptr, write(out));
  if (is_recorded(x)) attach(out, new PoolNode(), x)->x = Kept(x);
  return out;
}

}  // namespace
