// Dense convolutions: outputs of a tile of positions and gradients of a tile of weights in registers.
//
// Lanes are output channels. Each output is one chain of fused multiply-adds: over kernel rows, inputs and kernel columns
// with a kernel of 3, over kernel rows, columns and inputs with any other. Each weight's gradient is one chain (two, if
// there are few weights) over the positions of a chunk. Tiles change how often a value is read, not these orders.

#pragma once

#include "images.hpp"

namespace {

// `P` positions and `G` vectors of output channels.
template <class L, int G, int P>
INLINE void convolve_tile(const float* const (&windows)[P], int64_t row, int64_t kernel, int64_t run,
                          const float* weights, int64_t stride, const float* bias, typename L::V (&sums)[P][G]) {
  for (int g = 0; g < G; ++g) {
    const auto first = bias == nullptr ? L::zero() : L::load(bias + g * L::WIDTH);
    for (int p = 0; p < P; ++p) sums[p][g] = first;
  }
  for (int64_t dy = 0; dy < kernel; ++dy) {
    const int64_t line = dy * row;
    for (int64_t j = line; j < line + run; ++j, weights += stride) {
      typename L::V weight[G];
      for (int g = 0; g < G; ++g) weight[g] = L::load(weights + g * L::WIDTH);
      for (int p = 0; p < P; ++p) {
        const auto x = L::all(windows[p][j]);
        for (int g = 0; g < G; ++g) sums[p][g] = L::fma(x, weight[g], sums[p][g]);
      }
    }
  }
}

// What stands behind a convolution, on its outputs in registers.
enum class Epilogue { None, Relu };

// Writes sums of one position: `G` vectors, the last of which has `last` channels.
template <class L, int G, Epilogue E>
INLINE void finish(const typename L::V (&sums)[G], float* to, int last) {
  for (int g = 0; g < G; ++g) {
    const auto value = E == Epilogue::Relu ? L::relu(sums[g]) : sums[g];
    if (g < G - 1) L::store(to + g * L::WIDTH, value);
    else L::store_at_most(to + g * L::WIDTH, value, last);
  }
}

template <class L, int G, Epilogue E>
ALONE void convolve_groups(const float* data, const int32_t* window, int64_t positions, int64_t row, int64_t kernel,
                            int64_t run, const float* weights, int64_t stride, const float* bias, float* out,
                            int64_t channels, int64_t valid) {
  constexpr int P = REGISTERS == 32 || G == 1 ? 8 : 4;
  const int last = static_cast<int>(valid - (G - 1) * L::WIDTH);
  int64_t first = 0;
  for (; first + P <= positions; first += P) {
    const float* windows[P];
    for (int p = 0; p < P; ++p) windows[p] = data + window[first + p];
    typename L::V sums[P][G];
    convolve_tile<L, G, P>(windows, row, kernel, run, weights, stride, bias, sums);
    for (int p = 0; p < P; ++p) finish<L, G, E>(sums[p], out + (first + p) * channels, last);
  }
  for (; first < positions; ++first) {
    const float* windows[1] = {data + window[first]};
    typename L::V sums[1][G];
    convolve_tile<L, G, 1>(windows, row, kernel, run, weights, stride, bias, sums);
    finish<L, G, E>(sums[0], out + first * channels, last);
  }
}

// Kernels of 3 over `COLUMNS` neighbouring columns of `ROWS` rows at a time: a value that is read serves the three
// columns that it lies under. From column `column` of all `lines` rows, which is a multiple of `ROWS`.
template <class L, int G, int ROWS, int COLUMNS, Epilogue E>
ALONE void convolve_columns(const Padded& in, int64_t first_line, int64_t lines, int64_t column, const float* weights,
                            int64_t stride, const float* bias, float* out, int64_t channels, int last) {
  const int64_t inputs = in.channels, row = in.row;
  const int64_t tap = inputs * stride;
  for (int64_t line = first_line; line < lines; line += ROWS) {
    const float* at[ROWS];
    for (int r = 0; r < ROWS; ++r) at[r] = in.data + in.line[line + r] + column * inputs;
    typename L::V sums[ROWS][COLUMNS][G];
    for (int g = 0; g < G; ++g) {
      const auto first = bias == nullptr ? L::zero() : L::load(bias + g * L::WIDTH);
      for (auto& columns : sums)
        for (auto& sum : columns) sum[g] = first;
    }
    const float* weight = weights;
    for (int dy = 0; dy < 3; ++dy, weight += 2 * tap) {
      for (int64_t i = 0; i < inputs; ++i, weight += stride) {
        typename L::V w[3][G];
        for (int dx = 0; dx < 3; ++dx)
          for (int g = 0; g < G; ++g) w[dx][g] = L::load(weight + dx * tap + g * L::WIDTH);
        for (int r = 0; r < ROWS; ++r) {
          const float* from = at[r] + dy * row + i;
          for (int q = 0; q < COLUMNS + 2; ++q, from += inputs) {
            const auto x = L::all(*from);
            for (int dx = 0; dx < 3; ++dx)
              if (q - dx >= 0 && q - dx < COLUMNS)
                for (int g = 0; g < G; ++g) sums[r][q - dx][g] = L::fma(x, w[dx][g], sums[r][q - dx][g]);
          }
        }
      }
    }
    for (int r = 0; r < ROWS; ++r)
      for (int c = 0; c < COLUMNS; ++c)
        finish<L, G, E>(sums[r][c], out + ((line + r) * in.width + column + c) * channels, last);
  }
}

template <class L, int G, Epilogue E>
INLINE void convolve_rows(const Padded& in, int64_t lines, const float* weights, int64_t stride, const float* bias,
                          float* out, int64_t channels, int64_t valid) {
  const int last = static_cast<int>(valid - (G - 1) * L::WIDTH);
  const auto all_lines = [&](auto together, auto alone, int64_t rows, int64_t column) INLINE_LAMBDA {
    const int64_t whole = lines / rows * rows;
    together(in, 0, whole, column, weights, stride, bias, out, channels, last);
    if (whole < lines) alone(in, whole, lines, column, weights, stride, bias, out, channels, last);
  };
  int64_t c = 0;
  for (; c + 8 <= in.width; c += 8) all_lines(convolve_columns<L, G, 1, 8, E>, convolve_columns<L, G, 1, 8, E>, 1, c);
  if (c + 4 <= in.width) all_lines(convolve_columns<L, G, 2, 4, E>, convolve_columns<L, G, 1, 4, E>, 2, c), c += 4;
  if (c + 2 <= in.width) all_lines(convolve_columns<L, G, 4, 2, E>, convolve_columns<L, G, 1, 2, E>, 4, c), c += 2;
  if (c < in.width) all_lines(convolve_columns<L, G, 4, 1, E>, convolve_columns<L, G, 1, 1, E>, 4, c);
}

template <class L, Epilogue E>
INLINE void convolve_all_rows(const Padded& in, int64_t lines, const float* weights, const float* bias, float* out,
                              int64_t channels) {
  const int64_t stride = packed_channels(channels);
  const auto from = [&](int64_t c) INLINE_LAMBDA { return bias == nullptr ? nullptr : bias + c; };
  int64_t c = 0;
  if constexpr (REGISTERS == 32)
    for (; c + L::WIDTH < channels; c += 2 * L::WIDTH)
      convolve_rows<L, 2, E>(in, lines, weights + c, stride, from(c), out + c, channels, channels - c);
  for (; c < channels; c += L::WIDTH)
    convolve_rows<L, 1, E>(in, lines, weights + c, stride, from(c), out + c, channels, channels - c);
}

template <class L, Epilogue E>
INLINE void convolve_all_groups(const Padded& in, int64_t positions, int64_t kernel, const float* weights,
                                const float* bias, float* out, int64_t channels) {
  const int64_t run = kernel * in.channels, stride = packed_channels(channels);
  int64_t c = 0;
  for (; c + L::WIDTH < channels; c += 2 * L::WIDTH)
    convolve_groups<L, 2, E>(in.data, in.window, positions, in.row, kernel, run, weights + c, stride,
                             bias == nullptr ? nullptr : bias + c, out + c, channels, channels - c);
  if (c < channels)
    convolve_groups<L, 1, E>(in.data, in.window, positions, in.row, kernel, run, weights + c, stride,
                             bias == nullptr ? nullptr : bias + c, out + c, channels, channels - c);
}

// The convolution of `images` padded images: `out [images·positions, channels]`, dense. `bias` has packed_channels
// entries or is null.
template <Epilogue E>
void convolve(const Padded& in, int64_t images, int64_t kernel, const float* weights, const float* bias, float* out,
              int64_t channels) {
  if (kernel == 3) {
    const int64_t lines = images * in.height;
    if (is_narrow(channels)) convolve_all_rows<Lanes<8>, E>(in, lines, weights, bias, out, channels);
    else convolve_all_rows<Lanes<16>, E>(in, lines, weights, bias, out, channels);
    return;
  }
  const int64_t positions = images * in.positions();
  if (is_narrow(channels)) convolve_all_groups<Lanes<8>, E>(in, positions, kernel, weights, bias, out, channels);
  else convolve_all_groups<Lanes<16>, E>(in, positions, kernel, weights, bias, out, channels);
}

// ---- gradients of weights

// Adds sums of `G` vectors to the totals of one weight, `valid` channels of them.
template <class L, int G>
INLINE void add_to(double* totals, const typename L::V (&sums)[G], int64_t valid) {
  float lanes[L::WIDTH];
  for (int g = 0; g < G; ++g) {
    L::store(lanes, sums[g]);
    const int64_t count = least(L::WIDTH, valid - g * L::WIDTH);
    for (int64_t lane = 0; lane < count; ++lane) totals[g * L::WIDTH + lane] += lanes[lane];
  }
}

// Kernels of 3: the gradients of `INPUTS` inputs of all columns of `ROWS` kernel rows from `first_row` on. A value of x,
// which needs no border, meets the gradients of the three columns that it lies under. `grad`: that of the first position.
template <class L, int G, int ROWS, int INPUTS>
ALONE void weight_grads_columns(const float* x, const Padded& in, const float* grad, const Padded& out, int64_t images,
                                int64_t first_row, int64_t valid, double* totals, int64_t stride) {
  const int64_t inputs = in.channels, channels = out.channels;
  typename L::V sums[ROWS][3][INPUTS][G];
  for (auto& rows : sums)
    for (auto& columns : rows)
      for (auto& input : columns)
        for (auto& sum : input) sum = L::zero();
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < in.height; ++y) {
      const float* under = grad + n * out.image + (y + 1 - first_row) * out.row;
      for (int64_t column = 0; column < in.width; ++column, x += inputs, under += channels) {
        typename L::V values[INPUTS];
        for (int i = 0; i < INPUTS; ++i) values[i] = L::all(x[i]);
        for (int r = 0; r < ROWS; ++r)
          for (int dx = 0; dx < 3; ++dx)
            for (int g = 0; g < G; ++g) {
              const auto of = L::load(under - r * out.row + (1 - dx) * channels + g * L::WIDTH);
              for (int i = 0; i < INPUTS; ++i) sums[r][dx][i][g] = L::fma(values[i], of, sums[r][dx][i][g]);
            }
      }
    }
  for (int r = 0; r < ROWS; ++r)
    for (int dx = 0; dx < 3; ++dx)
      for (int i = 0; i < INPUTS; ++i)
        add_to<L, G>(totals + (((first_row + r) * 3 + dx) * inputs + i) * stride, sums[r][dx][i], valid);
}

