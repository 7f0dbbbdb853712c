// Dense convolutions with kernels of 1 or 3: outputs of a tile of positions, and gradients of a tile of weights, in
// registers.
//
// Lanes are output channels. Where there are at most 8 of these, the lanes are filled up with images: several are
// interleaved, so that one read brings the same pixel of each, and lane `channel·images + image` is its output.
//
// Each output is one chain of fused multiply-adds over kernel rows, inputs and kernel columns. Each weight's gradient is
// one chain over the positions of a chunk, for each of the images that are interleaved. Tiles change how often a value
// is read, not these orders.

#pragma once

#include "images.hpp"

namespace {

using Wide = Lanes<16>;

// Weights are packed by lanes: lane `l` of 16 belongs to channel `l / images_in_lanes(channels)`.
INLINE int64_t channel_of_lane(int64_t lane, int64_t channels) { return lane / images_in_lanes(channels); }

// Writes the outputs of one position: `G` vectors of channels of one image, or one vector of `M` images, `of_image` apart.
// `WHOLE`: all lanes count; else `valid` channels of `images` images.
template <int G, int M, bool WHOLE>
INLINE void finish(const Wide::V (&sums)[G], float* to, int64_t valid, int64_t images, int64_t of_image) {
  using Halves = Lanes<8>;
  for (int g = 0; g < G; ++g) {
    if constexpr (M == 1) {
      if (WHOLE || g < G - 1) Wide::store(to + g * 16, sums[g]);
      else Wide::store_at_most(to + g * 16, sums[g], static_cast<int>(valid - g * 16));
    } else if constexpr (M == 2 && WHOLE) {
      Halves::V halves[2];
      Wide::halves(Wide::template transpose<M>(sums[g]), halves);
      Halves::store(to, halves[0]);
      Halves::store(to + of_image, halves[1]);
    } else {
      float lanes[16];
      Wide::store(lanes, Wide::template transpose<M>(sums[g]));
      for (int m = 0; m < M; ++m) {
        if (m >= images) break;
        if (WHOLE) std::memcpy(to + m * of_image, lanes + m * (16 / M), 16 / M * sizeof(float));
        else std::memcpy(to + m * of_image, lanes + m * (16 / M), valid * sizeof(float));
      }
    }
  }
}

// A convolution over rows of padded images, or of groups of `M` interleaved ones.
struct Rows {
  const Padded* in;
  // Padded images, or interleaved groups of them.
  const float* data;
  const float* weights;
  int64_t stride;
  // One value a lane, or null.
  const float* bias;
  float* out;
  int64_t images, channels, valid;
};

// `COLUMNS` neighbouring columns of `ROWS` rows at a time, from column `column` of the rows from `first` to `lines`, as
// many as `ROWS` divides. A value that is read serves the `K` columns that it lies under.
template <int K, int G, int M, int ROWS, int COLUMNS>
ALONE void convolve_columns(const Rows& rows, int64_t first, int64_t lines, int64_t column) {
  const Padded& in = *rows.in;
  const int64_t inputs = in.channels, step = inputs * M, row = in.row * M, stride = rows.stride, tap = inputs * stride;
  const int64_t of_image = in.positions() * rows.channels, of_row = in.width * rows.channels;
  // Row and group's images of the next line, and the place of its outputs.
  int64_t y = first % in.height, images = rows.images - first / in.height * M;
  float* to = rows.out + first / in.height * M * of_image + y * of_row + column * rows.channels;
  for (int64_t line = first; line < lines; line += ROWS) {
    const float* at[ROWS];
    for (int r = 0; r < ROWS; ++r) at[r] = rows.data + in.line[line + r] * M + column * step;
    Wide::V sums[ROWS][COLUMNS][G];
    for (int g = 0; g < G; ++g) {
      const auto start = rows.bias == nullptr ? Wide::zero() : Wide::load(rows.bias + g * 16);
      for (auto& columns : sums)
        for (auto& sum : columns) sum[g] = start;
    }
    const float* weight = rows.weights;
    for (int dy = 0; dy < K; ++dy, weight += (K - 1) * tap) {
      for (int64_t i = 0; i < inputs; ++i, weight += stride) {
        Wide::V w[K][G];
        for (int dx = 0; dx < K; ++dx)
          for (int g = 0; g < G; ++g) w[dx][g] = Wide::load(weight + dx * tap + g * 16);
        for (int r = 0; r < ROWS; ++r) {
          const float* from = at[r] + dy * row + i * M;
          for (int q = 0; q < COLUMNS + K - 1; ++q, from += step) {
            const auto x = Wide::template repeated<M>(from);
            for (int dx = 0; dx < K; ++dx)
              if (q - dx >= 0 && q - dx < COLUMNS)
                for (int g = 0; g < G; ++g) sums[r][q - dx][g] = Wide::fma(x, w[dx][g], sums[r][q - dx][g]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r) {
      if (images >= M && rows.valid >= G * 16 / M) {
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; ++c) finish<G, M, true>(sums[r][c], to + c * rows.channels, 16 / M, M, of_image);
      } else {
#pragma GCC unroll 8
        for (int c = 0; c < COLUMNS; ++c) finish<G, M, false>(sums[r][c], to + c * rows.channels, rows.valid, images, of_image);
      }
      to += of_row;
      if (++y == in.height) y = 0, images -= M, to += (M - 1) * of_image;
    }
  }
}

template <int K, int G, int M>
INLINE void convolve_rows(const Rows& rows, int64_t lines) {
  // Sums and weights in registers, at levels with half as many of half the width as well.
  constexpr int TILE = REGISTERS == 32 ? 8 : 4;
  const auto all_lines = [&](auto together, auto alone, int64_t count, int64_t column) INLINE_LAMBDA {
    const int64_t whole = lines / count * count;
    together(rows, 0, whole, column);
    if (whole < lines) alone(rows, whole, lines, column);
  };
  const int64_t width = rows.in->width;
  int64_t c = 0;
  for (; c + TILE <= width; c += TILE)
    if constexpr (TILE == 8 && G == 1) all_lines(convolve_columns<K, G, M, 2, TILE>, convolve_columns<K, G, M, 1, TILE>, 2, c);
    else convolve_columns<K, G, M, 1, TILE>(rows, 0, lines, c);
  if constexpr (TILE == 8)
    if (c + 4 <= width) all_lines(convolve_columns<K, G, M, 2, 4>, convolve_columns<K, G, M, 1, 4>, 2, c), c += 4;
  if (c + 2 <= width)
    all_lines(convolve_columns<K, G, M, TILE / 2, 2>, convolve_columns<K, G, M, 1, 2>, TILE / 2, c), c += 2;
  if (c < width) all_lines(convolve_columns<K, G, M, TILE / 2, 1>, convolve_columns<K, G, M, 1, 1>, TILE / 2, c);
}

template <int K, int M>
INLINE void convolve_interleaved(Rows rows, float* room) {
  const int64_t groups = (rows.images + M - 1) / M;
  rows.data = interleaved<M>(*rows.in, rows.images, room);
  convolve_rows<K, 1, M>(rows, groups * rows.in->height);
}

template <int K>
INLINE void convolve_kernel(Rows rows, float* room) {
  const int64_t channels = rows.channels;
  switch (images_in_lanes(channels)) {
    case 16: return convolve_interleaved<K, 16>(rows, room);
    case 4: return convolve_interleaved<K, 4>(rows, room);
    case 2: return convolve_interleaved<K, 2>(rows, room);
  }
  const int64_t lines = rows.images * rows.in->height;
  const auto next = [&](int64_t by) INLINE_LAMBDA {
    rows.weights += by, rows.out += by, rows.valid -= by;
    if (rows.bias != nullptr) rows.bias += by;
  };
  if constexpr (REGISTERS == 32)
    for (; rows.valid > 16; next(32)) convolve_rows<K, 2, 1>(rows, lines);
  for (; rows.valid > 0; next(16)) convolve_rows<K, 1, 1>(rows, lines);
}

// The convolution of `images` padded images, which follow each other or are interleaved as `channels` wants them: `out
// [images·positions, channels]`, dense. `bias` has packed_channels entries or is null. `room`: as `convolution_room` says.
void convolve(const Padded& in, int64_t images, int64_t kernel, const float* weights, const float* bias, float* out,
              int64_t channels, float* room) {
  float by_lane[16] = {};
  if (bias != nullptr && channels <= 8) {
    for (int64_t lane = 0; lane < 16; ++lane)
      if (channel_of_lane(lane, channels) < channels) by_lane[lane] = bias[channel_of_lane(lane, channels)];
    bias = by_lane;
  }
  const Rows rows = {&in, in.data, weights, packed_channels(channels), bias, out, images, channels, channels};
  if (kernel == 1) convolve_kernel<1>(rows, room);
  else convolve_kernel<3>(rows, room);
}

// ---- gradients of weights

// `INPUTS` inputs of all columns of the `ROWS` kernel rows from `dy`. A value of x, which needs no border, meets the
// gradients of the `ROWS·K` positions that it lies under. `grad`: that of the first position, the first channel of the
// vectors.
template <int K, int G, int M, int INPUTS, int ROWS>
ALONE void weight_grads_columns(const float* x, const Padded& in, const float* grad, const Padded& out, int64_t groups,
                                int64_t dy, double* totals, int64_t stride) {
  const int64_t inputs = in.channels, channels = out.channels;
  Wide::V sums[ROWS][K][INPUTS][G];
  for (auto& rows : sums)
    for (auto& columns : rows)
      for (auto& input : columns)
        for (auto& sum : input) sum = Wide::zero();
  for (int64_t n = 0; n < groups; ++n)
    for (int64_t y = 0; y < in.height; ++y) {
      const float* under = grad + (n * out.image + (y + K / 2 - dy) * out.row) * M;
      for (int64_t column = 0; column < in.width; ++column, x += inputs * M, under += channels * M) {
        Wide::V values[INPUTS];
        for (int i = 0; i < INPUTS; ++i) values[i] = Wide::template repeated<M>(x + i * M);
        for (int r = 0; r < ROWS; ++r)
          for (int dx = 0; dx < K; ++dx)
            for (int g = 0; g < G; ++g) {
              // A value after the last channel is a neighbour's, and its sum is thrown away.
              const auto of = Wide::load(under - r * out.row * M + (K / 2 - dx) * channels * M + g * 16);
              for (int i = 0; i < INPUTS; ++i) sums[r][dx][i][g] = Wide::fma(values[i], of, sums[r][dx][i][g]);
            }
      }
    }
  float lanes[16];
  for (int r = 0; r < ROWS; ++r)
    for (int dx = 0; dx < K; ++dx)
      for (int i = 0; i < INPUTS; ++i)
        for (int g = 0; g < G; ++g) {
          Wide::store(lanes, sums[r][dx][i][g]);
          double* to = totals + (((dy + r) * K + dx) * inputs + i) * stride + g * 16;
          for (int lane = 0; lane < 16; ++lane) to[lane] += lanes[lane];
        }
}

template <int K, int G, int M, int INPUTS>
INLINE void weight_grads_tile(const float* x, const Padded& in, const float* grad, const Padded& out, int64_t groups,
                              double* totals, int64_t stride) {
  // All kernel rows at once where registers hold their sums and what these are made of.
  constexpr int ROWS = REGISTERS == 32 && K * K * INPUTS * G + INPUTS + 2 <= REGISTERS ? K : 1;
  for (int64_t dy = 0; dy < K; dy += ROWS)
    weight_grads_columns<K, G, M, INPUTS, ROWS>(x, in, grad, out, groups, dy, totals, stride);
}

template <int K, int G, int M>
INLINE void weight_grads_rows(const float* x, const Padded& in, const float* grad, const Padded& out, int64_t groups,
                              double* totals, int64_t stride) {
  // About as many sums as hide the time that each takes, and no more than there are registers.
  constexpr int MOST = REGISTERS == 32 ? 4 : K == 1 ? 4 : 2;
  const float* first = grad + (K / 2) * (out.row + out.channels) * M;
  int64_t i = 0;
  const auto tile = [&](auto kernel) INLINE_LAMBDA {
    kernel(x + i * M, in, first, out, groups, totals + i * stride, stride);
  };
  for (; i + MOST <= in.channels; i += MOST) tile(weight_grads_tile<K, G, M, MOST>);
  switch (in.channels - i) {
    case 3: tile(weight_grads_tile<K, G, M, MOST == 4 ? 3 : 1>); break;
    case 2: tile(weight_grads_tile<K, G, M, MOST == 4 ? 2 : 1>); break;
    case 1: tile(weight_grads_tile<K, G, M, 1>);
  }
}

template <int K, int M>
INLINE void weight_grads_interleaved(const float* x, const Padded& in, const Padded& out, int64_t images, double* totals,
                                     float* room) {
  const int64_t groups = (images + M - 1) / M;
  const float* of_x = interleave<M>(x, images, in.positions() * in.channels, room);
  const float* of_grad = interleaved<M>(out, images, room + interleave_room(in.positions() * in.channels, images));
  weight_grads_rows<K, 1, M>(of_x, in, of_grad, out, groups, totals, 16);
}

template <int K>
INLINE void weight_grads_kernel(const float* x, const Padded& in, const Padded& out, int64_t images, double* totals,
                                float* room) {
  const int64_t channels = out.channels, stride = packed_channels(channels);
  switch (images_in_lanes(channels)) {
    case 16: return weight_grads_interleaved<K, 16>(x, in, out, images, totals, room);
    case 4: return weight_grads_interleaved<K, 4>(x, in, out, images, totals, room);
    case 2: return weight_grads_interleaved<K, 2>(x, in, out, images, totals, room);
  }
  int64_t c = 0;
  if constexpr (REGISTERS == 32)
    for (; c + 16 < channels; c += 32) weight_grads_rows<K, 2, 1>(x, in, out.data + c, out, images, totals + c, stride);
  for (; c < channels; c += 16) weight_grads_rows<K, 1, 1>(x, in, out.data + c, out, images, totals + c, stride);
}

// Adds the gradients of the weights over `images` dense images `x`, of the shape of `in`, to `totals [elements,
// packed_channels]`, one per lane. `grad` has a border of zeros; its images follow each other or are interleaved as its
// channels want them. `room`: as `convolution_room` says.
void add_weight_grads(const float* x, const Padded& in, const Padded& grad, int64_t images, int64_t kernel, double* totals,
                      float* room) {
  if (kernel == 1) weight_grads_kernel<1>(x, in, grad, images, totals, room);
  else weight_grads_kernel<3>(x, in, grad, images, totals, room);
}

// Floats of room for `convolve`, there and back, and for `add_weight_grads`, over a chunk of images.
INLINE int64_t convolution_room(const ConvShape& s, int64_t images) {
  return interleave_room(padded_image(s, s.inputs), images) + interleave_room(padded_image(s, s.outputs), images);
}

// ---- weights

// Weights `[outputs, k, k, inputs]` (channels-last) as `[k·k·inputs, packed_channels(outputs)]`, one per lane.
void pack(const ConvShape& s, const float* weights, float* packed) {
  const int64_t elements = s.elements(), stride = packed_channels(s.outputs);
  for (int64_t first = 0; first < stride; first += 16)
    for (int64_t e = 0; e < elements; e += 16) {
      const int count = static_cast<int>(least(16, elements - e));
      Flat::V v[16];
      for (int lane = 0; lane < 16; ++lane) {
        const int64_t o = channel_of_lane(first + lane, s.outputs);
        v[lane] = o < s.outputs ? Flat::load_at_most(weights + o * elements + e, count) : Flat::zero();
      }
      interleave_vectors<16>(v);
      for (int i = 0; i < count; ++i) Flat::store(packed + (e + i) * stride + first, v[i]);
    }
}

// The weights of the convolution that carries gradients back: turned by 180 degrees, channels exchanged:
// `[k·k·outputs, packed_channels(inputs)]`.
void pack_backwards(const ConvShape& s, const float* weights, float* packed) {
  const int64_t taps = s.kernel * s.kernel, stride = packed_channels(s.inputs);
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t o = 0; o < s.outputs; ++o) {
      const float* from = weights + (o * taps + taps - 1 - tap) * s.inputs;
      float* to = packed + (tap * s.outputs + o) * stride;
      for (int64_t lane = 0; lane < stride; ++lane) {
        const int64_t i = channel_of_lane(lane, s.inputs);
        to[lane] = i < s.inputs ? from[i] : 0;
      }
    }
}

// Totals as a gradient in the weights' own layout, `[outputs, k, k, inputs]`.
void unpack_grads(const ConvShape& s, const double* totals, float* grad) {
  const int64_t elements = s.elements(), stride = packed_channels(s.outputs), images = images_in_lanes(s.outputs);
  for (int64_t o = 0; o < s.outputs; ++o)
    for (int64_t e = 0; e < elements; ++e) {
      double sum = 0;
      for (int64_t m = 0; m < images; ++m) sum += totals[e * stride + o * images + m];
      grad[o * elements + e] = static_cast<float>(sum);
    }
}

}  // namespace
