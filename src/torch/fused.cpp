// The kernels as operators of libtorch: tensors in, one tensor out, and one node of the graph where something is
// differentiated. f32 on CPU; images are channels-last, copied only where they are not.

#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/add.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "kernels/table.hpp"

namespace {

using simic::ConvShape;
using simic::Layer;
using simic::packed_channels;
using torch::autograd::Node;
using torch::autograd::variable_list;

// ---- tensors as the kernels see them

// Scratch of this thread that stays for the next call.
float* kernel_memory(int64_t floats) {
  struct Memory {
    float* data = nullptr;
    int64_t size = 0;
    ~Memory() { std::free(data); }
  };
  thread_local Memory memory;
  if (memory.size < floats) {
    std::free(memory.data);
    memory.size = (floats + floats / 2 + 63) / 64 * 64;
    memory.data = static_cast<float*>(std::aligned_alloc(64, memory.size * sizeof(float)));
    if (memory.data == nullptr) {
      memory.size = 0;
      throw std::bad_alloc();
    }
  }
  return memory.data;
}

// Room for packed weights; not that of `kernel_memory`, which a kernel fills while it reads these.
float* weight_memory(int64_t floats) {
  thread_local std::vector<float> memory;
  if (static_cast<int64_t>(memory.size()) < floats) memory.resize(floats);
  return memory.data();
}

// Channels innermost; undefined stays undefined. (One channel or one position: NCHW and NHWC coincide.)
Tensor channels_innermost(const Tensor& t) {
  if (!t.defined() || t.is_contiguous(at::MemoryFormat::ChannelsLast)) return t;
  return t.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
}

// New tensors come from libtorch's allocator without the way through its dispatcher, which on small images costs as
// much as a kernel.
Tensor new_tensor(at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::detail::empty_strided_cpu(sizes, strides, at::kFloat);
}

// A channels-last tensor, whatever its sizes of 1 would suggest.
Tensor new_image(int64_t n, int64_t c, int64_t h, int64_t w) { return new_tensor({n, c, h, w}, {h * w * c, 1, w * c, c}); }

Tensor new_image_like(const Tensor& x) { return new_image(x.size(0), x.size(1), x.size(2), x.size(3)); }

Tensor new_numbers(int64_t count) { return new_tensor({count}, {1}); }

// Where the gradient of a parameter goes: in its own layout, so that autograd takes it over as it is.
Tensor new_grad(const Tensor& param) { return new_tensor(param.sizes(), param.strides()); }

const float* read(const Tensor& t) { return t.const_data_ptr<float>(); }
float* write(const Tensor& t) { return t.mutable_data_ptr<float>(); }

// The same of tensors that need not be there.
const float* read_if_any(const Tensor& t) { return t.defined() ? read(t) : nullptr; }
float* write_if_any(const Tensor& t) { return t.defined() ? write(t) : nullptr; }

bool is_served(const Tensor& t) { return t.device().is_cpu() && t.scalar_type() == at::kFloat; }

ConvShape conv_shape(const Tensor& x, const Tensor& weight) {
  TORCH_CHECK(x.dim() == 4 && weight.dim() == 4 && is_served(x) && is_served(weight),
              "a convolution takes images and weights of four dimensions, f32 on CPU, not ", x.sizes(), " and ", weight.sizes());
  const bool depthwise = weight.size(1) == 1 && weight.size(0) == x.size(1) && x.size(1) > 1;
  TORCH_CHECK(depthwise || weight.size(1) == x.size(1), "images of ", x.size(1), " channels do not fit weights of ", weight.sizes());
  TORCH_CHECK(weight.size(2) == weight.size(3) && weight.size(2) % 2 == 1, "kernels are odd squares, not ", weight.sizes());
  TORCH_CHECK(depthwise || weight.size(2) <= 3, "dense kernels are 1 or 3 wide here, not as in ", weight.sizes());
  return {x.size(0), x.size(2), x.size(3), x.size(1), weight.size(0), weight.size(2), depthwise};
}

void check_numbers(const Tensor& t, int64_t count, const char* what) {
  TORCH_CHECK(is_served(t) && t.numel() == count && t.is_contiguous(), what, " has ", t.numel(), " values; ", count, " are needed");
}

// ---- the graph

template <class... Inputs>
bool is_recorded(const Inputs&... inputs) {
  return at::GradMode::is_enabled() && (inputs.requires_grad() || ...);
}

// A node with what it needs of its operator, made where something is recorded.
template <class N, class... Inputs>
N* attach(Tensor& out, N* made, const Inputs&... inputs) {
  std::shared_ptr<N> node(made, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(inputs...));
  torch::autograd::set_history(out, node);
  return made;
}

// A tensor that the way back needs as it was.
class Kept {
  Tensor tensor;
  uint32_t version = 0;

