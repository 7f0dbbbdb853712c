// Dense convolutions: outputs of a tile of positions and gradients of a tile of weights in registers.
//
// Lanes are output channels. Each output is one chain of fused multiply-adds over kernel rows, kernel columns and
// inputs, in this order; each weight's gradient one chain over the positions of a chunk.

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

template <class L, int G, Epilogue E>
ALONE void convolve_groups(const float* data, const int32_t* window, int64_t positions, int64_t row, int64_t kernel,
                            int64_t run, const float* weights, int64_t stride, const float* bias, float* out,
                            int64_t channels, int64_t valid) {
  constexpr int P = REGISTERS == 32 || G == 1 ? 8 : 4;
  for (int64_t first = 0; first < positions; first += P) {
    const int count = static_cast<int>(least(P, positions - first));
    const float* windows[P];
    for (int p = 0; p < P; ++p) windows[p] = data + window[first + (p < count ? p : 0)];
    typename L::V sums[P][G];
    convolve_tile<L, G, P>(windows, row, kernel, run, weights, stride, bias, sums);
    for (int p = 0; p < P; ++p) {
      if (p >= count) break;
      for (int g = 0; g < G; ++g) {
        const auto value = E == Epilogue::Relu ? L::relu(sums[p][g]) : sums[p][g];
        L::store_at_most(out + (first + p) * channels + g * L::WIDTH, value, static_cast<int>(valid - g * L::WIDTH));
      }
    }
  }
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
  const int64_t positions = images * in.positions();
  if (is_narrow(channels)) convolve_all_groups<Lanes<8>, E>(in, positions, kernel, weights, bias, out, channels);
  else convolve_all_groups<Lanes<16>, E>(in, positions, kernel, weights, bias, out, channels);
}

// ---- gradients of weights

// The gradients of `ROWS` rows of `J` neighbouring elements, over positions in turn in `CHAINS` sums: enough of them that
// none waits for its predecessor.
template <class L, int G, int ROWS, int J, int CHAINS>
ALONE void weight_grads_tile(const float* x, int64_t row, const int32_t* window, const float* grad, const int32_t* centre,
                             int64_t positions, int64_t valid_elements, int64_t valid_channels, double* totals,
                             int64_t element_stride, int64_t row_stride) {
  typename L::V sums[CHAINS][ROWS * J][G];
  for (auto& chain : sums)
    for (auto& element : chain)
      for (auto& sum : element) sum = L::zero();
  const auto add = [&](typename L::V(&to)[ROWS * J][G], int64_t p) INLINE_LAMBDA {
    const float* from = x + window[p];
    const float* at = grad + centre[p];
    typename L::V g[G];
    // What lies behind the last channel belongs to a neighbour, and its sum is thrown away; so are the elements behind
    // the last one.
    for (int i = 0; i < G; ++i) g[i] = L::load(at + i * L::WIDTH);
    for (int r = 0; r < ROWS; ++r)
      for (int j = 0; j < J; ++j) {
        const auto value = L::all(from[r * row + j]);
        for (int i = 0; i < G; ++i) to[r * J + j][i] = L::fma(value, g[i], to[r * J + j][i]);
      }
  };
  int64_t p = 0;
  for (; p + CHAINS <= positions; p += CHAINS)
    for (int chain = 0; chain < CHAINS; ++chain) add(sums[chain], p + chain);
  for (int chain = 0; chain < CHAINS - 1; ++chain)
    if (p + chain < positions) add(sums[chain], p + chain);
  float lanes[L::WIDTH];
  for (int r = 0; r < ROWS; ++r)
    for (int j = 0; j < J; ++j) {
      if (j >= valid_elements) break;
      for (int i = 0; i < G; ++i) {
        auto sum = sums[0][r * J + j][i];
        for (int chain = 1; chain < CHAINS; ++chain) sum = L::add(sum, sums[chain][r * J + j][i]);
        L::store(lanes, sum);
        double* to = totals + r * row_stride + j * element_stride + i * L::WIDTH;
        const int64_t count = least(L::WIDTH, valid_channels - i * L::WIDTH);
        for (int64_t lane = 0; lane < count; ++lane) to[lane] += lanes[lane];
      }
    }
}

template <class L, int G>
INLINE void weight_grads_groups(const Padded& x, const Padded& grad, int64_t positions, int64_t kernel, int64_t c,
                                double* totals, int64_t stride) {
  const int64_t run = kernel * x.channels, row_stride = run * stride;
  const int64_t valid = grad.channels - c;
  const auto tile = [&](auto kernels, int64_t dy, int64_t j) INLINE_LAMBDA {
    kernels(x.data + dy * x.row + j, x.row, x.window, grad.data + c, grad.centre, positions, run - j, valid,
            totals + dy * row_stride + j * stride + c, stride, row_stride);
  };
  if (run <= 4 && kernel == 3) return tile(weight_grads_tile<L, G, 3, 4, 1>, 0, 0);
  for (int64_t dy = 0; dy < kernel; ++dy)
    for (int64_t j = 0; j < run;) {
      if (run - j > 8) tile(weight_grads_tile<L, G, 1, 12, 1>, dy, j), j += 12;
      else if (run - j > 4) tile(weight_grads_tile<L, G, 1, 8, 1>, dy, j), j += 8;
      else tile(weight_grads_tile<L, G, 1, 4, 2>, dy, j), j += 4;
    }
}

template <class L>
INLINE void weight_grads_all_groups(const Padded& x, const Padded& grad, int64_t positions, int64_t kernel,
                                    double* totals) {
  const int64_t channels = grad.channels, stride = packed_channels(channels);
  int64_t c = 0;
  if constexpr (REGISTERS == 32)
    for (; c + L::WIDTH < channels; c += 2 * L::WIDTH) weight_grads_groups<L, 2>(x, grad, positions, kernel, c, totals, stride);
  for (; c < channels; c += L::WIDTH) weight_grads_groups<L, 1>(x, grad, positions, kernel, c, totals, stride);
}

// Adds the gradients of the weights over `images` images to `totals [elements, packed_channels]`.
void add_weight_grads(const Padded& x, const Padded& grad, int64_t images, int64_t kernel, double* totals) {
  const int64_t positions = images * x.positions();
  if (is_narrow(grad.channels)) weight_grads_all_groups<Lanes<8>>(x, grad, positions, kernel, totals);
  else weight_grads_all_groups<Lanes<16>>(x, grad, positions, kernel, totals);
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
