// Dense 3x3 convolutions of wide images by Winograd's minimal filtering F(MxM, 3x3): for a tile of 4x4 outputs 36 products
// in place of 144, for one of 2x2 16 in place of 36 (Lavin & Gray 2016, arXiv:1509.09308).
//
// A tile's window of inputs, two wider than the tile, is evaluated at as many points, and so are the weights; at each point
// images are multiplied with weights, tile by tile; outputs are interpolated from the products. Gradients of weights
// likewise: windows of the outputs' gradient times tiles of the inputs, summed at each point, then interpolated to 3x3.
//
// Rounding: the matrices of F(2x2, 3x3) hold 0, ±1 and ½, and its errors are those of direct sums. Those of F(4x4, 3x3) are
// 2 to 3 times as large; `fused/tests.rs` bounds both.
//
// The rows that the next tiles read and write in the images are fetched while these are transformed: rows lie in pages of
// their own, where the core doesn't look ahead.
//
// Each product is one chain of fused multiply-adds over inputs; each sum of a weight's gradient is one over the tiles of a
// strip.

#pragma once

#include "products.hpp"

namespace {

using simic::tile_side;

// ---- one dimension

// F(M, 3): a window of M + 2 inputs, three weights and M outputs at the M + 2 points, and back.
template <int M>
struct Filter;

// The points 0, 1, -1 and ∞.
template <>
struct Filter<2> {
  template <class L, class V = typename L::V>
  static INLINE void evaluate_window(const V (&d)[4], V (&at)[4]) {
    at[0] = L::sub(d[0], d[2]);
    at[1] = L::add(d[1], d[2]);
    at[2] = L::sub(d[2], d[1]);
    at[3] = L::sub(d[1], d[3]);
  }

  template <class L, class V = typename L::V>
  static INLINE void interpolate_outputs(const V (&at)[4], V (&y)[2]) {
    y[0] = L::add(L::add(at[0], at[1]), at[2]);
    y[1] = L::sub(L::sub(at[1], at[2]), at[3]);
  }

  // The shorter factor of a weight's gradient; halves are taken at the end.
  template <class L, class V = typename L::V>
  static INLINE void evaluate_tile(const V (&x)[2], V (&at)[4]) {
    at[0] = x[0];
    at[1] = L::add(x[0], x[1]);
    at[2] = L::sub(x[0], x[1]);
    at[3] = x[1];
  }

  static INLINE void evaluate_weights(double a, double b, double c, double (&at)[4]) {
    at[0] = a;
    at[1] = (a + b + c) / 2;
    at[2] = (a - b + c) / 2;
    at[3] = c;
  }

  // From the last weight to the first: where a window lies before a tile, the weight comes after.
  static INLINE void interpolate_weights(const double (&at)[4], double (&w)[3]) {
    const double even = (at[1] + at[2]) / 2;
    w[2] = at[0] + even;
    w[1] = (at[1] - at[2]) / 2;
    w[0] = even - at[3];
  }
};

// The points 0, ±A, ±B and ∞. These A and B are exact, and keep errors small.
template <>
struct Filter<4> {
  static constexpr double A = 0.625, B = 1.5;
  static constexpr float A1 = A, A2 = A * A, A3 = A * A * A, B1 = B, B2 = B * B, B3 = B * B * B;
  static constexpr float SQUARES = A * A + B * B, PRODUCT = A * A * B * B;

  template <class L, class V = typename L::V>
  static INLINE void evaluate_window(const V (&d)[6], V (&at)[6]) {
    const V squares = L::all(-SQUARES), product = L::all(PRODUCT);
    at[0] = L::fma(product, d[0], L::fma(squares, d[2], d[4]));
    at[5] = L::fma(product, d[1], L::fma(squares, d[3], d[5]));
    const auto pair = [&](float point, float other, V& plus, V& minus) INLINE_LAMBDA {
      const V even = L::fma(L::all(-other), d[2], d[4]), odd = L::fma(L::all(-other), d[1], d[3]);
      plus = L::fma(L::all(point), odd, even);
      minus = L::fma(L::all(-point), odd, even);
    };
    pair(A1, B2, at[1], at[2]);
    pair(B1, A2, at[3], at[4]);
  }

