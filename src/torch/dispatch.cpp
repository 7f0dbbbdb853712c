// Which table of kernels serves: that of the widest vectors that this CPU has.

#include "kernels/table.hpp"

#include <stddef.h>

#include <array>

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

// Set by tests on their own thread; the results are the same whatever it is.
thread_local const Kernels* forced_kernels = nullptr;

const Kernels& kernels() {
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

// The name of level `index`, null behind the last; `available`: this CPU has its instructions.
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

}  // extern "C"
