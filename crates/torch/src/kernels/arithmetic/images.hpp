// Channels-last images in scratch storage: borders of zeros, tables of positions, sums over channels.

#pragma once

#include "lanes.hpp"
#include "shapes.hpp"

namespace {

using simic::ConvShape;
using simic::packed_channels;
using simic::packed_weights;

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
  INLINE int64_t* take_table(int64_t entries) { return reinterpret_cast<int64_t*>(take(2 * entries)); }
  INLINE double* take_doubles(int64_t entries) { return reinterpret_cast<double*>(take(2 * entries)); }
};

// Fetches the cache line of a float that is read or written soon, and does nothing after the end of an array.
INLINE void fetch(const float* at) { __builtin_prefetch(at, 0, 2); }

INLINE void zero(float* to, int64_t n) { std::memset(to, 0, n * sizeof(float)); }
INLINE void zero(double* to, int64_t n) { std::memset(to, 0, n * sizeof(double)); }

// A few images with borders of zeros, as a convolution reads them.
struct Padded {
  int64_t height, width, channels, pad;
  // Floats.
  int64_t row, image;
  // Images that are interleaved in `data`, value by value; 1 where they follow each other.
  int64_t together;
  // Offset of the window of each row's first position (of its top left corner), of images that follow each other.
  const int64_t* line;
  float* data;

  INLINE int64_t positions() const { return height * width; }
};

// Floats beyond a padded image that a kernel may read, never use.
constexpr int64_t SLACK = 64;

INLINE int64_t padded_image(const ConvShape& s, int64_t channels) {
  return (s.height + 2 * s.pad()) * (s.width + 2 * s.pad()) * channels;
}

INLINE int64_t padded_floats(const ConvShape& s, int64_t channels, int64_t images, int64_t together) {
  return (images + together - 1) / together * together * padded_image(s, channels) + SLACK;
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
  const int64_t by_size = FLOATS / padded_floats(s, widest, 1, 1);
  const int64_t in_lanes = most(images_in_lanes(s.inputs), images_in_lanes(s.outputs));
  const int64_t wanted = most(1, least(by_positions, by_size));
  return least(s.batch, (wanted + in_lanes - 1) / in_lanes * in_lanes);
}

// Only sizes.
INLINE Padded unfilled(const ConvShape& s, int64_t channels) {
  const int64_t row = (s.width + 2 * s.pad()) * channels;
  return {s.height, s.width, channels, s.pad(), row, (s.height + 2 * s.pad()) * row, 1, nullptr, nullptr};
}

// With the table of lines of `images` images.
INLINE Padded lined_up(Padded p, int64_t images, Scratch& scratch) {
  int64_t* line = scratch.take_table(images * p.height);
  p.line = line;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < p.height; ++y) *line++ = n * p.image + y * p.row;
  return p;
}

INLINE Padded pad(const ConvShape& s, int64_t channels, int64_t images, int64_t together, Scratch& scratch) {
  Padded p = lined_up(unfilled(s, channels), (images + together - 1) / together * together, scratch);
  p.together = together;
  p.data = scratch.take(padded_floats(s, channels, images, together));
  zero(p.data, padded_floats(s, channels, images, together));
  return p;
}

// The same table over dense images that need no border; no kernel may read beyond their end.
INLINE Padded over_dense(Padded p, const float* data) {
  p.data = const_cast<float*>(data);
  p.together = 1;
  return p;
}

// Scratch that `pad` takes.
INLINE int64_t pad_scratch(const ConvShape& s, int64_t channels, int64_t images, int64_t together) {
  return padded_floats(s, channels, images, together) + 2 * (images + together) * s.height + 128;
}

// ---- interleaved images

// One vector of each of `M` images as `M` vectors of all of them, value by value.
template <int M>
INLINE void interleave_vectors(Flat::V (&v)[M]) {
  // Pairs, then pairs of pairs: a sequence with the one half the list away, so that the last are in order.
  Flat::V next[M];
#pragma GCC unroll 4
  for (int sequences = M, length = 1; sequences > 1; sequences /= 2, length *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < M / 2; ++i) Flat::template merge<1>(v[i], v[i + M / 2], next[2 * i], next[2 * i + 1]);
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) v[i] = next[i];
  }
}

