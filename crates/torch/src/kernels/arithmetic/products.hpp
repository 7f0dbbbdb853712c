// Products of positions with weights where these are whole vectors of channels, and sums of products of positions with
// positions: the inner loops of convolutions by tiles (winograd.hpp) and at every second position (strided.hpp).

#pragma once

#include "images.hpp"

namespace {

// Weights `[inputs][outputs]` of the floats that are `offset` floats after a position.
struct Tap {
  int64_t offset;
  const float* weights;
};

// `count` positions, `step` floats apart, and their outputs, `to_step` apart, of as many channels as weights have.
struct Run {
  const Tap* taps;
  int64_t n_taps, inputs, outputs, count;
  const float* from;
  int64_t step;
  float* to;
  int64_t to_step;
};

// Calls `f` with the widest lanes that divide `channels`.
template <class F>
INLINE void by_lanes(int64_t channels, F f) {
  if (channels % 16 == 0) f(Flat());
  else f(Lanes<8>());
}

// `G` vectors of outputs from channel `channel` of all positions, which are `POSITIONS` or more. An output is one chain over
// taps and inputs.
template <class L, int POSITIONS, int G>
ALONE void multiply_positions(const Run& run, int64_t channel) {
  using V = typename L::V;
  const int64_t inputs = run.inputs, outputs = run.outputs;
  for (int64_t next = 0; next < run.count; next += POSITIONS) {
    // The last ones again where they are not as many.
    const int64_t first = least(next, run.count - POSITIONS), step = run.step;
    const float* from = run.from + first * step;
    float* to = run.to + first * run.to_step + channel;
    V sums[POSITIONS][G];
    for (auto& position : sums)
      for (auto& sum : position) sum = L::zero();
    for (int64_t tap = 0; tap < run.n_taps; ++tap) {
      const float *at = from + run.taps[tap].offset, *weights = run.taps[tap].weights + channel;
      for (int64_t i = 0; i < inputs; ++i, weights += outputs) {
        V w[G];
        for (int g = 0; g < G; ++g) w[g] = L::load(weights + g * L::WIDTH);
        for (int p = 0; p < POSITIONS; ++p) {
          const auto x = L::all(at[p * step + i]);
          for (int g = 0; g < G; ++g) sums[p][g] = L::fma(x, w[g], sums[p][g]);
        }
      }
    }
    for (int p = 0; p < POSITIONS; ++p)
      for (int g = 0; g < G; ++g) L::store(to + p * run.to_step + g * L::WIDTH, sums[p][g]);
  }
}

template <class L>
INLINE void multiply_vectors(const Run& run) {
  // As many sums as hide the time that each takes, and no more than there are registers.
  constexpr int POSITIONS = REGISTERS == 32 ? 8 : 96 / L::WIDTH;
  const auto all_positions = [&](auto many, auto one, int64_t channel) INLINE_LAMBDA {
    if (run.count >= POSITIONS) many(run, channel);
    else one(run, channel);
  };
  constexpr int W = L::WIDTH;
  int64_t c = 0;
  if constexpr (REGISTERS == 32)
    for (; c + 2 * W <= run.outputs; c += 2 * W) all_positions(multiply_positions<L, POSITIONS, 2>, multiply_positions<L, 1, 2>, c);
  for (; c < run.outputs; c += W) all_positions(multiply_positions<L, POSITIONS, 1>, multiply_positions<L, 1, 1>, c);
}

INLINE void multiply_run(const Run& run) {
  by_lanes(run.outputs, [&](auto lanes) INLINE_LAMBDA { multiply_vectors<decltype(lanes)>(run); });
}

// `channels` of each position of an area: where it begins, floats from position to position and from row to row.
struct Area {
  const float* data;
  int64_t channels, step, row;
};

// Adds Σ a·b over `rows` rows of `width` positions, of all channels of `a` and `G` vectors of b's from `channel`, to
// `totals [channels of a][channels of b]`. Each sum is one chain.
template <class L, int G>
ALONE void add_products(const Area& a, const Area& b, int64_t rows, int64_t width, int64_t channel, double* totals) {
  // A divisor of 8, as many as there are registers for.
  constexpr int CHANNELS = REGISTERS == 32 || L::WIDTH == 8 ? 8 : 4;
  using V = typename L::V;
  float lanes[L::WIDTH];
  totals += channel;
  for (int64_t first = 0; first < a.channels; first += CHANNELS) {
    V sums[CHANNELS][G];
    for (auto& channels : sums)
      for (auto& sum : channels) sum = L::zero();
    for (int64_t y = 0; y < rows; ++y) {
      const float *of_a = a.data + y * a.row + first, *of_b = b.data + y * b.row + channel;
      for (int64_t x = 0; x < width; ++x, of_a += a.step, of_b += b.step) {
        V v[G];
        for (int g = 0; g < G; ++g) v[g] = L::load(of_b + g * L::WIDTH);
        for (int c = 0; c < CHANNELS; ++c) {
          const auto factor = L::all(of_a[c]);
          for (int g = 0; g < G; ++g) sums[c][g] = L::fma(factor, v[g], sums[c][g]);
        }
      }
    }
    for (int c = 0; c < CHANNELS; ++c, totals += b.channels)
      for (int g = 0; g < G; ++g) {
        L::store(lanes, sums[c][g]);
        for (int lane = 0; lane < L::WIDTH; ++lane) totals[g * L::WIDTH + lane] += lanes[lane];
      }
  }
}

INLINE void add_all_products(const Area& a, const Area& b, int64_t rows, int64_t width, double* totals) {
  by_lanes(b.channels, [&](auto lanes) INLINE_LAMBDA {
    using L = decltype(lanes);
    constexpr int W = L::WIDTH;
    int64_t c = 0;
    if constexpr (REGISTERS == 32)
      for (; c + 2 * W <= b.channels; c += 2 * W) add_products<L, 2>(a, b, rows, width, c, totals);
    for (; c < b.channels; c += W) add_products<L, 1>(a, b, rows, width, c, totals);
  });
}

}  // namespace
