// Additions to tch, as plain C functions over libtorch's device-generic headers.
//
// Conventions: tensors come as `at::Tensor*`, the pointers that tch holds; every function returns null or an error text
// that the caller frees with simic_free_error; nothing here reads a CUDA tensor's value. Lists of parameters go through
// one call each, because on small networks the dispatch of many small operators costs more than their arithmetic.

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/SmallVector.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

using at::Tensor;
// Hosts and seeds of the image tasks have fewer parameters than this: their lists live on the stack.
using Tensors = c10::SmallVector<Tensor, 64>;

// The text of an error when there is no memory to copy its own; never freed.
char no_memory_for_text[] = "bad_alloc: no memory is left to say what went wrong";

char* copy_of(const char* text) {
  char* copy = strdup(text);
  return copy != nullptr ? copy : no_memory_for_text;
}

template <typename F>
char* guarded(F&& body) {
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    return copy_of(error.what());
  } catch (...) {
    return copy_of("unknown C++ exception");
  }
}

bool same_layout(const Tensor& a, const Tensor& b) {
  const auto sizes = a.sizes();
  if (sizes != b.sizes()) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

// True where the elements can be walked as one flat array of f32.
bool is_flat_cpu_f32(const Tensor& t) {
  return t.device().is_cpu() && t.scalar_type() == at::kFloat && t.is_non_overlapping_and_dense();
}

Tensors list_of(Tensor* const* tensors, size_t n) {
  Tensors list;
  for (size_t i = 0; i < n; ++i) list.push_back(*tensors[i]);
  return list;
}

// All elements in one vector, tensor by tensor in row order.
Tensor flattened(const Tensors& tensors) {
  Tensors flat;
  for (const Tensor& t : tensors) flat.push_back(t.flatten());
  return at::cat(flat);
}

bool is_finite(const Tensor& t) {
  const float* x = t.const_data_ptr<float>();
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (!std::isfinite(x[i])) return false;
  }
  return true;
}

bool all_flat_cpu_f32(const Tensors& tensors) {
  for (const Tensor& t : tensors) {
    if (!is_flat_cpu_f32(t)) return false;
  }
  return true;
}

void zero_tensors(const Tensors& tensors) {
  Tensors others;
  for (const Tensor& t : tensors) {
    if (t.device().is_cpu() && t.is_non_overlapping_and_dense()) {
      std::memset(t.data_ptr(), 0, t.nbytes());
      t.unsafeGetTensorImpl()->bump_version();
    } else {
      others.push_back(t);
    }
  }
  if (!others.empty()) at::_foreach_zero_(others);
}

c10::Stream unpack(int64_t id, int64_t index, int64_t type) {
  return c10::Stream::unpack3(id, static_cast<c10::DeviceIndex>(index), static_cast<c10::DeviceType>(type));
}

c10::impl::VirtualGuardImpl backend(int64_t type) {
  return c10::impl::VirtualGuardImpl(static_cast<c10::DeviceType>(type));
}

}  // namespace

extern "C" {

struct SimicStream {
  int64_t id;
  int64_t index;
  int64_t type;
};

void simic_free_error(char* error) {
  if (error != no_memory_for_text) std::free(error);
}

// Returns whether the first CUDA device computes bf16 rather than emulating it (compute capability 8.0 and up). libtorch
// looks for its CUDA part at the first such question and never again.
bool simic_cuda_computes_bf16() noexcept {
  try {
    const auto& hooks = at::detail::getCUDAHooks();
    return hooks.hasCUDA() && hooks.supportsBFloat16ConvolutionWithCuDNNv8();
  } catch (...) {
    return false;
  }
}

// ---- lists of tensors

char* simic_zero_all(Tensor* const* tensors, size_t n) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    zero_tensors(list_of(tensors, n));
  });
}

char* simic_copy_all(Tensor* const* to, Tensor* const* from, size_t n, bool non_blocking) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    Tensors destinations, sources;
    for (size_t i = 0; i < n; ++i) {
      destinations.push_back(*to[i]);
      sources.push_back(*from[i]);
    }
    if (n > 0) at::_foreach_copy_(destinations, sources, non_blocking);
  });
}

