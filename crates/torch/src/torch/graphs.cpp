// CUDA graphs: what a stream was asked for once, asked for again by one call.
//
// Unlike the shim, this unit names libtorch's CUDA part. It is therefore a library of its own, which is opened once that part
// has been opened, and whose names are looked for then. Every function returns null or an error text, which is this thread's
// until its next error: nothing to free, and no memory is needed to say that there is none.

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>

namespace {

thread_local char text[2048];

// A generator knows its graphs by a list that libtorch does not lock.
std::mutex generators;

template <typename F>
const char* guarded(F&& body) {
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    std::snprintf(text, sizeof text, "%s", error.what());
  } catch (...) {
    std::snprintf(text, sizeof text, "unknown C++ exception");
  }
  return text;
}

struct Graph : at::cuda::CUDAGraph {
  // When libtorch stops at an error, its generators refuse all numbers to others, and its allocators ask a graph that may be
  // gone for its captures.
  template <typename F>
  void attempt(F&& step) {
    try {
      step();
    } catch (...) {
      withdraw();
      throw;
    }
  }

 private:
  void withdraw() noexcept {
    // The destructor returns the pool.
    capture_ended_ = true;
    try {
      for (auto& state : captured_generator_states_) {
        state.first->capturing_ = false;
        // The destructor insists on finding itself there.
        state.first->registered_graphs_.insert(this);
      }
      c10::cuda::CUDACachingAllocator::endAllocateToPool(capture_dev_, mempool_id_);
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(mempool_id_);
    } catch (...) {
      // Memory was not asked for yet, or no longer.
    }
    // Or the next kernel on this thread reports it.
    C10_CUDA_CLEAR_ERROR();
  }
};

}  // namespace

extern "C" {

// Begins a capture of the current stream, in the memory of `pool_of` where that is not null.
const char* simic_graph_begin(Graph* pool_of, Graph** out) {
  return guarded([&] {
    const std::lock_guard<std::mutex> alone(generators);
    const auto pool = pool_of != nullptr ? pool_of->pool() : c10::MempoolId_t{};
    auto graph = std::make_unique<Graph>();
    graph->attempt([&] { graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal); });
    *out = graph.release();
  });
}

// On the thread that began it.
const char* simic_graph_end(Graph* graph) {
  return guarded([&] { graph->attempt([&] { graph->capture_end(); }); });
}

const char* simic_graph_replay(Graph* graph) {
  return guarded([&] { graph->replay(); });
}

void simic_graph_free(Graph* graph) noexcept {
  const std::lock_guard<std::mutex> alone(generators);
  delete graph;
}

}  // extern "C"