template <class L, int G>
INLINE void weight_grads_rows(const float* x, const Padded& in, const Padded& out, int64_t images, int64_t c,
                              double* totals, int64_t stride) {
  const float* grad = out.data + out.row + out.channels + c;
  const int64_t inputs = in.channels, valid = out.channels - c;
  if (inputs == 1) return weight_grads_columns<L, G, 3, 1>(x, in, grad, out, images, 0, valid, totals + c, stride);
  for (int64_t dy = 0; dy < 3; ++dy)
    for (int64_t i = 0; i < inputs; i += 4) {
      double* to = totals + i * stride + c;
      switch (inputs - i) {
        case 1: weight_grads_columns<L, G, 1, 1>(x + i, in, grad, out, images, dy, valid, to, stride); break;
        case 2: weight_grads_columns<L, G, 1, 2>(x + i, in, grad, out, images, dy, valid, to, stride); break;
        case 3: weight_grads_columns<L, G, 1, 3>(x + i, in, grad, out, images, dy, valid, to, stride); break;
        default: weight_grads_columns<L, G, 1, 4>(x + i, in, grad, out, images, dy, valid, to, stride);
      }
    }
}

// Any kernel: the gradients of `J` neighbouring elements of a kernel row, over positions in turn in `CHAINS` sums: enough
// of them that none waits for its predecessor.
template <class L, int G, int J, int CHAINS>
ALONE void weight_grads_tile(const float* x, const int32_t* window, const float* grad, const int32_t* centre,
                             int64_t positions, int64_t elements, int64_t valid, double* totals, int64_t stride) {
  typename L::V sums[CHAINS][J][G];
  for (auto& chain : sums)
    for (auto& element : chain)
      for (auto& sum : element) sum = L::zero();
  const auto add = [&](typename L::V(&to)[J][G], int64_t p) INLINE_LAMBDA {
    typename L::V of[G];
    // What lies behind the last channel belongs to a neighbour, and its sum is thrown away; so are the elements behind
    // the last one.
    for (int g = 0; g < G; ++g) of[g] = L::load(grad + centre[p] + g * L::WIDTH);
    for (int j = 0; j < J; ++j) {
      const auto value = L::all(x[window[p] + j]);
      for (int g = 0; g < G; ++g) to[j][g] = L::fma(value, of[g], to[j][g]);
    }
  };
  int64_t p = 0;
  for (; p + CHAINS <= positions; p += CHAINS)
    for (int chain = 0; chain < CHAINS; ++chain) add(sums[chain], p + chain);
  for (int chain = 0; chain < CHAINS - 1; ++chain)
    if (p + chain < positions) add(sums[chain], p + chain);
  for (int j = 0; j < J; ++j) {
    if (j >= elements) break;
    for (int chain = 1; chain < CHAINS; ++chain)
      for (int g = 0; g < G; ++g) sums[0][j][g] = L::add(sums[0][j][g], sums[chain][j][g]);
    add_to<L, G>(totals + j * stride, sums[0][j], valid);
  }
}

