// Where tensors on a CPU get their memory: small blocks are kept by the thread that frees them.
//
// A batch of a small network asks for the same few sizes again and again, and aligned blocks are what the C library is
// slowest at. A block begins with its size, a cache line before the data.

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

// MKL's, where libtorch comes with it.
extern "C" void mkl_serv_thread_free_buffers() __attribute__((weak));

namespace {

constexpr size_t LINE = 64;
constexpr size_t PAGE = 4096;
// Kept: blocks of up to `SMALL` bytes by cache line, of up to `LARGE` by page.
constexpr size_t SMALL = 64 << 10;
constexpr size_t LARGE = 1 << 20;
// Of each thread, in bytes.
constexpr size_t MOST_KEPT = 32 << 20;

struct Header {
  size_t size;
  Header* next;
};
static_assert(sizeof(Header) <= LINE);

size_t rounded(size_t bytes) {
  const size_t step = bytes <= SMALL ? LINE : PAGE;
  return (bytes + step - 1) / step * step;
}

// Freed blocks of one thread, one list for each size.
class KeptBlocks {
  static constexpr size_t LISTS = SMALL / LINE + LARGE / PAGE + 1;
  Header* lists[LISTS] = {};
  size_t kept = 0;

  static size_t list_of(size_t size) { return size <= SMALL ? size / LINE : SMALL / LINE + size / PAGE; }

 public:
  Header* take(size_t size) {
    Header*& first = lists[list_of(size)];
    Header* block = first;
    if (block == nullptr) return nullptr;
    first = block->next;
    kept -= size;
    return block;
  }

  bool keep(Header* block) {
    if (kept + block->size > MOST_KEPT) return false;
    Header*& first = lists[list_of(block->size)];
    block->next = first;
    first = block;
    kept += block->size;
    return true;
  }

  size_t bytes() const { return kept; }

  void give_back() {
    for (Header*& first : lists)
      while (first != nullptr) c10::free_cpu(std::exchange(first, first->next));
    kept = 0;
  }

  ~KeptBlocks() { give_back(); }
};

// This thread's; null once the thread ends, when tensors may still be freed.
KeptBlocks* kept_blocks() {
  thread_local bool has_ended = false;
  struct OfThread {
    KeptBlocks blocks;
    ~OfThread() { has_ended = true; }
  };
  if (has_ended) return nullptr;
  thread_local OfThread of_thread;
  return &of_thread.blocks;
}

void free_block(void* data) {
  if (data == nullptr) return;
  auto* block = reinterpret_cast<Header*>(static_cast<char*>(data) - LINE);
  KeptBlocks* blocks = block->size <= LARGE ? kept_blocks() : nullptr;
  if (blocks == nullptr || !blocks->keep(block)) c10::free_cpu(block);
}

struct KeepingAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = nullptr;
    if (bytes > 0) {
      const size_t size = rounded(bytes);
      KeptBlocks* blocks = size <= LARGE ? kept_blocks() : nullptr;
      Header* block = blocks != nullptr ? blocks->take(size) : nullptr;
      if (block == nullptr) block = static_cast<Header*>(c10::alloc_cpu(size + LINE));
      block->size = size;
      data = reinterpret_cast<char*>(block) + LINE;
    }
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

extern "C" {

// From now on tensors on a CPU get their memory from here.
void simic_keep_tensor_blocks() {
  // For good: tensors may outlive every static object.
  static auto* allocator = new KeepingAllocator();
  // Above libtorch's own choice for CPUs.
  constexpr uint8_t PRIORITY = 100;
  c10::SetCPUAllocator(allocator, PRIORITY);
}

// Of freed blocks, kept by the calling thread.
size_t simic_kept_bytes() {
  const KeptBlocks* blocks = kept_blocks();
  return blocks != nullptr ? blocks->bytes() : 0;
}

// Gives back the freed blocks that the calling thread keeps, and what MKL keeps for its products.
void simic_free_thread_buffers() {
  if (KeptBlocks* blocks = kept_blocks()) blocks->give_back();
  if (mkl_serv_thread_free_buffers != nullptr) mkl_serv_thread_free_buffers();
}

}  // extern "C"
