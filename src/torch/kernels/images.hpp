// Channels-last images in scratch storage: borders of zeros, tables of positions, sums over channels.

#pragma once

#include "lanes.hpp"
#include "shapes.hpp"

namespace {

using simic::ConvShape;
using simic::packed_channels;

using Flat = Lanes<16>;

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }

// Hands out parts of a scratch buffer, each at the start of a vector.
struct Scratch {
  float* next;

  INLINE float* take(int64_t floats) {
    float* part = next;
    next += (floats + 15) / 16 * 16;
    return part;
  }
  INLINE int32_t* take_table(int64_t entries) { return reinterpret_cast<int32_t*>(take(entries)); }
  INLINE double* take_doubles(int64_t entries) { return reinterpret_cast<double*>(take(2 * entries)); }
};

INLINE void zero(float* to, int64_t n) { std::memset(to, 0, n * sizeof(float)); }
INLINE void zero(double* to, int64_t n) { std::memset(to, 0, n * sizeof(double)); }

// A few images with borders of zeros, as a convolution reads them.
struct Padded {
  int64_t height, width, channels, pad;
  // Floats.
  int64_t row, image;
  // Offset of the window of each row's first position (of its top left corner), of each position, and of the position
  // itself.
  const int32_t* line;
  const int32_t* window;
  const int32_t* centre;
  float* data;

  INLINE int64_t positions() const { return height * width; }
};

// Floats beyond a padded image that a kernel may read, never use.
constexpr int64_t SLACK = 64;

INLINE int64_t padded_image(const ConvShape& s, int64_t channels) {
  return (s.height + 2 * s.pad()) * (s.width + 2 * s.pad()) * channels;
}

INLINE int64_t padded_floats(const ConvShape& s, int64_t channels, int64_t images) {
  return images * padded_image(s, channels) + SLACK;
}

// Images that share the lanes of a convolution to `channels` channels.
INLINE int64_t images_in_lanes(int64_t channels) {
  return channels > 8 ? 1 : channels > 4 ? 2 : channels > 1 ? 4 : 16;
}

// Images that are worked on together: enough positions to amortise what is done once a chunk, few enough that all
// that a chunk touches stays close to the core.
INLINE int64_t images_at_a_time(const ConvShape& s) {
  constexpr int64_t POSITIONS = 256;
  constexpr int64_t FLOATS = 8192;
  const int64_t widest = most(s.inputs, s.outputs);
  const int64_t by_positions = POSITIONS / s.positions();
  const int64_t by_size = FLOATS / padded_floats(s, widest, 1);
  const int64_t in_lanes = most(images_in_lanes(s.inputs), images_in_lanes(s.outputs));
  const int64_t wanted = most(1, least(by_positions, by_size));
  return least(s.batch, (wanted + in_lanes - 1) / in_lanes * in_lanes);
}

INLINE Padded pad(const ConvShape& s, int64_t channels, int64_t images, Scratch& scratch) {
  Padded p = {s.height, s.width, channels, s.pad(), (s.width + 2 * s.pad()) * channels, 0, nullptr, nullptr, nullptr, nullptr};
  p.image = (s.height + 2 * p.pad) * p.row;
  p.data = scratch.take(padded_floats(s, channels, images));
  zero(p.data, padded_floats(s, channels, images));
  int32_t* window = scratch.take_table(images * s.positions());
  int32_t* centre = scratch.take_table(images * s.positions());
  int32_t* line = scratch.take_table(images * s.height);
  p.window = window;
  p.centre = centre;
  p.line = line;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < s.height; ++y) {
      *line++ = static_cast<int32_t>(n * p.image + y * p.row);
      for (int64_t x = 0; x < s.width; ++x) {
        const int64_t at = n * p.image + y * p.row + x * channels;
        *window++ = static_cast<int32_t>(at);
        *centre++ = static_cast<int32_t>(at + p.pad * (p.row + channels));
      }
    }
  return p;
}

// The same tables over dense images that need no border; no kernel may read behind their end.
INLINE Padded over_dense(Padded p, const float* data) {
  p.data = const_cast<float*>(data);
  return p;
}

// Scratch that `pad` takes.
INLINE int64_t pad_scratch(const ConvShape& s, int64_t channels, int64_t images) {
  return padded_floats(s, channels, images) + images * (2 * s.positions() + s.height) + 128;
}

// Copies dense images into the middle of their borders.
INLINE void fill(const Padded& p, const float* from, int64_t images) {
  const int64_t row = p.width * p.channels;
  for (int64_t n = 0; n < images; ++n) {
    float* to = p.data + n * p.image + p.pad * (p.row + p.channels);
    for (int64_t y = 0; y < p.height; ++y, to += p.row, from += row) std::memcpy(to, from, row * sizeof(float));
  }
}

// ---- interleaved images

// Floats of room that `interleave` needs for `images` images of `floats` each: for the groups, of which the last may be
// of zeros for the most part, and twice for the group that is being made.
INLINE int64_t interleave_room(int64_t floats, int64_t images) {
  const int64_t whole = (floats + 15) / 16 * 16;
  return ((images + 15) / 16 * 16 + 2 * 16) * whole + 16 * SLACK;
}