// Copies the tensors one after another into the flat `kept`, which has their kind and as many elements.
char* simic_keep(Tensor* const* tensors, size_t n, Tensor* kept) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    const Tensors list = list_of(tensors, n);
    if (list.empty()) return;
    if (kept->device().is_cpu() && all_flat_cpu_f32(list)) {
      float* to = kept->data_ptr<float>();
      for (const Tensor& t : list) {
        std::memcpy(to, t.const_data_ptr(), t.nbytes());
        to += t.numel();
      }
      return;
    }
    kept->copy_(flattened(list));
  });
}

// All tensors become what simic_keep took; `unless_finite`: only where one of them holds a value that is not finite.
char* simic_restore(Tensor* const* tensors, size_t n, const Tensor* kept, bool unless_finite) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    const Tensors list = list_of(tensors, n);
    if (list.empty()) return;
    if (kept->device().is_cpu() && all_flat_cpu_f32(list)) {
      bool finite = unless_finite;
      for (const Tensor& t : list) finite = finite && is_finite(t);
      if (finite) return;
      const float* from = kept->const_data_ptr<float>();
      for (const Tensor& t : list) {
        std::memcpy(t.data_ptr(), from, t.nbytes());
        t.unsafeGetTensorImpl()->bump_version();
        from += t.numel();
      }
      return;
    }
    const Tensor now = flattened(list);
    const Tensor chosen = unless_finite ? at::where(at::isfinite(now).all(), now, *kept) : *kept;
    Tensors parts;
    int64_t offset = 0;
    for (const Tensor& t : list) {
      parts.push_back(chosen.narrow(0, offset, t.numel()).view(t.sizes()));
      offset += t.numel();
    }
    at::_foreach_copy_(list, parts);
  });
}

// ---- single tensors

char* simic_copy_into(Tensor* to, const Tensor* from, bool non_blocking) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    to->copy_(*from, non_blocking);
  });
}

// tch's call names the device, which libtorch has deprecated and warns of each time.
char* simic_pinned(const Tensor* tensor, Tensor** out) {
  return guarded([&] { *out = new Tensor(tensor->pin_memory()); });
}

char* simic_channels_last(const Tensor* tensor, Tensor** out) {
  return guarded([&] { *out = new Tensor(tensor->contiguous(at::MemoryFormat::ChannelsLast)); });
}

char* simic_is_channels_last(const Tensor* tensor, bool* out) {
  return guarded([&] { *out = tensor->is_contiguous(at::MemoryFormat::ChannelsLast); });
}

// ---- thread-local modes

bool simic_grad_enabled() { return c10::GradMode::is_enabled(); }

void simic_set_grad_enabled(bool enabled) { c10::GradMode::set_enabled(enabled); }

char* simic_inference_begin(c10::InferenceMode** out) {
  return guarded([&] { *out = new c10::InferenceMode(true); });
}

void simic_inference_end(c10::InferenceMode* mode) { delete mode; }

struct SimicAutocast {
  int64_t type;
  int64_t dtype;
  bool enabled;
  bool cache_enabled;
};

// Writes the modes that were in force to `previous` and sets the new ones.
char* simic_autocast_set(const SimicAutocast* mode, SimicAutocast* previous) {
  return guarded([&] {
    const auto type = static_cast<c10::DeviceType>(mode->type);
    previous->type = mode->type;
    previous->dtype = static_cast<int64_t>(at::autocast::get_autocast_dtype(type));
    previous->enabled = at::autocast::is_autocast_enabled(type);
    previous->cache_enabled = at::autocast::is_autocast_cache_enabled();
    at::autocast::set_autocast_dtype(type, static_cast<at::ScalarType>(mode->dtype));
    at::autocast::set_autocast_enabled(type, mode->enabled);
    at::autocast::set_autocast_cache_enabled(mode->cache_enabled);
  });
}

// ---- streams

