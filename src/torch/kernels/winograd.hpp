// Dense 3x3 convolutions of wide images by Winograd's minimal filtering F(2x2, 3x3): 16 products for a tile of 2x2 outputs
// in place of 36 (Lavin & Gray 2016, arXiv:1509.09308). Its matrices hold 0, ±1 and ½, so rounding stays that of direct
// sums.
//
// A tile's window of 4x4 inputs is evaluated at 16 points, and so are the weights; at each point images are multiplied
// with weights, tile by tile; 2x2 outputs are interpolated from the 16 products. Gradients of weights likewise: windows of
// the outputs' gradient times tiles of the inputs, summed at each point, then interpolated to 3x3.
//
// Each product is one chain of fused multiply-adds over inputs; each sum of a weight's gradient is one over the tiles of a
// strip. Blocks in registers change how often a value is read, not these orders.

#pragma once

#include "images.hpp"

namespace {

constexpr int64_t POINTS = 16;

// Whole vectors of channels.
INLINE bool has_tiled_weights(const ConvShape& s) {
  return s.kernel == 3 && !s.depthwise && s.inputs % 16 == 0 && s.outputs % 16 == 0;
}

// Whole tiles besides, and much to multiply. The blocks of all CNN presets stay below, so their results keep the bits that
// direct sums have always given.
INLINE bool is_tiled(const ConvShape& s) {
  constexpr int64_t PRODUCTS = 150'000;
  return has_tiled_weights(s) && s.height % 2 == 0 && s.width % 2 == 0 &&
         s.positions() * s.inputs * s.outputs >= PRODUCTS;
}

// Rows of tiles that are worked on together: points of them are read from memory close to the core.
INLINE int64_t tile_rows_at_a_time(const ConvShape& s) {
  constexpr int64_t FLOATS = 4096;
  return most(1, FLOATS / (s.width / 2 * most(s.inputs, s.outputs)));
}

INLINE int64_t tiled_images_at_a_time(const ConvShape& s) {
  return least(s.batch, most(1, tile_rows_at_a_time(s) / (s.height / 2)));
}

// Values of a strip of tiles at one point; those of the next follow in other sets of the cache.
INLINE int64_t plane_of(const ConvShape& s) {
  return tile_rows_at_a_time(s) * (s.width / 2) * most(s.inputs, s.outputs) + 16;
}

// Floats of room for `convolve_tiles` and `tiles_backward`.
INLINE int64_t tiles_room(const ConvShape& s) { return 2 * POINTS * plane_of(s); }

// ---- to the points and back

// Bᵀ of one dimension: a window's four values at the points 0, 1, -1 and ∞.
INLINE void evaluate_window(const Flat::V (&d)[4], Flat::V (&at)[4]) {
  at[0] = Flat::sub(d[0], d[2]);
  at[1] = Flat::add(d[1], d[2]);
  at[2] = Flat::sub(d[2], d[1]);
  at[3] = Flat::sub(d[1], d[3]);
}

// The windows of `rows` rows of tiles from row `first`, counted through all images: `to [point][tile][channel]`, points
// `plane` floats apart.
ALONE void evaluate_windows(const Padded& in, int64_t first, int64_t rows, float* to, int64_t plane) {
  const int64_t channels = in.channels, width = in.width / 2;
  for (int64_t r = 0; r < rows; ++r, to += width * channels)
    for (int64_t c = 0; c < channels; c += 16) {
      const float* top = in.data + in.line[2 * (first + r)] + c;
      // Columns of the window, each evaluated from top to bottom; neighbours share two.
      Flat::V columns[4][4];
      const auto column = [&](int64_t x, Flat::V(&at)[4]) INLINE_LAMBDA {
        Flat::V d[4];
        for (int y = 0; y < 4; ++y) d[y] = Flat::load(top + y * in.row + x * channels);
        evaluate_window(d, at);
      };
      column(0, columns[0]);
      column(1, columns[1]);
      for (int64_t t = 0; t < width; ++t) {
        column(2 * t + 2, columns[2]);
        column(2 * t + 3, columns[3]);
        for (int y = 0; y < 4; ++y) {
          const Flat::V row[4] = {columns[0][y], columns[1][y], columns[2][y], columns[3][y]};
          Flat::V at[4];
          evaluate_window(row, at);
          for (int x = 0; x < 4; ++x) Flat::store(to + (4 * y + x) * plane + t * channels + c, at[x]);
        }
        for (int y = 0; y < 4; ++y) columns[0][y] = columns[2][y], columns[1][y] = columns[3][y];
      }
    }
}

// Aᵀ of one dimension: two outputs of the products at four points.
INLINE void interpolate_outputs(const Flat::V (&at)[4], Flat::V (&y)[2]) {
  y[0] = Flat::add(Flat::add(at[0], at[1]), at[2]);
  y[1] = Flat::sub(Flat::sub(at[1], at[2]), at[3]);
}

// The outputs of `rows` rows of tiles, plus a bias unless that is null, into `to`, where these rows begin.
ALONE void interpolate_tiles(const float* from, int64_t plane, int64_t rows, int64_t width, int64_t channels,
                             const float* bias, float* to) {
  const int64_t row = 2 * width * channels;
  for (int64_t r = 0; r < rows; ++r, from += width * channels, to += 2 * row)
    for (int64_t t = 0; t < width; ++t)
      for (int64_t c = 0; c < channels; c += 16) {
        const float* tile = from + t * channels + c;
        Flat::V rows_of[4][2];
        for (int x = 0; x < 4; ++x) {
          Flat::V at[4];
          for (int y = 0; y < 4; ++y) at[y] = Flat::load(tile + (4 * y + x) * plane);
          interpolate_outputs(at, rows_of[x]);
        }
        for (int y = 0; y < 2; ++y) {
          const Flat::V at[4] = {rows_of[0][y], rows_of[1][y], rows_of[2][y], rows_of[3][y]};
          Flat::V out[2];
          interpolate_outputs(at, out);
          for (int x = 0; x < 2; ++x) {
            if (bias != nullptr) out[x] = Flat::add(out[x], Flat::load(bias + c));
            Flat::store(to + y * row + (2 * t + x) * channels + c, out[x]);
          }
        }
      }
}

// Two values as the points see the shorter factor of a weight's gradient; halves are taken at the end.
INLINE void evaluate_tile(Flat::V a, Flat::V b, Flat::V (&at)[4]) {
  at[0] = a;
  at[1] = Flat::add(a, b);
  at[2] = Flat::sub(a, b);
  at[3] = b;
}

// The 2x2 tiles of `rows` rows, which begin at `from` in dense images, as `evaluate_windows` lays them out.
ALONE void evaluate_tiles(const float* from, int64_t rows, int64_t width, int64_t channels, float* to, int64_t plane) {
  const int64_t row = 2 * width * channels;
  for (int64_t r = 0; r < rows; ++r, from += 2 * row, to += width * channels)
    for (int64_t t = 0; t < width; ++t)
      for (int64_t c = 0; c < channels; c += 16) {
        const float* tile = from + 2 * t * channels + c;
        Flat::V columns[2][4];
        for (int x = 0; x < 2; ++x)
          evaluate_tile(Flat::load(tile + x * channels), Flat::load(tile + row + x * channels), columns[x]);
        for (int y = 0; y < 4; ++y) {
          Flat::V at[4];
          evaluate_tile(columns[0][y], columns[1][y], at);
          for (int x = 0; x < 4; ++x) Flat::store(to + (4 * y + x) * plane + t * channels + c, at[x]);
        }
      }
}

// ---- at the points

// As many of `count` tiles as `TILES` divides times the weights of `G` vectors of outputs: `to [tile][outputs]`.
template <int TILES, int G>
ALONE void multiply_tiles(const float* tiles, const float* weights, float* to, int64_t count, int64_t inputs, int64_t outputs) {
  for (int64_t first = 0; first + TILES <= count; first += TILES, tiles += TILES * inputs, to += TILES * outputs) {
    Flat::V sums[TILES][G];
    for (auto& tile : sums)
      for (auto& sum : tile) sum = Flat::zero();
    const float* of_input = weights;
    for (int64_t i = 0; i < inputs; ++i, of_input += outputs) {
      Flat::V w[G];
      for (int g = 0; g < G; ++g) w[g] = Flat::load(of_input + g * 16);
      for (int t = 0; t < TILES; ++t) {
        const auto x = Flat::all(tiles[t * inputs + i]);
        for (int g = 0; g < G; ++g) sums[t][g] = Flat::fma(x, w[g], sums[t][g]);
      }
    }
    for (int t = 0; t < TILES; ++t)
      for (int g = 0; g < G; ++g) Flat::store(to + t * outputs + g * 16, sums[t][g]);
  }
}

template <int G>
INLINE void multiply_all_tiles(const float* from, const float* weights, float* to, int64_t count, int64_t inputs,
                               int64_t outputs) {
  constexpr int TILES = REGISTERS == 32 ? 8 : 4;
  const int64_t whole = count / TILES * TILES;
  multiply_tiles<TILES, G>(from, weights, to, count, inputs, outputs);
  multiply_tiles<1, G>(from + whole * inputs, weights, to + whole * outputs, count - whole, inputs, outputs);
}

// All tiles at all points. `weights`: as `pack_tiled` makes them.
INLINE void multiply_points(const float* from, const float* weights, float* to, int64_t plane, int64_t count, int64_t inputs,
                            int64_t outputs) {
  for (int64_t p = 0; p < POINTS; ++p, from += plane, to += plane, weights += inputs * outputs) {
    int64_t o = 0;
    if constexpr (REGISTERS == 32)
      for (; o + 32 <= outputs; o += 32) multiply_all_tiles<2>(from, weights + o, to + o, count, inputs, outputs);
    for (; o < outputs; o += 16) multiply_all_tiles<1>(from, weights + o, to + o, count, inputs, outputs);
  }
}

// Adds Σ window·tile over `count` of both, of all channels of the windows and `G` vectors of the tiles', to `totals
// [channels of windows][channels of tiles]`.
template <int G>
ALONE void add_products(const float* windows, const float* tiles, int64_t count, int64_t of_windows, int64_t of_tiles,
                        double* totals) {
  // A divisor of 16, as many as there are registers for.
  constexpr int ROWS = REGISTERS == 32 ? 8 : 4;
  float lanes[16];
  for (int64_t first = 0; first < of_windows; first += ROWS) {
    Flat::V sums[ROWS][G];
    for (auto& row : sums)
      for (auto& sum : row) sum = Flat::zero();
    const float *window = windows + first, *tile = tiles;
    for (int64_t t = 0; t < count; ++t, window += of_windows, tile += of_tiles) {
      Flat::V x[G];
      for (int g = 0; g < G; ++g) x[g] = Flat::load(tile + g * 16);
      for (int r = 0; r < ROWS; ++r) {
        const auto d = Flat::all(window[r]);
        for (int g = 0; g < G; ++g) sums[r][g] = Flat::fma(d, x[g], sums[r][g]);
      }
    }
    for (int r = 0; r < ROWS; ++r, totals += of_tiles)
      for (int g = 0; g < G; ++g) {
        Flat::store(lanes, sums[r][g]);
        for (int lane = 0; lane < 16; ++lane) totals[g * 16 + lane] += lanes[lane];
      }
  }
}

INLINE void add_points(const float* windows, const float* tiles, int64_t plane, int64_t count, int64_t of_windows,
                       int64_t of_tiles, double* totals) {
  for (int64_t p = 0; p < POINTS; ++p, windows += plane, tiles += plane, totals += of_windows * of_tiles) {
    int64_t c = 0;
    if constexpr (REGISTERS == 32)
      for (; c + 32 <= of_tiles; c += 32) add_products<2>(windows, tiles + c, count, of_windows, of_tiles, totals + c);
    for (; c < of_tiles; c += 16) add_products<1>(windows, tiles + c, count, of_windows, of_tiles, totals + c);
  }
}

// ---- whole convolutions

// Calls `f(first, rows)` for each strip of the rows of tiles of `images` images.
template <class F>
INLINE void over_strips(const ConvShape& s, int64_t images, F f) {
  const int64_t all = images * s.height / 2, together = tile_rows_at_a_time(s);
  for (int64_t first = 0; first < all; first += together) f(first, least(together, all - first));
}

// As `convolve`, with weights as `pack_tiled` makes them. `room`: as `tiles_room` says.
void convolve_tiles(const ConvShape& s, const Padded& in, int64_t images, const float* weights, const float* bias, float* out,
                    float* room) {
  const int64_t width = s.width / 2, plane = plane_of(s), channels = s.outputs;
  float *windows = room, *products = room + POINTS * plane;
  over_strips(s, images, [&](int64_t first, int64_t rows) INLINE_LAMBDA {
    evaluate_windows(in, first, rows, windows, plane);
    multiply_points(windows, weights, products, plane, rows * width, s.inputs, channels);
    interpolate_tiles(products, plane, rows, width, channels, bias, out + first * 4 * width * channels);
  });
}

// The way back over `images` padded gradients `dz`: the gradient of x to `x_grad`, where there is room for it, and the sums
// of the weights' gradients at the points, where there are `totals [point][outputs][inputs]`. `backwards`: weights as
// `pack_tiled` turns them.
void tiles_backward(const ConvShape& s, const float* x, const Padded& dz, int64_t images, const float* backwards,
                    float* x_grad, double* totals, float* room) {
  const int64_t width = s.width / 2, plane = plane_of(s), channels = s.inputs;
  float *windows = room, *other = room + POINTS * plane;
  over_strips(s, images, [&](int64_t first, int64_t rows) INLINE_LAMBDA {
    const int64_t begin = first * 4 * width * channels, count = rows * width;
    evaluate_windows(dz, first, rows, windows, plane);
    if (totals != nullptr) {
      evaluate_tiles(x + begin, rows, width, channels, other, plane);
      add_points(windows, other, plane, count, s.outputs, channels, totals);
    }
    if (x_grad != nullptr) {
      multiply_points(windows, backwards, other, plane, count, s.outputs, channels);
      interpolate_tiles(other, plane, rows, width, channels, nullptr, x_grad + begin);
    }
  });
}

// ---- weights

INLINE int64_t tiled_weights(const ConvShape& s) { return POINTS * s.inputs * s.outputs; }

// G of one dimension: three weights at the four points.
INLINE void evaluate_weights(double a, double b, double c, double (&at)[4]) {
  at[0] = a;
  at[1] = (a + b + c) / 2;
  at[2] = (a - b + c) / 2;
  at[3] = c;
}

// Weights `[outputs, 3, 3, inputs]`, those of output `o` times `scale(o)`, at the points: `[point][inputs][outputs]`; for
// the way back turned by 180 degrees, `[point][outputs][inputs]`.
template <class F>
INLINE void pack_tiled(const ConvShape& s, const float* weights, bool backwards, float* packed, F scale) {
  const int64_t of_point = s.inputs * s.outputs;
  for (int64_t o = 0; o < s.outputs; ++o)
    for (int64_t i = 0; i < s.inputs; ++i) {
      double rows[3][4];
      for (int y = 0; y < 3; ++y) {
        const auto weight = [&](int64_t x) INLINE_LAMBDA {
          const int64_t tap = 3 * y + x;
          return static_cast<double>(scale(o, weights[(o * 9 + (backwards ? 8 - tap : tap)) * s.inputs + i]));
        };
        evaluate_weights(weight(0), weight(1), weight(2), rows[y]);
      }
      float* to = packed + (backwards ? o * s.inputs + i : i * s.outputs + o);
      for (int x = 0; x < 4; ++x) {
        double at[4];
        evaluate_weights(rows[0][x], rows[1][x], rows[2][x], at);
        for (int y = 0; y < 4; ++y) to[(4 * y + x) * of_point] = static_cast<float>(at[y]);
      }
    }
}

// Three values of the sums at the four points, from the last to the first: where a window lies before a tile, the weight
// is behind.
INLINE void interpolate_weights(const double (&at)[4], double (&w)[3]) {
  const double even = (at[1] + at[2]) / 2;
  w[2] = at[0] + even;
  w[1] = (at[1] - at[2]) / 2;
  w[0] = even - at[3];
}

// Totals of `tiles_backward` as a gradient in the weights' own layout.
void unpack_tiled_grads(const ConvShape& s, const double* totals, float* grad) {
  const int64_t of_point = s.inputs * s.outputs;
  for (int64_t o = 0; o < s.outputs; ++o)
    for (int64_t i = 0; i < s.inputs; ++i) {
      const double* from = totals + o * s.inputs + i;
      double rows[3][4];
      for (int x = 0; x < 4; ++x) {
        const double at[4] = {from[x * of_point], from[(4 + x) * of_point], from[(8 + x) * of_point], from[(12 + x) * of_point]};
        double w[3];
        interpolate_weights(at, w);
        for (int y = 0; y < 3; ++y) rows[y][x] = w[y];
      }
      for (int y = 0; y < 3; ++y) {
        double w[3];
        interpolate_weights(rows[y], w);
        for (int x = 0; x < 3; ++x) grad[(o * 9 + 3 * y + x) * s.inputs + i] = static_cast<float>(w[x]);
      }
    }
}

}  // namespace