  template <class L, class V = typename L::V>
  static INLINE void interpolate_outputs(const V (&at)[6], V (&y)[4]) {
    const V a = L::add(at[1], at[2]), of_a = L::sub(at[1], at[2]), b = L::add(at[3], at[4]), of_b = L::sub(at[3], at[4]);
    y[0] = L::add(L::add(at[0], a), b);
    y[1] = L::fma(L::all(B1), of_b, L::mul(L::all(A1), of_a));
    y[2] = L::fma(L::all(B2), b, L::mul(L::all(A2), a));
    y[3] = L::add(L::fma(L::all(B3), of_b, L::mul(L::all(A3), of_a)), at[5]);
  }

  template <class L, class V = typename L::V>
  static INLINE void evaluate_tile(const V (&x)[4], V (&at)[6]) {
    at[0] = x[0];
    at[5] = x[3];
    const auto pair = [&](float point, float square, V& plus, V& minus) INLINE_LAMBDA {
      const V even = L::fma(L::all(square), x[2], x[0]), odd = L::fma(L::all(square), x[3], x[1]);
      plus = L::fma(L::all(point), odd, even);
      minus = L::fma(L::all(-point), odd, even);
    };
    pair(A1, A2, at[1], at[2]);
    pair(B1, B2, at[3], at[4]);
  }

  // Factors of the weights at 0, ±A and ±B.
  static constexpr double AT_0 = 1 / (A * A * B * B);
  static constexpr double AT_A = 1 / (2 * A * A * (A * A - B * B)), AT_B = 1 / (2 * B * B * (B * B - A * A));

  static INLINE void evaluate_weights(double a, double b, double c, double (&at)[6]) {
    at[0] = AT_0 * a;
    at[1] = AT_A * (a + A * b + A * A * c);
    at[2] = AT_A * (a - A * b + A * A * c);
    at[3] = AT_B * (a + B * b + B * B * c);
    at[4] = AT_B * (a - B * b + B * B * c);
    at[5] = c;
  }

  static INLINE void interpolate_weights(const double (&at)[6], double (&w)[3]) {
    const double a = AT_A * (at[1] + at[2]), of_a = AT_A * (at[1] - at[2]);
    const double b = AT_B * (at[3] + at[4]), of_b = AT_B * (at[3] - at[4]);
    w[2] = AT_0 * at[0] + a + b;
    w[1] = A * of_a + B * of_b;
    w[0] = A * A * a + B * B * b + at[5];
  }
};

// ---- which convolutions

INLINE bool is_tiled(const ConvShape& s) { return tile_side(s) != 0; }

INLINE int64_t points_of(const ConvShape& s) { return (tile_side(s) + 2) * (tile_side(s) + 2); }

// Calls `f` with the side of a tiled convolution's tiles as a type.
template <int M>
struct Side {
  static constexpr int SIDE = M, POINTS = M + 2, ALL = POINTS * POINTS;
};
template <class F>
INLINE void by_side(const ConvShape& s, F f) {
  if (tile_side(s) == 4) f(Side<4>());
  else f(Side<2>());
}

// Calls `f` with lanes of one register that divide `channels`.
template <class F>
INLINE void by_registers(int64_t channels, F f) {
  if (channels % WIDEST == 0) f(Lanes<WIDEST>());
  else f(Lanes<8>());
}

// Rows of tiles that are worked on together: points of them are read from memory close to the core, and are enough to
// amortise the totals of a weight's gradient.
INLINE int64_t tile_rows_at_a_time(const ConvShape& s) {
  constexpr int64_t FLOATS = 49'152, TILES = 48;
  const int64_t tiles = most(TILES, FLOATS / points_of(s) / most(s.inputs, s.outputs));
  return most(1, tiles / (s.width / tile_side(s)));
}

INLINE int64_t tiled_images_at_a_time(const ConvShape& s) {
  return least(s.batch, most(1, tile_rows_at_a_time(s) / (s.height / tile_side(s))));
}

// Values of a strip of tiles at one point; those of the next follow in other sets of the cache.
INLINE int64_t plane_of(const ConvShape& s) {
  return tile_rows_at_a_time(s) * (s.width / tile_side(s)) * most(s.inputs, s.outputs) + 16;
}

// A row of an image with a border on both sides.
INLINE int64_t bordered_row(const ConvShape& s) { return (s.width + 2) * most(s.inputs, s.outputs); }

// Floats of room for `convolve_tiles` and `tiles_backward`.
INLINE int64_t tiles_room(const ConvShape& s) {
  return 2 * points_of(s) * plane_of(s) + (tile_side(s) + 3) * bordered_row(s);
}

// The content of `tiles_room`.
struct TilesRoom {
  int64_t plane;
  float *windows, *other, *zeros, *columns;