 public:
  Kept() = default;
  explicit Kept(const Tensor& t) : tensor(t), version(t.unsafeGetTensorImpl()->version_counter().current_version()) {}

  const Tensor& get() const {
    TORCH_CHECK(tensor.defined(), "a backward pass goes through a graph once");
    TORCH_CHECK(tensor.unsafeGetTensorImpl()->version_counter().current_version() == version,
                "a tensor was changed in place before the backward pass that needs it");
    return tensor;
  }
  void release() { tensor.reset(); }
};

// Whether nobody else sees the values: no other handle, and no view of them that is still on its way.
bool is_unshared(const Tensor& t) { return t.use_count() == 1 && t.has_storage() && t.storage().use_count() == 1; }

struct KernelNode : Node {
  variable_list apply(variable_list&& grads) override = 0;

  // What is computed on the way back has no graph of its own.
  static void forbid_second_derivative() {
    TORCH_CHECK(!at::GradMode::is_enabled(), "the engine's kernels have no second derivative");
  }

  Tensor needed(size_t input, const Tensor& like) const {
    return task_should_compute_output(input) ? new_image_like(like) : Tensor();
  }
};

// ---- blocks: convolution, batch norm, ReLU; a residual in front of the ReLU or a 2x2 max pool behind it

struct BlockNode final : KernelNode {
  ConvShape shape;
  // `residual`: of blocks with `adds`.
  Kept x, weight, residual;
  bool adds;
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
    // What passes the ReLU is the residual's gradient, in the place of the block's own where nobody else sees that.
    const Tensor passed = !adds ? Tensor() : is_ours ? grad : new_image_like(grad);
    const auto& k = kernels();
    const int64_t stride = packed_channels(shape.outputs);
    const float* number = read(numbers);
    out[0] = needed(0, image);
    if (task_should_compute_output(1)) out[1] = new_grad(w);
    out[2] = new_numbers(shape.outputs);
    out[3] = new_numbers(shape.outputs);
    float* backwards = nullptr;
    if (out[0].defined()) {
      backwards = weight_memory(k.block_packed_floats(shape, true));
      k.block_pack(shape, read(w), true, backwards);
    }
    k.block_backward(shape, read(image), read(z), read_if_any(chosen), read_if_any(added), read(grad), number, number + stride,
                     number + 2 * stride, number + 3 * stride, backwards, write_if_any(out[0]), write_if_any(out[1]),
                     write(out[2]), write(out[3]), write_if_any(passed), kernel_memory(k.block_scratch_backward(shape)));
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
  TORCH_CHECK(!shape.depthwise, "a block's convolution is dense; weights ", weight.sizes(), " are not");
  return shape;
}

int64_t halved(int64_t side, bool pooled) { return pooled ? side / 2 : side; }

void check_residual(const Tensor& residual, const ConvShape& shape, bool pooled) {
  if (!residual.defined()) return;
  TORCH_CHECK(!pooled, "a block with a residual has no pool");
  TORCH_CHECK(is_served(residual) && residual.sizes() == at::IntArrayRef({shape.batch, shape.outputs, shape.height, shape.width}),
              "a residual ", residual.sizes(), " does not fit a block's ", shape.batch, " images of ", shape.outputs, " channels, ",
              shape.height, "x", shape.width);
}

// `residual`: undefined without one.
Tensor block(const Tensor& x, const Tensor& weight, const Tensor& gamma, const Tensor& beta, const Tensor& running_mean,
             const Tensor& running_variance, double momentum, double epsilon, bool pooled, const Tensor& residual) {
  const ConvShape shape = dense_shape(x, weight);
  check_residual(residual, shape, pooled);
  const int64_t channels = shape.outputs, stride = packed_channels(channels);
  for (const Tensor* t : {&gamma, &beta, &running_mean, &running_variance}) check_numbers(*t, channels, "a batch norm's tensor");
  const Tensor image = channels_innermost(x), w = channels_innermost(weight);
  const auto& k = kernels();
  float* packed = weight_memory(k.block_packed_floats(shape, false));
  k.block_pack(shape, read(w), false, packed);
  const Tensor z = new_image(shape.batch, channels, shape.height, shape.width);
  std::vector<double> statistics(2 * channels);
  double *mean = statistics.data(), *variance = mean + channels;
  float* memory = kernel_memory(k.block_scratch_forward(shape));
  k.block_forward(shape, read(image), packed, write(z), mean, variance, memory);
  follow(running_mean, running_variance, mean, variance, channels, static_cast<double>(shape.batch * shape.positions()), momentum);

  const Tensor numbers = new_numbers(4 * stride);
  float *scale = write(numbers), *shift = scale + stride, *means = shift + stride, *inverses = means + stride;
  const float *of_gamma = read(gamma), *of_beta = read(beta);
  std::memset(scale, 0, 4 * stride * sizeof(float));
  for (int64_t c = 0; c < channels; ++c) {
    const double inverse = 1 / std::sqrt(variance[c] + epsilon), gain = of_gamma[c] * inverse;
    scale[c] = static_cast<float>(gain);
    shift[c] = static_cast<float>(of_beta[c] - mean[c] * gain);
    means[c] = static_cast<float>(mean[c]);
    inverses[c] = static_cast<float>(inverse);
  }
  Tensor out = new_image(shape.batch, channels, halved(shape.height, pooled), halved(shape.width, pooled));
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

Tensor folded_block(const Tensor& x, const Tensor& packed, const Tensor& bias, int64_t outputs, int64_t kernel, bool pooled,
                    const Tensor& residual) {
  TORCH_CHECK(x.dim() == 4 && is_served(x), "a block takes f32 images on CPU");
  const ConvShape shape = {x.size(0), x.size(2), x.size(3), x.size(1), outputs, kernel, false};
  check_numbers(packed, kernels().block_folded_floats(shape), "a block's packed weight");
  check_numbers(bias, packed_channels(outputs), "a block's packed bias");
  check_residual(residual, shape, pooled);
  const Tensor image = channels_innermost(x), added = channels_innermost(residual);
  Tensor out = new_image(shape.batch, outputs, halved(shape.height, pooled), halved(shape.width, pooled));
  const auto& k = kernels();
  k.block_folded(shape, read(image), read(packed), read(bias), pooled, read_if_any(added), write(out),
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
  TORCH_CHECK(x.dim() == 4 && is_served(x), "a pool takes f32 images on CPU");
  const Tensor image = channels_innermost(x);
  Tensor out = new_image(x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2);
  kernels().pool(PoolNode::pool_shape(image), read(image), nullptr, write(out));
  if (is_recorded(x)) attach(out, new PoolNode(), x)->x = Kept(x);
  return out;
}

// ---- heads: mean over positions, linear map

struct HeadNode final : KernelNode {
  ConvShape shape;
  Kept weight;
  Tensor means;

  std::string name() const override { return "SimicHead"; }

  void release_variables() override {
    weight.release();
    means.reset();
  }

  variable_list apply(variable_list&& grads) override {
    forbid_second_derivative();
    variable_list out(3);
    if (!grads[0].defined()) return out;
    const Tensor grad = grads[0].contiguous(), w = weight.get().contiguous();
    if (task_should_compute_output(0)) out[0] = new_image(shape.batch, shape.inputs, shape.height, shape.width);
    out[1] = new_grad(w);
    out[2] = new_numbers(shape.outputs);
    const auto& k = kernels();
    k.head_backward(shape, read(means), read(w), read(grad), write_if_any(out[0]), write(out[1]), write(out[2]),
                    kernel_memory(k.head_scratch(shape)));
    return out;
  }
};

Tensor head(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  TORCH_CHECK(x.dim() == 4 && weight.dim() == 2 && is_served(x) && is_served(weight) && x.size(1) == weight.size(1),
              "a head over images ", x.sizes(), " cannot have weights ", weight.sizes());
  const ConvShape shape = {x.size(0), x.size(2), x.size(3), x.size(1), weight.size(0), 1, false};
  check_numbers(bias, shape.outputs, "a head's bias");
  const Tensor image = channels_innermost(x), w = weight.contiguous();
  const Tensor means = new_tensor({shape.batch, shape.inputs}, {shape.inputs, 1});
  Tensor logits = new_tensor({shape.batch, shape.outputs}, {shape.outputs, 1});
  const auto& k = kernels();
  k.head_forward(shape, read(image), read(w), read(bias), write(means), write(logits), kernel_memory(k.head_scratch(shape)));
  if (is_recorded(x, weight, bias)) {
    auto* node = attach(logits, new HeadNode(), x, weight, bias);
    node->shape = shape;
    node->weight = Kept(weight);
    node->means = means;
  }
  return logits;
}

// ---- layers of seeds: convolution, SiLU, group norm, SiLU

// How a layer's result y enters features h.
struct Onto {
  // h, or undefined: the result is y.
  Tensor features;
  float alpha = 1;
  // The result is h itself, of which y takes the gradient as well; else it is h + alpha·y.
  bool straight_through = false;
};

struct LayerNode final : KernelNode {
  Layer layer;
  Kept x, weight, gamma, beta;
  Tensor z, means, inverses;
  float alpha;
  // The features that y enters are x.
  bool enters_x;

  std::string name() const override { return "SimicLayer"; }

  void release_variables() override {
    for (Kept* saved : {&x, &weight, &gamma, &beta}) saved->release();
    for (Tensor* kept : {&z, &means, &inverses}) kept->reset();
  }

  // Of x, the weight, γ, β and the features that y enters, where these are not x.
  variable_list apply(variable_list&& grads) override {
    forbid_second_derivative();
    variable_list out(5);
    if (!grads[0].defined()) return out;
    const ConvShape& shape = layer.conv;
    const Tensor image = channels_innermost(x.get()), w = channels_innermost(weight.get());
    const bool is_ours = is_unshared(grads[0]);
    const Tensor grad = channels_innermost(grads[0]);
    const auto& k = kernels();
    if (task_should_compute_output(0)) out[0] = enters_x && is_ours ? grad : new_image_like(image);
    out[1] = new_grad(w);
    float* backwards = nullptr;
    if (out[0].defined()) {
      backwards = weight_memory(k.layer_packed_floats(shape, true));
      k.layer_pack(shape, read(w), true, backwards);
    }
    const Tensor scale = layer.norm ? gamma.get() : Tensor(), shift = layer.norm ? beta.get() : Tensor();
    if (layer.norm) {
      out[2] = new_numbers(shape.outputs);
      out[3] = new_numbers(shape.outputs);
    }
    k.layer_backward(layer, read(image), read_if_any(z), read_if_any(means), read_if_any(inverses), read_if_any(scale),
                     read_if_any(shift), read(grad), alpha, enters_x, backwards, write_if_any(out[0]), write(out[1]), write_if_any(out[2]), write_if_any(out[3]),
                     kernel_memory(k.layer_scratch_backward(layer)));
    if (task_should_compute_output(4)) out[4] = std::move(grads[0]);
    return out;
  }
};

// gamma and beta: undefined without a norm.
Tensor layer(const Tensor& x, const Tensor& weight, const Tensor& gamma, const Tensor& beta, int64_t groups, double epsilon,
             bool silu_before, bool silu_after, const Onto& onto) {
  const bool norm = gamma.defined();
  const Layer layer = {conv_shape(x, weight), silu_before, norm, silu_after && norm, norm ? groups : 1, epsilon};
  const ConvShape& shape = layer.conv;
  if (norm) {
    TORCH_CHECK(groups > 0 && shape.outputs % groups == 0, shape.outputs, " channels cannot be normalised in ", groups, " groups");
    check_numbers(gamma, shape.outputs, "a norm's scale");
    check_numbers(beta, shape.outputs, "a norm's shift");
  }
  const Tensor& features = onto.features;
  if (features.defined()) {
    const at::IntArrayRef sizes = features.sizes();
    TORCH_CHECK(is_served(features) && sizes == at::IntArrayRef({shape.batch, shape.outputs, shape.height, shape.width}),
                "a layer's result of ", shape.outputs, " channels for images ", x.sizes(), " does not enter features ", sizes);
  }
  const bool recorded = is_recorded(x, weight, gamma, beta, features);
  if (onto.straight_through && !recorded) return features.detach();
  const Tensor image = channels_innermost(x), w = channels_innermost(weight);
  const bool plain = !norm && !silu_before;
  const auto& k = kernels();
  float* packed = weight_memory(k.layer_packed_floats(shape, false));
  k.layer_pack(shape, read(w), false, packed);
  const auto new_result = [&] { return new_image(shape.batch, shape.outputs, shape.height, shape.width); };
  Tensor out, z, means, inverses;
  if (!onto.straight_through) out = new_result();
  if (recorded && !plain) z = new_result();
  if (recorded && norm) {
    means = new_numbers(shape.batch * groups);
    inverses = new_numbers(shape.batch * groups);
  }
  if (out.defined() || z.defined()) {
    const Tensor added = onto.straight_through ? Tensor() : channels_innermost(features);
    k.layer_forward(layer, read(image), packed, read_if_any(gamma), read_if_any(beta), read_if_any(added), onto.alpha,
                    write_if_any(z), write_if_any(out), write_if_any(means), write_if_any(inverses),
                    kernel_memory(k.layer_scratch_forward(layer)));
  }
  if (onto.straight_through) out = features.detach();
  if (recorded) {
    const bool enters_x = features.is_same(x);
    auto* node = attach(out, new LayerNode(), x, weight, gamma, beta, enters_x ? Tensor() : features);
    node->layer = layer;
    node->x = Kept(x);
    node->weight = Kept(weight);
    if (norm) {
      node->gamma = Kept(gamma);
      node->beta = Kept(beta);
    }
    node->z = z;
    node->means = means;
    node->inverses = inverses;
    node->alpha = onto.alpha;
    node->enters_x = enters_x;
  }
  return out;
}

// ---- a norm alone: tanh(strength)·(norm(x) - x)

struct NormNode final : KernelNode {
  Layer layer;
  Kept x, gamma, beta;
  Tensor means, inverses;
  float factor;

  std::string name() const override { return "SimicNorm"; }

  void release_variables() override {
    for (Kept* saved : {&x, &gamma, &beta}) saved->release();
    means.reset();
    inverses.reset();
  }

  variable_list apply(variable_list&& grads) override {
    forbid_second_derivative();
    variable_list out(4);
    if (!grads[0].defined()) return out;
    const Tensor image = channels_innermost(x.get()), grad = channels_innermost(grads[0]);
    const Tensor scale = gamma.get(), shift = beta.get();
    out[0] = needed(0, image);
    out[1] = new_numbers(layer.conv.outputs);
    out[2] = new_numbers(layer.conv.outputs);
    out[3] = new_numbers(1);
    const auto& k = kernels();
    k.norm_backward(layer, read(image), read(means), read(inverses), read(scale), read(shift), factor, read(grad),
                    write_if_any(out[0]), write(out[1]), write(out[2]), write(out[3]), kernel_memory(k.norm_scratch(layer)));
    *write(out[3]) *= 1 - factor * factor;
    return out;
  }
};

Tensor norm_residual(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& strength, int64_t groups, double epsilon) {
  TORCH_CHECK(x.dim() == 4 && is_served(x), "a norm takes f32 images on CPU");
  const int64_t channels = x.size(1);
  TORCH_CHECK(groups > 0 && channels % groups == 0, channels, " channels cannot be normalised in ", groups, " groups");
  check_numbers(gamma, channels, "a norm's scale");
  check_numbers(beta, channels, "a norm's shift");
  check_numbers(strength, 1, "a norm's strength");
  const Tensor image = channels_innermost(x);
  const Layer layer = {{x.size(0), x.size(2), x.size(3), channels, channels, 1, false}, false, true, false, groups, epsilon};
  const Tensor means = new_numbers(x.size(0) * groups), inverses = new_numbers(x.size(0) * groups);
  Tensor out = new_image(x.size(0), channels, x.size(2), x.size(3));
  const float factor = std::tanh(*read(strength));
  const auto& k = kernels();
  k.norm_forward(layer, read(image), read(gamma), read(beta), factor, write(out), write(means), write(inverses),
                 kernel_memory(k.norm_scratch(layer)));
  if (is_recorded(x, gamma, beta, strength)) {
    auto* node = attach(out, new NormNode(), x, gamma, beta, strength);
    node->layer = layer;
    node->x = Kept(x);
    node->gamma = Kept(gamma);
    node->beta = Kept(beta);
    node->means = means;
    node->inverses = inverses;
    node->factor = factor;
  }
  return out;
}

// ---- squeeze and excitation

struct ExciteNode final : KernelNode {
  ConvShape shape;
  Kept x, squeeze, excite;
  Tensor means, hidden, gates;

  std::string name() const override { return "SimicExcite"; }

  void release_variables() override {
    for (Kept* saved : {&x, &squeeze, &excite}) saved->release();
    for (Tensor* kept : {&means, &hidden, &gates}) kept->reset();
  }

  variable_list apply(variable_list&& grads) override {
    forbid_second_derivative();
    variable_list out(4);
    if (!grads[0].defined()) return out;
    const Tensor image = channels_innermost(x.get()), grad = channels_innermost(grads[0]);
    const Tensor in = squeeze.get().contiguous(), back = excite.get().contiguous();
    out[0] = needed(0, image);
    out[1] = new_grad(in);
    out[2] = new_grad(back);
    out[3] = new_numbers(shape.inputs);
    const auto& k = kernels();
    k.excite_backward(shape, read(image), read(in), read(back), read(means), read(hidden), read(gates), read(grad),
                      write_if_any(out[0]), write(out[1]), write(out[2]), write(out[3]), kernel_memory(k.excite_scratch(shape)));
    return out;
  }
};

Tensor squeeze_excite(const Tensor& x, const Tensor& squeeze, const Tensor& excite, const Tensor& bias) {
  TORCH_CHECK(x.dim() == 4 && is_served(x) && squeeze.dim() == 2 && excite.dim() == 2 && is_served(squeeze) && is_served(excite) &&
                  squeeze.size(1) == x.size(1) && excite.size(0) == x.size(1) && excite.size(1) == squeeze.size(0),
              "weights ", squeeze.sizes(), " and ", excite.sizes(), " cannot gate images ", x.sizes());
  const ConvShape shape = {x.size(0), x.size(2), x.size(3), x.size(1), squeeze.size(0), 1, false};
  check_numbers(bias, shape.inputs, "a gate's bias");
  const Tensor image = channels_innermost(x), in = squeeze.contiguous(), back = excite.contiguous();
  const Tensor means = new_numbers(shape.batch * shape.inputs), gates = new_numbers(shape.batch * shape.inputs);
  const Tensor hidden = new_numbers(shape.batch * shape.outputs);
  Tensor out = new_image(shape.batch, shape.inputs, shape.height, shape.width);
  const auto& k = kernels();
  k.excite_forward(shape, read(image), read(in), read(back), read(bias), write(means), write(hidden), write(gates), write(out),
                   kernel_memory(k.excite_scratch(shape)));
  if (is_recorded(x, squeeze, excite, bias)) {
    auto* node = attach(out, new ExciteNode(), x, squeeze, excite, bias);
    node->shape = shape;
    node->x = Kept(x);
    node->squeeze = Kept(squeeze);
    node->excite = Kept(excite);
    node->means = means;
    node->hidden = hidden;
    node->gates = gates;
  }
  return out;
}

// ---- incubation: the features, of which the residual takes the gradient as well

// No `KernelNode`: the residual may be of another type than the features, and what walks the graph converts gradients.
struct IncubateNode final : Node {
  std::string name() const override { return "SimicIncubate"; }

  variable_list apply(variable_list&& grads) override { return {grads[0], grads[0]}; }
};

// On any device: nothing is computed. The result shares the storage of `h`.
Tensor incubate(const Tensor& h, const Tensor& delta) {
  Tensor out = h.detach();
  if (is_recorded(h, delta)) attach(out, new IncubateNode(), h, delta);
  return out;
}

Tensor optional(const Tensor* t) { return t == nullptr ? Tensor() : *t; }

template <class F>
char* operator_call(Tensor** out, F&& body) {
  return guarded([&] { *out = new Tensor(body()); });
}

}  // namespace

extern "C" {

// Whether the kernels serve `x`: f32 on CPU. Under autocast libtorch decides in which type to compute.
bool simic_is_served(const Tensor* x) { return is_served(*x) && !at::autocast::is_autocast_enabled(at::kCPU); }

// `residual` is null where nothing is added in front of the ReLU.
char* simic_block(const Tensor* x, const Tensor* weight, const Tensor* gamma, const Tensor* beta, const Tensor* running_mean,
                  const Tensor* running_variance, double momentum, double epsilon, bool pooled, const Tensor* residual,
                  Tensor** out) {
  return operator_call(out, [&] {
    return block(*x, *weight, *gamma, *beta, *running_mean, *running_variance, momentum, epsilon, pooled, optional(residual));
  });
}

char* simic_folded_block(const Tensor* x, const Tensor* packed, const Tensor* bias, int64_t outputs, int64_t kernel,
                         bool pooled, const Tensor* residual, Tensor** out) {
  return operator_call(out, [&] { return folded_block(*x, *packed, *bias, outputs, kernel, pooled, optional(residual)); });
}

// Elements of a folded block's weight and bias.
void simic_folded_sizes(int64_t inputs, int64_t outputs, int64_t kernel, int64_t* weights, int64_t* biases) {
  *weights = kernels().block_folded_floats({1, 1, 1, inputs, outputs, kernel, false});
  *biases = packed_channels(outputs);
}

char* simic_fold_block(const Tensor* weight, const Tensor* gamma, const Tensor* beta, const Tensor* mean,
                       const Tensor* variance, double epsilon, Tensor* packed, Tensor* bias) {
  return guarded([&] {
    const int64_t outputs = weight->size(0);
    const ConvShape shape = {1, 1, 1, weight->size(1), outputs, weight->size(2), false};
    for (const Tensor* t : {gamma, beta, mean, variance}) check_numbers(*t, outputs, "a batch norm's tensor");
    check_numbers(*packed, kernels().block_folded_floats(shape), "a block's packed weight");
    check_numbers(*bias, packed_channels(outputs), "a block's packed bias");
    const Tensor w = channels_innermost(*weight);
    kernels().block_fold(shape, read(w), read(*gamma), read(*beta), read(*mean), read(*variance), epsilon, write(*packed), write(*bias));
  });
}

char* simic_max_pool(const Tensor* x, Tensor** out) {
  return operator_call(out, [&] { return max_pool(*x); });
}

char* simic_head(const Tensor* x, const Tensor* weight, const Tensor* bias, Tensor** out) {
  return operator_call(out, [&] { return head(*x, *weight, *bias); });
}

// gamma and beta are null without a norm, `features` where the result is the layer's alone.
char* simic_layer(const Tensor* x, const Tensor* weight, const Tensor* gamma, const Tensor* beta, int64_t groups,
                  double epsilon, bool silu_before, bool silu_after, const Tensor* features, double alpha,
                  bool straight_through, Tensor** out) {
  return operator_call(out, [&] {
    const Onto onto = {optional(features), static_cast<float>(alpha), straight_through};
    return layer(*x, *weight, optional(gamma), optional(beta), groups, epsilon, silu_before, silu_after, onto);
  });
}

char* simic_norm_residual(const Tensor* x, const Tensor* gamma, const Tensor* beta, const Tensor* strength, int64_t groups,
                          double epsilon, Tensor** out) {
  return operator_call(out, [&] { return norm_residual(*x, *gamma, *beta, *strength, groups, epsilon); });
}

char* simic_squeeze_excite(const Tensor* x, const Tensor* squeeze, const Tensor* excite, const Tensor* bias, Tensor** out) {
  return operator_call(out, [&] { return squeeze_excite(*x, *squeeze, *excite, *bias); });
}

char* simic_incubate(const Tensor* h, const Tensor* delta, Tensor** out) {
  return operator_call(out, [&] { return incubate(*h, *delta); });
}

// h + alpha·delta.
char* simic_add_scaled(const Tensor* h, const Tensor* delta, double alpha, Tensor** out) {
  return operator_call(out, [&] { return at::add(*h, *delta, alpha); });
}

char* simic_add_scaled_into(Tensor* out, const Tensor* h, const Tensor* delta, double alpha) {
  return guarded([&] { at::add_out(*out, *h, *delta, alpha); });
}

}  // extern "C"
