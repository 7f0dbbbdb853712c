// The memory of tensors on a CPU: small blocks are kept by the thread that frees them, large ones by all threads
// together.
//
// A batch of a small network asks for the same few sizes again and again, and aligned blocks are what the C library is
// slowest at. A batch of a large one asks for megabytes, which the C library either maps, zeroes and unmaps around each
// operation, or keeps in heaps that have more holes than blocks as soon as sizes change. A block begins with its header, a
// cache line before the data.

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <pthread.h>
#include <sys/mman.h>

#include <mutex>
#include <utility>

// MKL's, where libtorch comes with it.
extern "C" void mkl_serv_thread_free_buffers() __attribute__((weak));

namespace {

constexpr size_t LINE = 64;
constexpr size_t PAGE = 4096;
// Kept by threads: blocks of up to `SMALL` bytes by cache line, of up to `LARGE` by page.
constexpr size_t SMALL = 64 << 10;
constexpr size_t LARGE = 1 << 20;
// The limit of each thread, in bytes.
constexpr size_t MOST_KEPT = 32 << 20;

struct Header {
  size_t size;
  Header* next;
  // For a large block: the number of large blocks that had been asked for when it was freed.
  size_t freed_at;
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

// Freed blocks of more than `LARGE` bytes, each mapped by itself. One list for all threads: what a worker has freed serves
// whichever env is worked on next.
class LargeBlocks {
  // A block that was not taken during this number of requests is unmapped: blocks that every env-step uses stay, those of
  // earlier shapes go.
  static constexpr size_t IDLE = 600;
  // A block may be larger than what is asked for by this part of it.
  static constexpr size_t SPARE = 8;

  std::mutex mutex;
  // The one that was freed last comes first.
  Header* first = nullptr;
  size_t asked = 0;

  static Header* map(size_t size) {
    void* pages = mmap(nullptr, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    auto* block = static_cast<Header*>(pages);
    block->size = size;
    return block;
  }

  static void unmap(Header* blocks) {
    while (blocks != nullptr) {
      Header* block = std::exchange(blocks, blocks->next);
      munmap(block, block->size + PAGE);
    }
  }

  // The smallest kept block that fits, or null. Those that were not used are unmapped outside the lock.
  Header* find(size_t size) {
    Header* found = nullptr;
    Header* idle = nullptr;
    {
      const std::lock_guard<std::mutex> held(mutex);
      Header** best = nullptr;
      Header** place = &first;
      for (; *place != nullptr && asked - (*place)->freed_at <= IDLE; place = &(*place)->next) {
        const size_t has = (*place)->size;
        const bool fits = has >= size && has - size <= size / SPARE;
        if (fits && (best == nullptr || has < (*best)->size)) best = place;
      }
      asked += 1;
      // The blocks after it were freed still earlier.
      idle = std::exchange(*place, nullptr);
      if (best != nullptr) {
        found = *best;
        *best = found->next;
      }
    }
    unmap(idle);
    return found;
  }

 public:
  Header* take(size_t size) {
    Header* block = find(size);
    if (block == nullptr) block = map(size);
    if (block == nullptr) {
      give_back();
      block = map(size);
    }
    // In the words of libtorch's own allocator, by which errors are distinguished.
    TORCH_CHECK(block != nullptr, "can't allocate memory: you tried to allocate ", size, " bytes");
    return block;
  }

  void keep(Header* block) {
    const std::lock_guard<std::mutex> held(mutex);
    block->freed_at = asked;
    block->next = first;
    first = block;
  }

  void give_back() {
    Header* all = nullptr;
    {
      const std::lock_guard<std::mutex> held(mutex);
      all = std::exchange(first, nullptr);
    }
    unmap(all);
  }

  void lock() { mutex.lock(); }
  void unlock() { mutex.unlock(); }
};

// For good, as tensors may outlive every static object. No fork leaves the lock to a thread that the child does not have.
LargeBlocks& large_blocks() {
  static LargeBlocks* const blocks = [] {
    pthread_atfork([] { large_blocks().lock(); }, [] { large_blocks().unlock(); }, [] { large_blocks().unlock(); });
    return new LargeBlocks();
  }();
  return *blocks;
}

void free_block(void* data) {
  if (data == nullptr) return;
  auto* block = reinterpret_cast<Header*>(static_cast<char*>(data) - LINE);
  if (block->size > LARGE) return large_blocks().keep(block);
  KeptBlocks* blocks = kept_blocks();
  if (blocks == nullptr || !blocks->keep(block)) c10::free_cpu(block);
}

struct KeepingAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = nullptr;
    if (bytes > 0) {
      const size_t size = rounded(bytes);
      Header* block = nullptr;
      if (size > LARGE) {
        block = large_blocks().take(size);
      } else {
        KeptBlocks* blocks = kept_blocks();
        block = blocks != nullptr ? blocks->take(size) : nullptr;
        if (block == nullptr) block = static_cast<Header*>(c10::alloc_cpu(size + LINE));
        block->size = size;
      }
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

// Bytes of freed blocks that the calling thread keeps for itself.
size_t simic_kept_bytes() {
  const KeptBlocks* blocks = kept_blocks();
  return blocks != nullptr ? blocks->bytes() : 0;
}

// Gives back the freed blocks that the calling thread keeps, what MKL keeps for its products, and large freed blocks.
void simic_free_thread_buffers() {
  if (KeptBlocks* blocks = kept_blocks()) blocks->give_back();
  large_blocks().give_back();
  if (mkl_serv_thread_free_buffers != nullptr) mkl_serv_thread_free_buffers();
}

}  // extern "C"