template <class L, int G>
INLINE void weight_grads_groups(const Padded& x, const Padded& grad, int64_t positions, int64_t kernel, int64_t c,
                                double* totals, int64_t stride) {
  const int64_t run = kernel * x.channels, valid = grad.channels - c;
  for (int64_t dy = 0; dy < kernel; ++dy)
    for (int64_t j = 0; j < run;) {
      const auto tile = [&](auto kernels) INLINE_LAMBDA {
        kernels(x.data + dy * x.row + j, x.window, grad.data + c, grad.centre, positions, run - j, valid,
                totals + (dy * run + j) * stride + c, stride);
      };
      if (run - j > 8) tile(weight_grads_tile<L, G, 12, 1>), j += 12;
      else if (run - j > 4) tile(weight_grads_tile<L, G, 8, 1>), j += 8;
      else tile(weight_grads_tile<L, G, 4, 2>), j += 4;
    }
}

template <class L>
INLINE void weight_grads_all_groups(const float* x, const Padded& in, const Padded& grad, int64_t images, int64_t kernel,
                                    double* totals) {
  const int64_t channels = grad.channels, stride = packed_channels(channels), positions = images * in.positions();
  int64_t c = 0;
  if constexpr (REGISTERS == 32)
    for (; c + L::WIDTH < channels; c += 2 * L::WIDTH) {
      if (kernel == 3) weight_grads_rows<L, 2>(x, in, grad, images, c, totals, stride);
      else weight_grads_groups<L, 2>(in, grad, positions, kernel, c, totals, stride);
    }
  for (; c < channels; c += L::WIDTH) {
    if (kernel == 3) weight_grads_rows<L, 1>(x, in, grad, images, c, totals, stride);
    else weight_grads_groups<L, 1>(in, grad, positions, kernel, c, totals, stride);
  }
}

