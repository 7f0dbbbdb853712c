// Tensors and nodes of the graph as the operators on the engine's kernels need them: f32 on CPU, images channels-last,
// copied only where they are not.

#include <ATen/EmptyTensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "arithmetic/table.hpp"

namespace {

using simic::ConvShape;
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

// A channels-last tensor, also where sizes of 1 would suggest another layout.
Tensor new_image(int64_t n, int64_t c, int64_t h, int64_t w) { return new_tensor({n, c, h, w}, {h * w * c, 1, w * c, c}); }

Tensor new_image_like(const Tensor& x) { return new_image(x.size(0), x.size(1), x.size(2), x.size(3)); }

Tensor new_numbers(int64_t count) { return new_tensor({count}, {1}); }

// Room for the gradient of a parameter, in its own layout, so that autograd takes it over without a copy.
Tensor new_grad(const Tensor& param) { return new_tensor(param.sizes(), param.strides()); }

const float* read(const Tensor& t) { return t.const_data_ptr<float>(); }
float* write(const Tensor& t) { return t.mutable_data_ptr<float>(); }

// Weights with their channels innermost as the convolution of `shape` reads them, or that of its gradient backwards.
const float* packed_weight(const ConvShape& shape, const Tensor& weight, bool backwards) {
  const auto& k = kernels();
  float* packed = weight_memory(k.conv_packed_floats(shape, backwards));
  k.conv_pack(shape, read(weight), backwards, packed);
  return packed;
}

// The same of tensors that need not be there.
const float* read_if_any(const Tensor& t) { return t.defined() ? read(t) : nullptr; }
float* write_if_any(const Tensor& t) { return t.defined() ? write(t) : nullptr; }

bool is_served(const Tensor& t) { return t.defined() && t.device().is_cpu() && t.scalar_type() == at::kFloat; }

// Kernels divide by positions and by channels; a batch may be empty.
void check_images(const Tensor& x, const char* what) {
  TORCH_CHECK(is_served(x) && x.dim() == 4, what, " takes images of four dimensions, f32 on CPU, not ", x.sizes());
  TORCH_CHECK(x.size(1) > 0 && x.size(2) > 0 && x.size(3) > 0, what, " takes images with channels and positions, not ", x.sizes());
}

void check_weights(const Tensor& w, int64_t dimensions, const char* what) {
  TORCH_CHECK(is_served(w) && w.dim() == dimensions && w.numel() > 0, what, " takes weights of ", dimensions,
              " dimensions, none of them 0, f32 on CPU, not ", w.sizes());
}

ConvShape conv_shape(const Tensor& x, const Tensor& weight) {
  check_images(x, "a convolution");
  check_weights(weight, 4, "a convolution");
  const bool depthwise = weight.size(1) == 1 && weight.size(0) == x.size(1) && x.size(1) > 1;
  TORCH_CHECK(depthwise || weight.size(1) == x.size(1), "images of ", x.size(1), " channels do not fit weights of ", weight.sizes());
  TORCH_CHECK(weight.size(2) == weight.size(3) && weight.size(2) % 2 == 1, "kernels must be odd squares, not ", weight.sizes());
  TORCH_CHECK(depthwise || weight.size(2) <= 3, "dense kernels must be 1 or 3 wide, not as in ", weight.sizes());
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
    TORCH_CHECK(tensor.defined(), "a backward pass can go through a graph only once");
    TORCH_CHECK(tensor.unsafeGetTensorImpl()->version_counter().current_version() == version,
                "a tensor was changed in place before the backward pass that needs it");
    return tensor;
  }
  void release() { tensor.reset(); }
};

// Returns whether no one else sees the values: there is no other handle, and no view of them that is still in use.
bool is_unshared(const Tensor& t) { return t.use_count() == 1 && t.has_storage() && t.storage().use_count() == 1; }

struct KernelNode : Node {
  variable_list apply(variable_list&& grads) override = 0;

  // Computations on the way back have no graph of their own.
  static void forbid_second_derivative() {
    TORCH_CHECK(!at::GradMode::is_enabled(), "the engine's kernels have no second derivative");
  }

  Tensor needed(size_t input, const Tensor& like) const {
    return task_should_compute_output(input) ? new_image_like(like) : Tensor();
  }
};

}  // namespace