// `floats` values of each of `M` images, those of one that is null being zeros.
template <int M>
INLINE void interleave_run(const float* const (&from)[M], int64_t floats, float* to) {
  const auto vectors = [&](int64_t at, int n) INLINE_LAMBDA {
    Flat::V v[M];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) v[m] = from[m] == nullptr ? Flat::zero() : Flat::load_at_most(from[m] + at, n);
    interleave_vectors<M>(v);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
      if (n * M > m * 16) Flat::store_at_most(to + at * M + m * 16, v[m], n * M - m * 16);
  };
  int64_t at = 0;
  for (; at + 16 <= floats; at += 16) vectors(at, 16);
  if (at < floats) vectors(at, static_cast<int>(floats - at));
}

// Beginnings of the images of a group in `from`, in which images are `floats` apart; null after the last image.
template <int M>
INLINE void find_group(const float* from, int64_t floats, int64_t first, int64_t images, const float* (&of_group)[M]) {
  for (int64_t m = 0; m < M; ++m) of_group[m] = first + m < images ? from + (first + m) * floats : nullptr;
}

// Floats of room that `interleave` needs for `images` images of `floats` each: the last group may be of zeros for the
// most part.
INLINE int64_t interleave_room(int64_t floats, int64_t images) { return (images + 15) / 16 * 16 * floats + 16 * SLACK; }

// Groups of `M` of `images` images of `floats` each, which follow each other at `from`. Groups are `M·floats` apart.
template <int M>
INLINE const float* interleave(const float* from, int64_t images, int64_t floats, float* room) {
  for (int64_t first = 0; first < images; first += M) {
    const float* group[M];
    find_group<M>(from, floats, first, images, group);
    interleave_run<M>(group, floats, room + first * floats);
  }
  return room;
}

// The data of padded images as groups of `M`.
template <int M>
INLINE const float* interleaved(const Padded& p, int64_t images, float* room) {
  return p.together == M ? p.data : interleave<M>(p.data, images, p.image, room);
}

template <int M>
INLINE void fill_groups(const Padded& p, const float* from, int64_t images) {
  const int64_t row = p.width * p.channels;
  for (int64_t first = 0; first < images; first += M) {
    const float* group[M];
    find_group<M>(from, p.height * row, first, images, group);
    float* to = p.data + first * p.image + p.pad * (p.row + p.channels) * M;
    for (int64_t y = 0; y < p.height; ++y, to += p.row * M) {
      interleave_run<M>(group, row, to);
      for (auto& image : group)
        if (image != nullptr) image += row;
    }
  }
}

// Copies dense images into the middle of their borders.
INLINE void fill(const Padded& p, const float* from, int64_t images) {
  switch (p.together) {
    case 2: return fill_groups<2>(p, from, images);
    case 4: return fill_groups<4>(p, from, images);
    case 16: return fill_groups<16>(p, from, images);
  }
  const int64_t row = p.width * p.channels;
  for (int64_t n = 0; n < images; ++n) {
    float* to = p.data + n * p.image + p.pad * (p.row + p.channels);
    for (int64_t y = 0; y < p.height; ++y, to += p.row, from += row) std::memcpy(to, from, row * sizeof(float));
  }
}

// ---- values that repeat with the channels

// Length of the shortest run of whole vectors that begins and ends with a pixel.
INLINE int64_t period_of(int64_t channels) {
  const int64_t common = channels & -channels;
  return channels * (16 / (common > 16 ? 16 : common));
}

INLINE void repeat(const float* values, int64_t channels, int64_t period, float* to) {
  for (int64_t at = 0; at < period; at += channels)
    for (int64_t c = 0; c < channels; ++c) to[at + c] = values[c];
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

// Adds `count` lanes to the totals of their channels, the first of which is `c`.
INLINE void add_lanes(const float* lanes, int64_t count, int64_t c, int64_t channels, double* totals) {
  if (c + 16 <= channels && count == 16) {
    for (int lane = 0; lane < 16; ++lane) totals[c + lane] += lanes[lane];
    return;
  }
  for (int64_t lane = 0; lane < count; ++lane, c = c + 1 == channels ? 0 : c + 1) totals[c] += lanes[lane];
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
      add_lanes(lanes, 16, first, channels, totals[k]);
      if (rest == 0) continue;
      Flat::store(lanes, values[k]);
      add_lanes(lanes, rest, first, channels, totals[k]);
    }
    first = (first + 16) % channels;
  }
}

}  // namespace