// Adds the gradients of the weights over `images` dense images `x` to `totals [elements, packed_channels]`. What lies in
// `in`, which has their shape, is overwritten; `grad` has a border of zeros.
void add_weight_grads(const float* x, const Padded& in, const Padded& grad, int64_t images, int64_t kernel, double* totals) {
  if (kernel != 3) fill(in, x, images);
  if (is_narrow(grad.channels)) weight_grads_all_groups<Lanes<8>>(x, in, grad, images, kernel, totals);
  else weight_grads_all_groups<Lanes<16>>(x, in, grad, images, kernel, totals);
}

// ---- weights

// Weights `[outputs, k, k, inputs]` (channels-last) as `[k·k·inputs, packed_channels(outputs)]`.
void pack(const ConvShape& s, const float* weights, float* packed) {
  const int64_t elements = s.elements(), stride = packed_channels(s.outputs);
  zero(packed, elements * stride);
  for (int64_t o = 0; o < s.outputs; ++o)
    for (int64_t e = 0; e < elements; ++e) packed[e * stride + o] = weights[o * elements + e];
}

// The weights of the convolution that carries gradients back: turned by 180 degrees, channels exchanged:
// `[k·k·outputs, packed_channels(inputs)]`.
void pack_backwards(const ConvShape& s, const float* weights, float* packed) {
  const int64_t taps = s.kernel * s.kernel, stride = packed_channels(s.inputs);
  zero(packed, taps * s.outputs * stride);
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t o = 0; o < s.outputs; ++o)
      std::memcpy(packed + (tap * s.outputs + o) * stride, weights + (o * taps + taps - 1 - tap) * s.inputs,
                  s.inputs * sizeof(float));
}

// Totals as a gradient in the weights' own layout, `[outputs, k, k, inputs]`.
void unpack_grads(const ConvShape& s, const double* totals, float* grad) {
  const int64_t elements = s.elements(), stride = packed_channels(s.outputs);
  for (int64_t o = 0; o < s.outputs; ++o)
    for (int64_t e = 0; e < elements; ++e) grad[o * elements + e] = static_cast<float>(totals[e * stride + o]);
}

}  // namespace
