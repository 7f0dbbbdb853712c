// Convolutions with few channels on CPU: f32, channels-last, odd square kernel, stride 1, "same" padding, one group.
//
// libtorch hands these to oneDNN, whose fixed cost per call and channel padding exceed the arithmetic many times over on
// small images with 4, 8 or 16 channels. Here the output channels are one vector register, the image is walked as it
// lies in memory, and kernel columns and input channels are one contiguous run. One thread; sums run in a fixed order.

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstring>
#include <vector>

// One binary, vectors as wide as the machine has them.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_CPU
#endif
#define INLINE inline __attribute__((always_inline))

namespace {

using at::Tensor;

struct Shape {
  int64_t batch, height, width, inputs, outputs, kernel;

  int64_t pad() const { return kernel / 2; }
  int64_t padded_row() const { return (width + 2 * pad()) * inputs; }
  int64_t padded_image() const { return (height + 2 * pad()) * padded_row(); }
  int64_t weights() const { return kernel * kernel * inputs * outputs; }
  // Elements of one kernel row: columns and input channels, contiguous in a padded image.
  int64_t run() const { return kernel * inputs; }
};

template <int N>
struct Lanes {
  typedef float Vector __attribute__((vector_size(N * sizeof(float))));
  static INLINE Vector load(const float* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static INLINE void store(float* to, const Vector& v) { std::memcpy(to, &v, sizeof v); }
};

// Copies one image into the middle of `padded`, whose border is zero already.
INLINE void pad_image(const Shape& s, const float* image, float* padded) {
  const int64_t row = s.width * s.inputs;
  for (int64_t y = 0; y < s.height; ++y) {
    std::memcpy(padded + (y + s.pad()) * s.padded_row() + s.pad() * s.inputs, image + y * row, row * sizeof(float));
  }
}

// `Columns` neighbouring outputs of one row, all channels.
template <int Out, int Columns>
INLINE void outputs(const Shape& s, const float* padded, const float* weights, const float* bias, float* out) {
  using L = Lanes<Out>;
  typename L::Vector sums[Columns];
  for (int c = 0; c < Columns; ++c) sums[c] = bias == nullptr ? typename L::Vector{} : L::load(bias);
  for (int64_t dy = 0; dy < s.kernel; ++dy) {
    const float* line = padded + dy * s.padded_row();
    for (int64_t j = 0; j < s.run(); ++j, weights += Out) {
      const auto weight = L::load(weights);
      for (int c = 0; c < Columns; ++c) sums[c] += weight * line[c * s.inputs + j];
    }
  }
  for (int c = 0; c < Columns; ++c) L::store(out + c * Out, sums[c]);
}

template <int Out>
INLINE void convolve_images(const Shape& s, const float* x, const float* weights, const float* bias, float* padded,
                            float* out) {
  for (int64_t n = 0; n < s.batch; ++n) {
    pad_image(s, x + n * s.height * s.width * s.inputs, padded);
    for (int64_t y = 0; y < s.height; ++y) {
      const float* line = padded + y * s.padded_row();
      int64_t column = 0;
      for (; column + 8 <= s.width; column += 8, out += 8 * Out)
        outputs<Out, 8>(s, line + column * s.inputs, weights, bias, out);
      for (; column + 4 <= s.width; column += 4, out += 4 * Out)
        outputs<Out, 4>(s, line + column * s.inputs, weights, bias, out);
      for (; column < s.width; ++column, out += Out)
        outputs<Out, 1>(s, line + column * s.inputs, weights, bias, out);
    }
  }
}

// `Run` neighbouring elements of one kernel row, all output channels: their gradient from one image, added to `grad`.
template <int Out, int Run>
INLINE void weight_grads(const Shape& s, const float* padded, const float* out_grad, float* grad) {
  using L = Lanes<Out>;
  typename L::Vector sums[Run];
  for (int j = 0; j < Run; ++j) sums[j] = L::load(grad + j * Out);
  for (int64_t y = 0; y < s.height; ++y) {
    const float* line = padded + y * s.padded_row();
    for (int64_t column = 0; column < s.width; ++column, out_grad += Out, line += s.inputs) {
      const auto g = L::load(out_grad);
      for (int j = 0; j < Run; ++j) sums[j] += g * line[j];
    }
  }
  for (int j = 0; j < Run; ++j) L::store(grad + j * Out, sums[j]);
}

template <int Out>
INLINE void weight_grads_of_images(const Shape& s, const float* x, const float* out_grad, float* padded, float* grad) {
  for (int64_t n = 0; n < s.batch; ++n) {
    const int64_t positions = s.height * s.width;
    pad_image(s, x + n * positions * s.inputs, padded);
    const float* g = out_grad + n * positions * Out;
    float* to = grad;
    for (int64_t dy = 0; dy < s.kernel; ++dy) {
      const float* from = padded + dy * s.padded_row();
      int64_t j = 0;
      for (; j + 12 <= s.run(); j += 12, to += 12 * Out) weight_grads<Out, 12>(s, from + j, g, to);
      for (; j + 3 <= s.run(); j += 3, to += 3 * Out) weight_grads<Out, 3>(s, from + j, g, to);
      for (; j < s.run(); ++j, to += Out) weight_grads<Out, 1>(s, from + j, g, to);
    }
  }
}

bool is_supported_width(int64_t channels) { return channels == 4 || channels == 8 || channels == 16; }

FOR_EACH_CPU void convolve(const Shape& s, const float* x, const float* weights, const float* bias, float* padded,
                           float* out) {
  switch (s.outputs) {
    case 4: return convolve_images<4>(s, x, weights, bias, padded, out);
    case 8: return convolve_images<8>(s, x, weights, bias, padded, out);
    default: return convolve_images<16>(s, x, weights, bias, padded, out);
  }
}

FOR_EACH_CPU void add_weight_grads(const Shape& s, const float* x, const float* out_grad, float* padded, float* grad) {
  switch (s.outputs) {
    case 4: return weight_grads_of_images<4>(s, x, out_grad, padded, grad);
    case 8: return weight_grads_of_images<8>(s, x, out_grad, padded, grad);
    default: return weight_grads_of_images<16>(s, x, out_grad, padded, grad);
  }
}

Shape shape_of(const Tensor& x, const Tensor& weight) {
  return {x.size(0), x.size(2), x.size(3), x.size(1), weight.size(0), weight.size(2)};
}

// Channels innermost; a copy only where they are not. (One channel or one position: NCHW and NHWC coincide.)
Tensor channels_innermost(const Tensor& t) { return t.permute({0, 2, 3, 1}).contiguous(); }

// A channels-last [n, c, h, w] tensor, whatever its sizes of 1 would suggest.
Tensor new_image(const Tensor& like, int64_t n, int64_t c, int64_t h, int64_t w) {
  return at::empty({n, h, w, c}, like.options()).permute({0, 3, 1, 2});
}

// Scratch of this thread that stays for the next call.
float* scratch(int64_t size, int which) {
  thread_local std::vector<float> buffers[2];
  auto& buffer = buffers[which];
  if (static_cast<int64_t>(buffer.size()) < size) buffer.resize(size);
  return buffer.data();
}

float* zeroed(float* buffer, int64_t size) {
  std::memset(buffer, 0, size * sizeof(float));
  return buffer;
}

// Weights [outputs, inputs, k, k] in the kernels' order, k × k × inputs × outputs.
float* pack_weights(const Shape& s, const Tensor& weight) {
  float* packed = scratch(s.weights(), 0);
  const auto w = weight.accessor<float, 4>();
  float* to = packed;
  for (int64_t dy = 0; dy < s.kernel; ++dy)
    for (int64_t dx = 0; dx < s.kernel; ++dx)
      for (int64_t i = 0; i < s.inputs; ++i)
        for (int64_t o = 0; o < s.outputs; ++o) *to++ = w[o][i][dy][dx];
  return packed;
}

// The weights of the convolution that carries gradients back: turned by 180 degrees, channels exchanged.
float* pack_weights_backwards(const Shape& forward, const Tensor& weight) {
  float* packed = scratch(forward.weights(), 0);
  const auto w = weight.accessor<float, 4>();
  float* to = packed;
  for (int64_t dy = forward.kernel - 1; dy >= 0; --dy)
    for (int64_t dx = forward.kernel - 1; dx >= 0; --dx)
      for (int64_t o = 0; o < forward.outputs; ++o)
        for (int64_t i = 0; i < forward.inputs; ++i) *to++ = w[o][i][dy][dx];
  return packed;
}

Tensor forward(const Tensor& x, const Tensor& weight, const Tensor* bias) {
  const Shape s = shape_of(x, weight);
  const Tensor image = channels_innermost(x);
  Tensor out = new_image(x, s.batch, s.outputs, s.height, s.width);
  const float* weights = pack_weights(s, weight);
  float* padded = zeroed(scratch(s.padded_image(), 1), s.padded_image());
  convolve(s, image.const_data_ptr<float>(), weights, bias == nullptr ? nullptr : bias->const_data_ptr<float>(),
           padded, out.data_ptr<float>());
  return out;
}

Tensor input_grad(const Shape& s, const Tensor& grad, const Tensor& weight) {
  const Shape back = {s.batch, s.height, s.width, s.outputs, s.inputs, s.kernel};
  Tensor out = new_image(grad, s.batch, s.inputs, s.height, s.width);
  const float* weights = pack_weights_backwards(s, weight);
  float* padded = zeroed(scratch(back.padded_image(), 1), back.padded_image());
  convolve(back, grad.const_data_ptr<float>(), weights, nullptr, padded, out.data_ptr<float>());
  return out;
}

Tensor weight_grad(const Shape& s, const Tensor& x, const Tensor& grad, const Tensor& weight) {
  const Tensor image = channels_innermost(x);
  float* sums = zeroed(scratch(s.weights(), 0), s.weights());
  float* padded = zeroed(scratch(s.padded_image(), 1), s.padded_image());
  add_weight_grads(s, image.const_data_ptr<float>(), grad.const_data_ptr<float>(), padded, sums);
  // In the weight's own layout, which optimizers rely on.
  Tensor out = at::empty_strided(weight.sizes(), weight.strides(), weight.options());
  auto to = out.accessor<float, 4>();
  for (int64_t dy = 0; dy < s.kernel; ++dy)
    for (int64_t dx = 0; dx < s.kernel; ++dx)
      for (int64_t i = 0; i < s.inputs; ++i)
        for (int64_t o = 0; o < s.outputs; ++o) to[o][i][dy][dx] = *sums++;
  return out;
}

bool is_differentiable(const Tensor& x, const Tensor& weight, const Tensor* bias) {
  return at::GradMode::is_enabled() &&
         (x.requires_grad() || weight.requires_grad() || (bias != nullptr && bias->requires_grad()));
}

class NarrowConv : public torch::autograd::Function<NarrowConv> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& weight) {
    context->save_for_backward({x, weight});
    return ::forward(x, weight, nullptr);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    // What is computed here has no graph of its own.
    TORCH_CHECK(!at::GradMode::is_enabled(), "a narrow convolution has no second derivative");
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const Shape s = shape_of(x, weight);
    const Tensor grad = channels_innermost(grads[0]);
    torch::autograd::variable_list out(2);
    if (context->needs_input_grad(0)) out[0] = input_grad(s, grad, weight);
    if (context->needs_input_grad(1)) out[1] = weight_grad(s, x, grad, weight);
    return out;
  }
};

}  // namespace