char* simic_stream_from_pool(int64_t type, int64_t index, SimicStream* out) {
  return guarded([&] {
    const auto device = c10::Device(static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index));
    const auto packed = backend(type).getStreamFromGlobalPool(device).pack3();
    *out = {packed.stream_id, packed.device_index, static_cast<int64_t>(packed.device_type)};
  });
}

// Makes `stream` and its device current and writes what was current before.
char* simic_stream_exchange(const SimicStream* stream, SimicStream* previous, int64_t* previous_device) {
  return guarded([&] {
    const auto guard = backend(stream->type);
    const auto target = unpack(stream->id, stream->index, stream->type);
    *previous_device = guard.exchangeDevice(target.device()).index();
    const auto packed = guard.exchangeStream(target).pack3();
    *previous = {packed.stream_id, packed.device_index, static_cast<int64_t>(packed.device_type)};
  });
}

char* simic_stream_restore(const SimicStream* previous, int64_t previous_device) {
  return guarded([&] {
    const auto guard = backend(previous->type);
    guard.exchangeStream(unpack(previous->id, previous->index, previous->type));
    guard.setDevice(c10::Device(static_cast<c10::DeviceType>(previous->type),
                                static_cast<c10::DeviceIndex>(previous_device)));
  });
}

char* simic_stream_synchronize(const SimicStream* stream) {
  return guarded([&] { unpack(stream->id, stream->index, stream->type).synchronize(); });
}

// Marks where the current stream of the device is now; `*event` is made if it is null.
char* simic_event_record(int64_t type, int64_t index, c10::Event** event) {
  return guarded([&] {
    const auto device = c10::Device(static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index));
    if (*event == nullptr) *event = new c10::Event(device.type());
    (*event)->record(backend(type).getStream(device));
  });
}

// Waits on the host until the stream has reached the event.
char* simic_event_wait(const c10::Event* event) {
  return guarded([&] { event->synchronize(); });
}

void simic_event_free(c10::Event* event) { delete event; }

// ---- memory of devices

// Bytes that a device other than the CPU has left.
char* simic_free_bytes(int64_t type, int64_t index, uint64_t* out) {
  return guarded([&] {
    auto* allocator = c10::getDeviceAllocator(static_cast<c10::DeviceType>(type));
    *out = allocator->getMemoryInfo(static_cast<c10::DeviceIndex>(index)).first;
  });
}

// Bytes that tensors have there, the most that they had at once, and what libtorch holds for them.
char* simic_device_memory(int64_t type, int64_t index, uint64_t* out) {
  return guarded([&] {
    auto* allocator = c10::getDeviceAllocator(static_cast<c10::DeviceType>(type));
    const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(index));
    constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    out[0] = static_cast<uint64_t>(stats.allocated_bytes[all].current);
    out[1] = static_cast<uint64_t>(stats.allocated_bytes[all].peak);
    out[2] = static_cast<uint64_t>(stats.reserved_bytes[all].current);
  });
}

char* simic_reset_peak_memory(int64_t type, int64_t index) {
  return guarded([&] {
    auto* allocator = c10::getDeviceAllocator(static_cast<c10::DeviceType>(type));
    allocator->resetPeakStats(static_cast<c10::DeviceIndex>(index));
  });
}

// ---- process-wide switches

char* simic_set_matmul_precision(const char* precision) {
  return guarded([&] {
    auto& context = at::globalContext();
    context.setFloat32MatmulPrecision(precision);
    context.setAllowTF32CuDNN(std::strcmp(precision, "highest") != 0);
  });
}

char* simic_set_deterministic(bool on) {
  return guarded([&] {
    auto& context = at::globalContext();
    context.setDeterministicAlgorithms(on, /*warn_only=*/false);
    // Filling every fresh buffer would cost time and hide nothing: buffers are written before they are read.
    context.setDeterministicFillUninitializedMemory(false);
    context.setDeterministicCuDNN(on);
    context.setBenchmarkCuDNN(!on);
  });
}

}  // extern "C"
