// Which table of kernels serves: that of the widest vectors that this CPU has.

#include "arithmetic/table.hpp"

#include <stddef.h>

#include <array>
#include <stdexcept>

namespace {

using simic::Kernels;

struct Level {
  const Kernels* table;
  bool available;
};

// By descending width of vectors. In place: what has no memory to ask for cannot throw.
const auto& levels() {
  static const std::array all = {
#if defined(__x86_64__)
      Level{&simic::avx512_kernels, __builtin_cpu_supports("x86-64-v4") != 0},
      Level{&simic::avx2_kernels, __builtin_cpu_supports("x86-64-v3") != 0},
#endif
      Level{&simic::plain_kernels, true},
  };
  return all;
}

// Set by tests on their own thread; the results are the same with every value.
thread_local const Kernels* forced_kernels = nullptr;

// The call of this thread that fails, counted down to it; 0: none does.
thread_local int64_t calls_until_failure = 0;

const Kernels& kernels() {
  if (calls_until_failure > 0 && --calls_until_failure == 0) throw std::runtime_error("a kernel failed on request");
  if (forced_kernels != nullptr) return *forced_kernels;
  static const Kernels* best = [] {
    for (const Level& level : levels())
      if (level.available) return level.table;
    return &simic::plain_kernels;
  }();
  return *best;
}

}  // namespace

extern "C" {

// The name of level `index`, null after the last; `available`: this CPU has its instructions.
const char* simic_kernel_level(size_t index, bool* available) {
  const auto& all = levels();
  if (index >= all.size()) return nullptr;
  *available = all[index].available;
  return all[index].table->level;
}

// Forces level `index` on this thread, or no level if there is none such.
void simic_force_kernel_level(size_t index) {
  const auto& all = levels();
  forced_kernels = index < all.size() ? all[index].table : nullptr;
}

// Makes the `call`-th use of a kernel on this thread fail, from 1, once; 0: none.
void simic_fail_kernel(int64_t call) { calls_until_failure = call; }

}  // extern "C"
