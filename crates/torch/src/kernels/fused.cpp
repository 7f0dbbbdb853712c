// The kernels as operators of libtorch: tensors in, one tensor out, and one node of the graph where something is
// differentiated. Blocks are in blocks.cpp; here are heads, what seeds are made of, and all that Rust calls.

#include <ATen/autocast_mode.h>
#include <ATen/ops/add.h>

namespace {

using simic::Layer;

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
  check_images(x, "a head");
  check_weights(weight, 2, "a head");
  TORCH_CHECK(x.size(1) == weight.size(1), "a head over images ", x.sizes(), " cannot have weights ", weight.sizes());
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

// The entry of a layer's result y into features h.
struct Onto {
  // h, or undefined: the result is y.
  Tensor features;
  float alpha = 1;
  // The result is h itself, and y takes its gradient as well; otherwise it is h + alpha·y.
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

  // The gradients of x, the weight, γ, β and the features that y enters, where these are not x.
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
    const float* backwards = out[0].defined() ? packed_weight(shape, w, true) : nullptr;
    const Tensor scale = layer.norm ? gamma.get() : Tensor(), shift = layer.norm ? beta.get() : Tensor();
    if (layer.norm) {
      out[2] = new_numbers(shape.outputs);
      out[3] = new_numbers(shape.outputs);
    }
    k.layer_backward(layer, read(image), read_if_any(z), read_if_any(means), read_if_any(inverses), read_if_any(scale),
                     read_if_any(shift), read(grad), alpha, enters_x, backwards, write_if_any(out[0]), write(out[1]),
                     write_if_any(out[2]), write_if_any(out[3]), kernel_memory(k.layer_scratch_backward(layer)));
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
  const float* packed = packed_weight(shape, w, false);
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
  float strength;

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
    k.norm_backward(layer, read(image), read(means), read(inverses), read(scale), read(shift), strength, read(grad),
                    write_if_any(out[0]), write(out[1]), write(out[2]), write(out[3]), kernel_memory(k.norm_scratch(layer)));
    return out;
  }
};

Tensor norm_residual(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& strength, int64_t groups, double epsilon) {
  check_images(x, "a norm");
  const int64_t channels = x.size(1);
  TORCH_CHECK(groups > 0 && channels % groups == 0, channels, " channels cannot be normalised in ", groups, " groups");
  check_numbers(gamma, channels, "a norm's scale");
  check_numbers(beta, channels, "a norm's shift");
  check_numbers(strength, 1, "a norm's strength");
  const Tensor image = channels_innermost(x);
  const Layer layer = {{x.size(0), x.size(2), x.size(3), channels, channels, 1, false}, false, true, false, groups, epsilon};
  const Tensor means = new_numbers(x.size(0) * groups), inverses = new_numbers(x.size(0) * groups);
  Tensor out = new_image(x.size(0), channels, x.size(2), x.size(3));
  const float value = *read(strength);
  const auto& k = kernels();
  k.norm_forward(layer, read(image), read(gamma), read(beta), value, write(out), write(means), write(inverses),
                 kernel_memory(k.norm_scratch(layer)));
  if (is_recorded(x, gamma, beta, strength)) {
    auto* node = attach(out, new NormNode(), x, gamma, beta, strength);
    node->layer = layer;
    node->x = Kept(x);
    node->gamma = Kept(gamma);
    node->beta = Kept(beta);
    node->means = means;
    node->inverses = inverses;
    node->strength = value;
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
  check_images(x, "a gate");
  for (const Tensor* w : {&squeeze, &excite}) check_weights(*w, 2, "a gate");
  TORCH_CHECK(squeeze.size(1) == x.size(1) && excite.size(0) == x.size(1) && excite.size(1) == squeeze.size(0),
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

// ---- incubation: the features; the residual takes their gradient as well

// No `KernelNode`: the type of the residual may differ from that of the features, and what walks the graph converts gradients.
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

// Returns whether the kernels serve `x`: f32 on CPU. Under autocast libtorch decides in which type to compute. Throws nothing.
bool simic_is_served(const Tensor* x) { return is_served(*x) && !at::autocast::is_autocast_enabled(at::kCPU); }

// `residual` is null where nothing is added in front of the ReLU.
char* simic_block(const Tensor* x, const Tensor* weight, const Tensor* gamma, const Tensor* beta, const Tensor* running_mean,
                  const Tensor* running_variance, double momentum, double epsilon, int64_t stride, bool pooled,
                  const Tensor* residual, Tensor** out) {
  return operator_call(out, [&] {
    return block(*x, *weight, *gamma, *beta, *running_mean, *running_variance, momentum, epsilon, stride, pooled,
                 optional(residual));
  });
}

char* simic_folded_block(const Tensor* x, const Tensor* weight, const Tensor* bias, bool pooled, const Tensor* residual,
                         Tensor** out) {
  return operator_call(out, [&] { return folded_block(*x, *weight, *bias, pooled, optional(residual)); });
}

// `folded`, like `weight`, has its channels innermost; `bias`: packed_channels entries.
char* simic_fold_block(const Tensor* weight, const Tensor* gamma, const Tensor* beta, const Tensor* mean,
                       const Tensor* variance, double epsilon, Tensor* folded, Tensor* bias) {
  return guarded([&] {
    const int64_t outputs = weight->size(0);
    const ConvShape shape = {1, 1, 1, weight->size(1), outputs, weight->size(2), false};
    for (const Tensor* t : {gamma, beta, mean, variance}) check_numbers(*t, outputs, "a batch norm's tensor");
    TORCH_CHECK(folded->sizes() == weight->sizes() && folded->is_contiguous(at::MemoryFormat::ChannelsLast),
                "weights ", weight->sizes(), " cannot be folded into ", folded->sizes());
    check_numbers(*bias, packed_channels(outputs), "a block's folded bias");
    const Tensor w = channels_innermost(*weight);
    kernels().block_fold(shape, read(w), read(*gamma), read(*beta), read(*mean), read(*variance), epsilon, write(*folded), write(*bias));
  });
}

char* simic_max_pool(const Tensor* x, Tensor** out) {
  return operator_call(out, [&] { return max_pool(*x); });
}

char* simic_head(const Tensor* x, const Tensor* weight, const Tensor* bias, Tensor** out) {
  return operator_call(out, [&] { return head(*x, *weight, *bias); });
}

// Throws nothing.
int64_t simic_tile_side(int64_t side, int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride) {
  return simic::tile_side({1, side, side, inputs, outputs, kernel, false, stride});
}

// gamma and beta are null without a norm, `features` where the result is the layer's alone.
char* simic_layer(const Tensor* x, const Tensor* weight, const Tensor* gamma, const Tensor* beta, int64_t groups,
                  double epsilon, bool silu_before, bool silu_after, const Tensor* features, double alpha,
                  bool straight_through, Tensor** out) {
  return operator_call(out, [&] {
    const Onto onto = {optional(features), features == nullptr ? 1 : static_cast<float>(alpha), straight_through};
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