  INLINE TilesRoom(const ConvShape& s, float* room)
      : plane(plane_of(s)), windows(room), other(windows + points_of(s) * plane), zeros(other + points_of(s) * plane),
        columns(zeros + bordered_row(s)) {
    zero(zeros, bordered_row(s));
  }
};

// ---- to the points and back

// The windows of `rows` rows of `width` tiles from row `first`, counted through all images, which are dense:
// `to [point][tile][channel]`, points `plane` floats apart.
template <class S, class L>
ALONE void evaluate_windows(const float* images, int64_t height, int64_t width, int64_t channels, const TilesRoom& room,
                            int64_t first, int64_t rows, float* to) {
  using V = typename L::V;
  using Across = Lanes<WIDEST>;
  constexpr int M = S::SIDE, T = S::POINTS;
  const int64_t row = M * width * channels, bordered = row + 2 * channels;
  float* columns = room.columns;
  for (int i = 0; i < T; ++i) {
    zero(columns + i * bordered, channels);
    zero(columns + (i + 1) * bordered - channels, channels);
  }
  for (int64_t r = 0; r < rows; ++r, to += width * channels) {
    const int64_t y = M * (first + r) % height;
    const float* lines[T];
    lines[0] = images + (M * (first + r) - 1) * row;
    for (int i = 1; i < T; ++i) lines[i] = lines[0] + i * row;
    const float* next = lines[T - 1];
    if (y == 0) lines[0] = room.zeros;
    if (y + M == height) lines[T - 1] = room.zeros;
    // From top to bottom, then from left to right.
    for (int64_t at = 0; at < row; at += Across::WIDTH) {
      typename Across::V d[T], points[T];
      for (int i = 0; i < T; ++i) d[i] = Across::load(lines[i] + at);
      for (int i = 0; i < M; ++i) fetch(next + i * row + at);
      Filter<M>::template evaluate_window<Across>(d, points);
      for (int i = 0; i < T; ++i) Across::store(columns + i * bordered + channels + at, points[i]);
    }
    for (int i = 0; i < T; ++i)
      for (int64_t t = 0; t < width; ++t)
        for (int64_t c = 0; c < channels; c += L::WIDTH) {
          const float* from = columns + i * bordered + M * t * channels + c;
          V d[T], points[T];
          for (int x = 0; x < T; ++x) d[x] = L::load(from + x * channels);
          Filter<M>::template evaluate_window<L>(d, points);
          for (int x = 0; x < T; ++x) L::store(to + (T * i + x) * room.plane + t * channels + c, points[x]);
        }
  }
}

// The outputs of `rows` rows of tiles, plus a bias unless that is null, into `to`, where these rows begin.
template <class S, class L>
ALONE void interpolate_tiles(const float* from, int64_t plane, int64_t rows, int64_t width, int64_t channels,
                             const float* bias, float* to) {
  using V = typename L::V;
  constexpr int M = S::SIDE, T = S::POINTS;
  const int64_t row = M * width * channels;
  for (int64_t r = 0; r < rows; ++r, from += width * channels, to += M * row)
    for (int64_t t = 0; t < width; ++t)
      for (int64_t c = 0; c < channels; c += L::WIDTH) {
        const float* tile = from + t * channels + c;
        V rows_of[T][M];
        for (int x = 0; x < T; ++x) {
          V at[T];
          for (int y = 0; y < T; ++y) at[y] = L::load(tile + (T * y + x) * plane);
          Filter<M>::template interpolate_outputs<L>(at, rows_of[x]);
        }
        for (int y = 0; y < M; ++y) {
          V at[T], out[M];
          for (int x = 0; x < T; ++x) at[x] = rows_of[x][y];
          Filter<M>::template interpolate_outputs<L>(at, out);
          for (int x = 0; x < M; ++x) {
            if (bias != nullptr) out[x] = L::add(out[x], L::load(bias + c));
            float* at_output = to + y * row + (M * t + x) * channels + c;
            fetch(at_output + M * row);
            L::store(at_output, out[x]);
          }
        }
      }
}

// The tiles of `rows` rows, which begin at `from` in dense images, as `evaluate_windows` lays windows out.
template <class S, class L>
ALONE void evaluate_tiles(const float* from, int64_t rows, int64_t width, int64_t channels, float* to, int64_t plane) {
  using V = typename L::V;
  constexpr int M = S::SIDE, T = S::POINTS;
  const int64_t row = M * width * channels;
  for (int64_t r = 0; r < rows; ++r, from += M * row, to += width * channels)
    for (int64_t t = 0; t < width; ++t)
      for (int64_t c = 0; c < channels; c += L::WIDTH) {
        const float* tile = from + M * t * channels + c;
        V columns[M][T];
        for (int x = 0; x < M; ++x) {
          const float* pixel = tile + x * channels;
          V values[M];
          for (int y = 0; y < M; ++y) {
            fetch(pixel + (M + y) * row);
            values[y] = L::load(pixel + y * row);
          }
          Filter<M>::template evaluate_tile<L>(values, columns[x]);
        }
        for (int y = 0; y < T; ++y) {
          V values[M], at[T];
          for (int x = 0; x < M; ++x) values[x] = columns[x][y];
          Filter<M>::template evaluate_tile<L>(values, at);
          for (int x = 0; x < T; ++x) L::store(to + (T * y + x) * plane + t * channels + c, at[x]);
        }
      }
}

// ---- at the points

// All tiles at all points. `weights`: as `pack_tiled` makes them.
template <class S>
INLINE void multiply_points(const float* from, const float* weights, float* to, int64_t plane, int64_t count, int64_t inputs,
                            int64_t outputs) {
  for (int p = 0; p < S::ALL; ++p, from += plane, to += plane, weights += inputs * outputs) {
    const Tap tap = {0, weights};
    multiply_run({&tap, 1, inputs, outputs, count, from, inputs, to, outputs});
  }
}

// Adds Σ tile·window over `count` of both to `totals [point][channels of tiles][channels of windows]`.
template <class S>
INLINE void add_points(const float* tiles, const float* windows, int64_t plane, int64_t count, int64_t of_tiles,
                       int64_t of_windows, double* totals) {
  for (int p = 0; p < S::ALL; ++p, tiles += plane, windows += plane, totals += of_tiles * of_windows)
    add_all_products({tiles, of_tiles, of_tiles, 0}, {windows, of_windows, of_windows, 0}, 1, count, totals);
}

// ---- whole convolutions

// Calls `f(first, rows)` for each strip of the rows of tiles of `images` images.
template <class F>
INLINE void over_strips(const ConvShape& s, int64_t images, F f) {
  const int64_t all = images * s.height / tile_side(s), together = tile_rows_at_a_time(s);
  for (int64_t first = 0; first < all; first += together) f(first, least(together, all - first));
}

// As `convolve` of dense images, with weights as `pack_tiled` makes them. `room`: as `tiles_room` says.
void convolve_tiles(const ConvShape& s, const float* x, int64_t images, const float* weights, const float* bias, float* out,
                    float* room) {
  const TilesRoom r(s, room);
  by_side(s, [&](auto side) INLINE_LAMBDA {
    using S = decltype(side);
    const int64_t width = s.width / S::SIDE;
    over_strips(s, images, [&](int64_t first, int64_t rows) INLINE_LAMBDA {
      by_registers(s.inputs, [&](auto lanes) INLINE_LAMBDA {
        evaluate_windows<S, decltype(lanes)>(x, s.height, width, s.inputs, r, first, rows, r.windows);
      });
      multiply_points<S>(r.windows, weights, r.other, r.plane, rows * width, s.inputs, s.outputs);
      by_registers(s.outputs, [&](auto lanes) INLINE_LAMBDA {
        float* to = out + first * S::SIDE * s.width * s.outputs;
        interpolate_tiles<S, decltype(lanes)>(r.other, r.plane, rows, width, s.outputs, bias, to);
      });
    });
  });
}

// The way back over `images` gradients `dz`, dense as well: the gradient of x to `x_grad`, where there is room for it, and the sums
// of the weights' gradients at the points, where there are `totals [point][inputs][outputs]`. `backwards`: weights as
// `pack_tiled` turns them.
void tiles_backward(const ConvShape& s, const float* x, const float* dz, int64_t images, const float* backwards,
                    float* x_grad, double* totals, float* room) {
  const TilesRoom r(s, room);
  by_side(s, [&](auto side) INLINE_LAMBDA {
    using S = decltype(side);
    const int64_t width = s.width / S::SIDE;
    over_strips(s, images, [&](int64_t first, int64_t rows) INLINE_LAMBDA {
      const int64_t begin = first * S::SIDE * s.width * s.inputs, count = rows * width;
      by_registers(s.outputs, [&](auto lanes) INLINE_LAMBDA {
        evaluate_windows<S, decltype(lanes)>(dz, s.height, width, s.outputs, r, first, rows, r.windows);
      });
      by_registers(s.inputs, [&](auto lanes) INLINE_LAMBDA {
        using L = decltype(lanes);
        if (totals != nullptr) {
          evaluate_tiles<S, L>(x + begin, rows, width, s.inputs, r.other, r.plane);
          add_points<S>(r.other, r.windows, r.plane, count, s.inputs, s.outputs, totals);
        }
        if (x_grad != nullptr) {
          multiply_points<S>(r.windows, backwards, r.other, r.plane, count, s.outputs, s.inputs);
          interpolate_tiles<S, L>(r.other, r.plane, rows, width, s.inputs, nullptr, x_grad + begin);
        }
      });
    });
  });
}

// ---- weights

INLINE int64_t tiled_weights(const ConvShape& s) { return points_of(s) * s.inputs * s.outputs; }

// Weights `[outputs, 3, 3, inputs]` at the points: `[point][inputs][outputs]`; for the way back turned by 180 degrees,
// `[point][outputs][inputs]`.
void pack_tiled(const ConvShape& s, const float* weights, bool backwards, float* packed) {
  // Neighbours in `packed`.
  constexpr int LANES = 8;
  const int64_t of_point = s.inputs * s.outputs, inner = backwards ? s.inputs : s.outputs, of_output = 9 * s.inputs;
  const int64_t step = backwards ? 1 : of_output, outer_step = backwards ? of_output : 1;
  by_side(s, [&](auto side) INLINE_LAMBDA {
    using S = decltype(side);
    constexpr int T = S::POINTS;
    for (int64_t outer = 0; outer < of_point / inner; ++outer)
      for (int64_t first = 0; first < inner; first += LANES) {
        const float* from = weights + outer * outer_step + first * step;
        double taps[9][LANES], rows[3][T][LANES];
        for (int tap = 0; tap < 9; ++tap)
          for (int lane = 0; lane < LANES; ++lane) taps[tap][lane] = from[(backwards ? 8 - tap : tap) * s.inputs + lane * step];
        const auto evaluate = [&](const double(&a)[LANES], const double(&b)[LANES], const double(&c)[LANES], auto store) INLINE_LAMBDA {
          for (int lane = 0; lane < LANES; ++lane) {
            double at[T];
            Filter<S::SIDE>::evaluate_weights(a[lane], b[lane], c[lane], at);
#pragma GCC unroll 6
            for (int i = 0; i < T; ++i) store(i, lane, at[i]);
          }
        };
        for (int y = 0; y < 3; ++y)
          evaluate(taps[3 * y], taps[3 * y + 1], taps[3 * y + 2], [&](int x, int lane, double at) INLINE_LAMBDA { rows[y][x][lane] = at; });
        float* to = packed + outer * inner + first;
        for (int x = 0; x < T; ++x, to += of_point)
          evaluate(rows[0][x], rows[1][x], rows[2][x], [&](int y, int lane, double at) INLINE_LAMBDA {
            to[y * T * of_point + lane] = static_cast<float>(at);
          });
      }
  });
}

// Totals of `tiles_backward` as a gradient in the weights' own layout.
void unpack_tiled_grads(const ConvShape& s, const double* totals, float* grad) {
  const int64_t of_point = s.inputs * s.outputs;
  by_side(s, [&](auto side) INLINE_LAMBDA {
    using S = decltype(side);
    constexpr int T = S::POINTS;
    for (int64_t o = 0; o < s.outputs; ++o)
      for (int64_t i = 0; i < s.inputs; ++i) {
        const double* from = totals + i * s.outputs + o;
        double rows[3][T];
        for (int x = 0; x < T; ++x) {
          double at[T], w[3];
          for (int y = 0; y < T; ++y) at[y] = from[(T * y + x) * of_point];
          Filter<S::SIDE>::interpolate_weights(at, w);
          for (int y = 0; y < 3; ++y) rows[y][x] = w[y];
        }
        for (int y = 0; y < 3; ++y) {
          double w[3];
          Filter<S::SIDE>::interpolate_weights(rows[y], w);
          for (int x = 0; x < 3; ++x) grad[(o * 9 + 3 * y + x) * s.inputs + i] = static_cast<float>(w[x]);
        }
      }
  });
}

}  // namespace
