// Products of positions with weights where these are whole vectors of channels, and sums of products of positions with
// positions: the inner loops of convolutions by tiles (winograd.hpp) and at every second position (strided.hpp).

#pragma once

#include "images.hpp"

namespace {

// Weights `[inputs][outputs]` of what lies `offset` floats behind a position.
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

// `G` vectors of outputs from channel `channel` of the positions from `first`, as many as `POSITIONS` divides. An output is
// one chain over taps and inputs.
template <int POSITIONS, int G>
ALONE void multiply_positions(const Run& run, int64_t channel, int64_t first) {
  const int64_t step = run.step, inputs = run.inputs, outputs = run.outputs;
  const float* from = run.from + first * step;
  float* to = run.to + first * run.to_step + channel;
  for (; first + POSITIONS <= run.count; first += POSITIONS, from += POSITIONS * step, to += POSITIONS * run.to_step) {
    Flat::V sums[POSITIONS][G];
    for (auto& position : sums)
      for (auto& sum : position) sum = Flat::zero();
    for (int64_t tap = 0; tap < run.n_taps; ++tap) {
      const float *at = from + run.taps[tap].offset, *weights = run.taps[tap].weights + channel;
      for (int64_t i = 0; i < inputs; ++i, weights += outputs) {
        Flat::V w[G];
        for (int g = 0; g < G; ++g) w[g] = Flat::load(weights + g * 16);
        for (int p = 0; p < POSITIONS; ++p) {
          const auto x = Flat::all(at[p * step + i]);
          for (int g = 0; g < G; ++g) sums[p][g] = Flat::fma(x, w[g], sums[p][g]);
        }
      }
    }
    for (int p = 0; p < POSITIONS; ++p)
      for (int g = 0; g < G; ++g) Flat::store(to + p * run.to_step + g * 16, sums[p][g]);
  }
}

INLINE void multiply_run(const Run& run) {
  constexpr int POSITIONS = REGISTERS == 32 ? 8 : 4;
  const int64_t whole = run.count / POSITIONS * POSITIONS;
  const auto all_positions = [&](auto many, auto one, int64_t channel) INLINE_LAMBDA {
    many(run, channel, 0);
    if (whole < run.count) one(run, channel, whole);
  };
  int64_t c = 0;
  if constexpr (REGISTERS == 32)
    for (; c + 32 <= run.outputs; c += 32) all_positions(multiply_positions<POSITIONS, 2>, multiply_positions<1, 2>, c);
  for (; c < run.outputs; c += 16) all_positions(multiply_positions<POSITIONS, 1>, multiply_positions<1, 1>, c);
}

// `channels` of each position of an area: where it begins, floats from position to position and from row to row.
struct Area {
  const float* data;
  int64_t channels, step, row;
};

// Adds Σ a·b over `rows` rows of `width` positions, of all channels of `a` and `G` vectors of b's from `channel`, to
// `totals [channels of a][channels of b]`. Each sum is one chain.
template <int G>
ALONE void add_products(const Area& a, const Area& b, int64_t rows, int64_t width, int64_t channel, double* totals) {
  // A divisor of 16, as many as there are registers for.
  constexpr int CHANNELS = REGISTERS == 32 ? 8 : 4;
  float lanes[16];
  totals += channel;
  for (int64_t first = 0; first < a.channels; first += CHANNELS) {
    Flat::V sums[CHANNELS][G];
    for (auto& channels : sums)
      for (auto& sum : channels) sum = Flat::zero();
    for (int64_t y = 0; y < rows; ++y) {
      const float *of_a = a.data + y * a.row + first, *of_b = b.data + y * b.row + channel;
      for (int64_t x = 0; x < width; ++x, of_a += a.step, of_b += b.step) {
        Flat::V v[G];
        for (int g = 0; g < G; ++g) v[g] = Flat::load(of_b + g * 16);
        for (int c = 0; c < CHANNELS; ++c) {
          const auto factor = Flat::all(of_a[c]);
          for (int g = 0; g < G; ++g) sums[c][g] = Flat::fma(factor, v[g], sums[c][g]);
        }
      }
    }
    for (int c = 0; c < CHANNELS; ++c, totals += b.channels)
      for (int g = 0; g < G; ++g) {
        Flat::store(lanes, sums[c][g]);
        for (int lane = 0; lane < 16; ++lane) totals[g * 16 + lane] += lanes[lane];
      }
  }
}

INLINE void add_all_products(const Area& a, const Area& b, int64_t rows, int64_t width, double* totals) {
  int64_t c = 0;
  if constexpr (REGISTERS == 32)
    for (; c + 32 <= b.channels; c += 32) add_products<2>(a, b, rows, width, c, totals);
  for (; c < b.channels; c += 16) add_products<1>(a, b, rows, width, c, totals);
}

}  // namespace