extern "C" {

// Whether the kernels here serve the convolution of x with weight; the width of x matters only where a gradient reaches
// it, and no gradient reaches a bias. Under autocast libtorch decides.
char* simic_is_narrow_conv(const Tensor* x, const Tensor* weight, const Tensor* bias, bool* out) {
  return guarded([&] {
    *out = false;
    if (x->dim() != 4 || weight->dim() != 4 || at::autocast::is_autocast_enabled(at::kCPU)) return;
    for (const Tensor* tensor : {x, weight}) {
      if (!tensor->device().is_cpu() || tensor->scalar_type() != at::kFloat) return;
    }
    const bool needs_input_grad = at::GradMode::is_enabled() && x->requires_grad();
    *out = x->size(1) == weight->size(1) && is_supported_width(weight->size(0)) &&
           (!needs_input_grad || is_supported_width(weight->size(1))) &&
           (bias == nullptr || !is_differentiable(*x, *weight, bias));
  });
}

// x: f32 [n, inputs, h, w] on CPU; weight: f32 [outputs, inputs, k, k]; bias: null or f32 [outputs], where nothing is
// differentiated.
char* simic_narrow_conv(const Tensor* x, const Tensor* weight, const Tensor* bias, Tensor** out) {
  return guarded([&] {
    const bool differentiable = is_differentiable(*x, *weight, bias);
    TORCH_CHECK(bias == nullptr || !differentiable, "a narrow convolution gives its bias no gradient");
    *out = new Tensor(differentiable ? NarrowConv::apply(*x, *weight) : forward(*x, *weight, bias));
  });
}

}  // extern "C"
