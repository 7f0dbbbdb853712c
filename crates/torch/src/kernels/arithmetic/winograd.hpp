// Dense 3x3 convolutions of wide images by Winograd's minimal filtering F(2x2, 3x3): 16 products for a tile of 2x2 outputs
// in place of 36 (Lavin & Gray 2016, arXiv:1509.09308). Its matrices hold 0, ±1 and ½, so rounding stays that of direct
// sums.
//
// A tile's window of 4x4 inputs is evaluated at 16 points, and so are the weights; at each point images are multiplied
// with weights, tile by tile; 2x2 outputs are interpolated from the 16 products. Gradients of weights likewise: windows of
// the outputs' gradient times tiles of the inputs, summed at each point, then interpolated to 3x3.
//
// What the next row of tiles reads and writes in the images is fetched while this one is transformed: rows lie in pages of
// their own, where the core does not look ahead.
//
// Each product is one chain of fused multiply-adds over inputs; each sum of a weight's gradient is one over the tiles of a
// strip.

#pragma once

#include "products.hpp"

namespace {

constexpr int64_t POINTS = 16;

// Whole vectors of channels, no positions left out.
INLINE bool has_tiled_weights(const ConvShape& s) {
  return s.kernel == 3 && s.stride == 1 && !s.depthwise && s.inputs % 16 == 0 && s.outputs % 16 == 0;
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
INLINE int64_t tiles_room(const ConvShape& s) { return 2 * POINTS * plane_of(s) + s.width * most(s.inputs, s.outputs); }

// ---- to the points and back

// Bᵀ of one dimension: a window's four values at the points 0, 1, -1 and ∞.
INLINE void evaluate_window(const Flat::V (&d)[4], Flat::V (&at)[4]) {
  at[0] = Flat::sub(d[0], d[2]);
  at[1] = Flat::add(d[1], d[2]);
  at[2] = Flat::sub(d[2], d[1]);
  at[3] = Flat::sub(d[1], d[3]);
}

// The windows of `rows` rows of tiles from row `first`, counted through all images, which are dense: `to
// [point][tile][channel]`, points `plane` floats apart. `zeros`: a row of them, as the images' border.
ALONE void evaluate_windows(const float* images, int64_t height, int64_t width, int64_t channels, const float* zeros,
                            int64_t first, int64_t rows, float* to, int64_t plane) {
  const int64_t row = 2 * width * channels;
  for (int64_t r = 0; r < rows; ++r, to += width * channels) {
    const int64_t y = 2 * (first + r) % height;
    const float* line = images + 2 * (first + r) * row;
    const float* lines[4] = {y == 0 ? zeros : line - row, line, line + row, y + 2 == height ? zeros : line + 2 * row};
    for (int64_t c = 0; c < channels; c += 16) {
      // Columns of the window, each evaluated from top to bottom; neighbours share two.
      Flat::V columns[4][4];
      const auto column = [&](int64_t x, Flat::V(&at)[4]) INLINE_LAMBDA {
        Flat::V d[4];
        for (int i = 0; i < 4; ++i) d[i] = Flat::load(lines[i] + x * channels + c);
        for (int i = 3; i < 5; ++i) fetch(line + i * row + x * channels + c);
        evaluate_window(d, at);
      };
      for (auto& border : columns[0]) border = Flat::zero();
      column(0, columns[1]);
      for (int64_t t = 0; t < width; ++t) {
        column(2 * t + 1, columns[2]);
        if (t + 1 < width) column(2 * t + 2, columns[3]);
        else
          for (auto& border : columns[3]) border = Flat::zero();
        for (int i = 0; i < 4; ++i) {
          const Flat::V across[4] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
          Flat::V at[4];
          evaluate_window(across, at);
          for (int x = 0; x < 4; ++x) Flat::store(to + (4 * i + x) * plane + t * channels + c, at[x]);
        }
        for (int i = 0; i < 4; ++i) columns[0][i] = columns[2][i], columns[1][i] = columns[3][i];
      }
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
            float* at_output = to + y * row + (2 * t + x) * channels + c;
            fetch(at_output + 2 * row);
            Flat::store(at_output, out[x]);
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
        for (int x = 0; x < 2; ++x) {
          const float* pixel = tile + x * channels;
          for (int i = 2; i < 4; ++i) fetch(pixel + i * row);
          evaluate_tile(Flat::load(pixel), Flat::load(pixel + row), columns[x]);
        }
        for (int y = 0; y < 4; ++y) {
          Flat::V at[4];
          evaluate_tile(columns[0][y], columns[1][y], at);
          for (int x = 0; x < 4; ++x) Flat::store(to + (4 * y + x) * plane + t * channels + c, at[x]);
        }
      }
}

// ---- at the points

// All tiles at all points. `weights`: as `pack_tiled` makes them.
INLINE void multiply_points(const float* from, const float* weights, float* to, int64_t plane, int64_t count, int64_t inputs,
                            int64_t outputs) {
  for (int64_t p = 0; p < POINTS; ++p, from += plane, to += plane, weights += inputs * outputs) {
    const Tap tap = {0, weights};
    multiply_run({&tap, 1, inputs, outputs, count, from, inputs, to, outputs});
  }
}

// Adds Σ window·tile over `count` of both to `totals [point][channels of windows][channels of tiles]`.
INLINE void add_points(const float* windows, const float* tiles, int64_t plane, int64_t count, int64_t of_windows,
                       int64_t of_tiles, double* totals) {
  for (int64_t p = 0; p < POINTS; ++p, windows += plane, tiles += plane, totals += of_windows * of_tiles)
    add_all_products({windows, of_windows, of_windows, 0}, {tiles, of_tiles, of_tiles, 0}, 1, count, totals);
}

// ---- whole convolutions

// What `tiles_room` holds.
struct TilesRoom {
  int64_t plane;
  float *windows, *other, *zeros;

  INLINE TilesRoom(const ConvShape& s, float* room)
      : plane(plane_of(s)), windows(room), other(room + POINTS * plane), zeros(other + POINTS * plane) {
    zero(zeros, s.width * most(s.inputs, s.outputs));
  }
};

// Calls `f(first, rows)` for each strip of the rows of tiles of `images` images.
template <class F>
INLINE void over_strips(const ConvShape& s, int64_t images, F f) {
  const int64_t all = images * s.height / 2, together = tile_rows_at_a_time(s);
  for (int64_t first = 0; first < all; first += together) f(first, least(together, all - first));
}

// As `convolve` of dense images, with weights as `pack_tiled` makes them. `room`: as `tiles_room` says.
void convolve_tiles(const ConvShape& s, const float* x, int64_t images, const float* weights, const float* bias, float* out,
                    float* room) {
  const int64_t width = s.width / 2, channels = s.outputs;
  const TilesRoom r(s, room);
  over_strips(s, images, [&](int64_t first, int64_t rows) INLINE_LAMBDA {
    evaluate_windows(x, s.height, width, s.inputs, r.zeros, first, rows, r.windows, r.plane);
    multiply_points(r.windows, weights, r.other, r.plane, rows * width, s.inputs, channels);
    interpolate_tiles(r.other, r.plane, rows, width, channels, bias, out + first * 4 * width * channels);
  });
}

// The way back over `images` gradients `dz`, dense as well: the gradient of x to `x_grad`, where there is room for it, and the sums
// of the weights' gradients at the points, where there are `totals [point][outputs][inputs]`. `backwards`: weights as
// `pack_tiled` turns them.
void tiles_backward(const ConvShape& s, const float* x, const float* dz, int64_t images, const float* backwards,
                    float* x_grad, double* totals, float* room) {
  const int64_t width = s.width / 2, channels = s.inputs;
  const TilesRoom r(s, room);
  over_strips(s, images, [&](int64_t first, int64_t rows) INLINE_LAMBDA {
    const int64_t begin = first * 4 * width * channels, count = rows * width;
    evaluate_windows(dz, s.height, width, s.outputs, r.zeros, first, rows, r.windows, r.plane);
    if (totals != nullptr) {
      evaluate_tiles(x + begin, rows, width, channels, r.other, r.plane);
      add_points(r.windows, r.other, r.plane, count, s.outputs, channels, totals);
    }
    if (x_grad != nullptr) {
      multiply_points(r.windows, backwards, r.other, r.plane, count, s.outputs, channels);
      interpolate_tiles(r.other, r.plane, rows, width, channels, nullptr, x_grad + begin);
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
