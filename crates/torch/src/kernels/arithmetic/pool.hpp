// 2x2 max pools: windows side by side in the lanes, and a pool alone. A last odd row or column is left out.

#pragma once

#include "images.hpp"

namespace {

// The lanes of positions that lie side by side: 16 / `C` of `C` channels each, or, where `C` is 0, the channels of
// one. Windows of a pool lie side by side as their results do.
template <int C>
struct Lined {
  using L = Lanes<C == 0 ? WIDEST : 16>;
  using V = typename L::V;
  int64_t channels;

  // Calls `f(channel)` for the first of the channels that a vector takes, and so on until all are taken.
  template <class F>
  INLINE void over_channels(F f) const {
    if constexpr (C == 0)
      for (int64_t c = 0; c < channels; c += L::WIDTH) f(c);
    else f(0);
  }

  // Calls `f(index, count)` for each vector of `positions` neighbours: its first float, and how many lanes count.
  template <class F>
  INLINE void over(int64_t positions, int64_t c, F f) const {
    if constexpr (C == 0) {
      const int count = static_cast<int>(least(L::WIDTH, channels - c));
      if (count == L::WIDTH)
        for (int64_t x = 0; x < positions; ++x) f(x * channels + c, L::WIDTH);
      else
        for (int64_t x = 0; x < positions; ++x) f(x * channels + c, count);
    } else {
      int64_t at = 0;
      for (; at + 16 <= positions * C; at += 16) f(at, 16);
      if (at < positions * C) f(at, static_cast<int>(positions * C - at));
    }
  }

  // The beginning in a row of the windows whose results stand at `at`.
  INLINE int64_t corner(int64_t at, int64_t c) const { return 2 * at - c; }

  INLINE V factor(const float* by_channel, int64_t c) const {
    if constexpr (C == 0) return L::load(by_channel + c);
    else return L::template repeated<C>(by_channel);
  }

  // The left and the right positions of `n` lanes of windows, of one of their rows.
  INLINE void load(const float* from, int n, V& left, V& right) const {
    if constexpr (C == 0) left = L::load_at_most(from, n), right = L::load_at_most(from + channels, n);
    else if (n == 16) L::template split<C>(L::load(from), L::load(from + 16), left, right);
    else L::template split<C>(L::load_at_most(from, 2 * n), L::load_some(from + 16, n > 8 ? 2 * n - 16 : 0), left, right);
  }

  INLINE void store(float* to, int n, V left, V right) const {
    if constexpr (C == 0) {
      L::store_at_most(to, left, n), L::store_at_most(to + channels, right, n);
    } else {
      V low, high;
      L::template merge<C>(left, right, low, high);
      L::store_at_most(to, low, 2 * n);
      if (n > 8) L::store_at_most(to + 16, high, 2 * n - 16);
    }
  }

  // Adds lanes to the totals of their channels.
  INLINE void add_to(double* totals, int64_t c, V sums) const {
    float lanes[L::WIDTH];
    L::store(lanes, sums);
    const int64_t count = C == 0 ? least(L::WIDTH, channels - c) : 16;
    for (int64_t lane = 0; lane < count; ++lane) totals[C == 0 ? c + lane : lane % C] += lanes[lane];
  }
};

// Calls `f(Lined)`, whose lanes are all full where there are few channels.
template <class F>
INLINE void lined(int64_t channels, F f) {
  switch (channels) {
    case 1: return f(Lined<1>{channels});
    case 2: return f(Lined<2>{channels});
    case 4: return f(Lined<4>{channels});
    case 8: return f(Lined<8>{channels});
  }
  f(Lined<0>{channels});
}

template <class L>
INLINE typename L::V highest(const typename L::V (&y)[4]) {
  return L::larger(L::larger(L::larger(y[0], y[1]), y[2]), y[3]);
}

// The gradient of a window's positions: all of it reaches the first of its largest values.
template <class L>
INLINE void route(const typename L::V (&values)[4], typename L::V chosen, typename L::V grad, typename L::V (&to)[4]) {
  for (int i = 0; i < 3; ++i) {
    to[i] = L::select_equal(values[i], chosen, grad, L::zero());
    grad = L::select_equal(values[i], chosen, L::zero(), grad);
  }
  to[3] = grad;
}

// ---- a pool alone

template <class Line>
INLINE void pool_images(const Line& lanes, const ConvShape& s, const float* x, const float* grad, float* out) {
  using L = typename Line::L;
  using V = typename Line::V;
  const int64_t row = s.width * s.outputs, height = s.height / 2, width = s.width / 2, of_window = width * s.outputs;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t y = 0; y < height; ++y) {
      const int64_t line = (n * s.height + 2 * y) * row, target = (n * height + y) * of_window;
      lanes.over_channels([&](int64_t c) INLINE_LAMBDA {
        lanes.over(width, c, [&](int64_t at, int count) INLINE_LAMBDA {
          const int64_t corner = line + lanes.corner(at, c);
          V values[4], parts[4];
          lanes.load(x + corner, count, values[0], values[1]);
          lanes.load(x + corner + row, count, values[2], values[3]);
          const V most = highest<L>(values);
          if (grad == nullptr) return L::store_at_most(out + target + at, most, count);
          route<L>(values, most, L::load_at_most(grad + target + at, count), parts);
          lanes.store(out + corner, count, parts[0], parts[1]);
          lanes.store(out + corner + row, count, parts[2], parts[3]);
        });
      });
    }
}

// Without `grad` the pooled images; with it the gradient of x, whose `x_grad` is written as a whole.
void pool(const ConvShape& s, const float* x, const float* grad, float* out) {
  if (grad != nullptr && (s.height % 2 != 0 || s.width % 2 != 0)) zero(out, s.batch * s.positions() * s.outputs);
  lined(s.outputs, [&](auto lanes) INLINE_LAMBDA { pool_images(lanes, s, x, grad, out); });
}

}  // namespace