// Groups of `M` of `images` images of `floats` each, which follow each other at `from`: value by value, that of the
// group's first image, its second, and so on; zeros for images that the last group lacks. Groups are `M·floats` apart.
template <int M>
INLINE const float* interleave(const float* from, int64_t images, int64_t floats, float* room) {
  const int64_t whole = (floats + 15) / 16 * 16, groups = (images + M - 1) / M, tail = floats % 16;
  float* parts[2] = {room, room + M * whole};
  float* result = room + 2 * M * whole;
  static const float ZEROS[16] = {};
  for (int64_t group = 0; group < groups; ++group) {
    const float* sources[M];
    for (int m = 0; m < M; ++m) sources[m] = group * M + m < images ? from + (group * M + m) * floats : nullptr;
    // Pairs, then pairs of pairs: image i with the one half the list away, so that the last are in order.
    int64_t length = floats;
    for (int count = M / 2, stage = 0; count > 0; count /= 2, stage ^= 1, length *= 2)
      for (int i = 0; i < count; ++i) {
        float* to = count == 1 ? result + group * M * floats : parts[stage] + i * M / count * whole;
        const float *a = sources[i], *b = sources[i + count];
        const auto at = [&](const float* source, int64_t index) INLINE_LAMBDA { return source == nullptr ? ZEROS : source + index; };
        const int64_t readable = count == M / 2 && tail != 0 ? length - tail : length;
        int64_t index = 0;
        for (; index < readable; index += 16) interleave_vectors(at(a, index), at(b, index), to + 2 * index);
        if (index < length) {
          float ends[2][16] = {};
          if (a != nullptr) std::memcpy(ends[0], a + index, tail * sizeof(float));
          if (b != nullptr) std::memcpy(ends[1], b + index, tail * sizeof(float));
          interleave_vectors(ends[0], ends[1], to + 2 * index);
        }
        sources[i] = to;
      }
  }
  return result;
}

// ---- values that repeat with the channels

// Length of the shortest run of whole vectors that begins and ends with a pixel.
INLINE int64_t period_of(int64_t channels) {
  const int64_t common = channels & -channels;
  return channels * (16 / (common > 16 ? 16 : common));
}

INLINE void repeat(const float* values, int64_t channels, int64_t period, float* to) {
  for (int64_t i = 0, c = 0; i < period; ++i, c = c + 1 == channels ? 0 : c + 1) to[i] = values[c];
}

// Calls `f(index, offset, count)` for each vector of `n` floats that begin with channel 0: its first float, the place
// of that in the period, and how many of its lanes count.
template <class F>
INLINE void over_flat(int64_t n, int64_t period, F f) {
  int64_t base = 0;
  for (; base + period <= n; base += period)
    for (int64_t offset = 0; offset < period; offset += 16) f(base + offset, offset, 16);
  for (int64_t offset = 0; base + offset < n; offset += 16) f(base + offset, offset, static_cast<int>(least(16, n - base - offset)));
}

// Adds to `totals[k][channel]` what `f(index, offset, count, V (&out)[K])` gives for each vector of `n` floats.
template <int K, class F>
INLINE void add_channel_sums(int64_t n, int64_t channels, int64_t period, double* const (&totals)[K], F f) {
  constexpr int CHAINS = 4;
  float lanes[16];
  int64_t first = 0;
  for (int64_t offset = 0; offset < period && offset < n; offset += 16) {
    Flat::V sums[CHAINS][K];
    for (auto& chain : sums)
      for (auto& sum : chain) sum = Flat::zero();
    Flat::V values[K] = {};
    int64_t at = offset;
    for (; at + (CHAINS - 1) * period + 16 <= n; at += CHAINS * period)
      for (int chain = 0; chain < CHAINS; ++chain) {
        f(at + chain * period, offset, 16, values);
        for (int k = 0; k < K; ++k) sums[chain][k] = Flat::add(sums[chain][k], values[k]);
      }
    for (int chain = 0; at + 16 <= n; at += period, ++chain) {
      f(at, offset, 16, values);
      for (int k = 0; k < K; ++k) sums[chain][k] = Flat::add(sums[chain][k], values[k]);
    }
    const int rest = at < n ? static_cast<int>(n - at) : 0;
    if (rest > 0) f(at, offset, rest, values);
    for (int k = 0; k < K; ++k) {
      const Flat::V sum = Flat::add(Flat::add(sums[0][k], sums[1][k]), Flat::add(sums[2][k], sums[3][k]));
      Flat::store(lanes, sum);
      int64_t c = first;
      for (int lane = 0; lane < 16; ++lane, c = c + 1 == channels ? 0 : c + 1) totals[k][c] += lanes[lane];
      if (rest == 0) continue;
      Flat::store(lanes, values[k]);
      c = first;
      for (int lane = 0; lane < rest; ++lane, c = c + 1 == channels ? 0 : c + 1) totals[k][c] += lanes[lane];
    }
    first = (first + 16) % channels;
  }
}

}  // namespace
