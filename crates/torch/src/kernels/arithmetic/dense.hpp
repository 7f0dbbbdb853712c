// Means over positions and linear maps of them: heads of hosts, squeeze and excitation. A linear map over samples is a
// 1x1 convolution over positions.

#pragma once

#include "seed.hpp"

namespace {

// `[n, channels]` rows as a convolution of kernel 1 reads them: images of one position.
INLINE ConvShape rows_of(int64_t n, int64_t inputs, int64_t outputs) { return {n, 1, 1, inputs, outputs, 1, false}; }

INLINE int64_t linear_scratch(const ConvShape& s) {
  return pad_scratch(s, s.outputs, s.batch, images_in_lanes(s.outputs)) + convolution_room(s, s.batch) + 2 * s.batch +
         2 * s.inputs * packed_channels(s.outputs) + 192;
}

// x·W + bias; `packed` as `pack` makes it, `bias` of `outputs` entries or null.
INLINE void linear(int64_t n, int64_t inputs, int64_t outputs, const float* x, const float* packed, const float* bias,
                   float* out, Scratch scratch) {
  const ConvShape s = rows_of(n, inputs, outputs);
  const Padded in = over_dense(lined_up(unfilled(s, inputs), n, scratch), x);
  convolve(in, n, 1, packed, bias, out, outputs, scratch.take(convolution_room(s, n)));
}

// The gradient of W, `[outputs, inputs]`.
INLINE void linear_weight_grad(int64_t n, int64_t inputs, int64_t outputs, const float* x, const float* grad,
                               float* weight_grad, Scratch scratch) {
  const ConvShape s = rows_of(n, inputs, outputs);
  const Padded in = unfilled(s, inputs), out = pad(s, outputs, n, images_in_lanes(outputs), scratch);
  fill(out, grad, n);
  double* totals = scratch.take_doubles(inputs * packed_channels(outputs));
  zero(totals, inputs * packed_channels(outputs));
  add_weight_grads(x, in, out, n, 1, totals, scratch.take(convolution_room(s, n)));
  unpack_grads(s, totals, weight_grad);
}

// Mean over positions: `[n, positions, channels]` to `[n, channels]`.
INLINE void spatial_means(int64_t n, int64_t positions, int64_t channels, const float* x, float* means, Scratch scratch) {
  const int64_t period = period_of(channels);
  double* sums = scratch.take_doubles(channels);
  for (int64_t sample = 0; sample < n; ++sample, x += positions * channels, means += channels) {
    zero(sums, channels);
    double* const totals[1] = {sums};
    add_channel_sums<1>(positions * channels, channels, period, totals, [&](int64_t at, int64_t, int k, Flat::V(&v)[1]) INLINE_LAMBDA {
      v[0] = Flat::load_at_most(x + at, k);
    });
    for (int64_t c = 0; c < channels; ++c) means[c] = static_cast<float>(sums[c] / static_cast<double>(positions));
  }
}

INLINE void column_sums(int64_t n, int64_t columns, const float* x, float* sums, Scratch scratch) {
  double* totals = scratch.take_doubles(columns);
  zero(totals, columns);
  double* const all[1] = {totals};
  add_channel_sums<1>(n * columns, columns, period_of(columns), all, [&](int64_t at, int64_t, int k, Flat::V(&v)[1]) INLINE_LAMBDA {
    v[0] = Flat::load_at_most(x + at, k);
  });
  for (int64_t c = 0; c < columns; ++c) sums[c] = static_cast<float>(totals[c]);
}

// ---- the head: mean over positions, then a linear map. The shape's `inputs` are channels, its `outputs` classes.

int64_t head_scratch(const ConvShape& s) {
  const ConvShape rows = rows_of(s.batch, s.inputs, s.outputs);
  return linear_scratch(rows) + linear_scratch(rows_of(s.batch, s.outputs, s.inputs)) + s.batch * s.inputs +
         (s.inputs + 1) * packed_channels(s.outputs) + s.outputs * packed_channels(s.inputs) + 2 * s.inputs +
         2 * s.outputs + 512;
}

// `means [batch, inputs]` are kept for the way back. `weight [outputs, inputs]`.
void head_forward(const ConvShape& s, const float* x, const float* weight, const float* bias, float* means, float* logits,
                  float* memory) {
  Scratch scratch = {memory};
  spatial_means(s.batch, s.positions(), s.inputs, x, means, scratch);
  float* packed = scratch.take(s.inputs * packed_channels(s.outputs));
  float* biases = scratch.take(packed_channels(s.outputs));
  pack(rows_of(s.batch, s.inputs, s.outputs), weight, packed);
  zero(biases, packed_channels(s.outputs));
  std::memcpy(biases, bias, s.outputs * sizeof(float));
  linear(s.batch, s.inputs, s.outputs, means, packed, biases, logits, scratch);
}

void head_backward(const ConvShape& s, const float* means, const float* weight, const float* grad, float* x_grad,
                   float* weight_grad, float* bias_grad, float* memory) {
  Scratch scratch = {memory};
  const ConvShape rows = rows_of(s.batch, s.inputs, s.outputs);
  linear_weight_grad(s.batch, s.inputs, s.outputs, means, grad, weight_grad, scratch);
  column_sums(s.batch, s.outputs, grad, bias_grad, scratch);
  if (x_grad == nullptr) return;
  float* of_means = scratch.take(s.batch * s.inputs);
  float* packed = scratch.take(s.outputs * packed_channels(s.inputs));
  pack_backwards(rows, weight, packed);
  linear(s.batch, s.outputs, s.inputs, grad, packed, nullptr, of_means, scratch);
  const float share = static_cast<float>(1.0 / static_cast<double>(s.positions()));
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t p = 0; p < s.positions(); ++p, x_grad += s.inputs)
      for (int64_t c = 0; c < s.inputs; ++c) x_grad[c] = of_means[n * s.inputs + c] * share;
}

// ---- squeeze and excitation: x·tanh(W₂·silu(W₁·mean(x)) + b). The shape's `outputs` are the hidden units.

int64_t excite_scratch(const ConvShape& s) {
  const ConvShape in = rows_of(s.batch, s.inputs, s.outputs), out = rows_of(s.batch, s.outputs, s.inputs);
  return linear_scratch(in) + linear_scratch(out) +
         4 * s.batch * (s.inputs + s.outputs) + 2 * s.inputs * packed_channels(s.outputs) +
         2 * (s.outputs + 1) * packed_channels(s.inputs) + 4 * s.inputs + period_of(s.inputs) + 1024;
}

// Kept for the way back: `means [batch, inputs]`, `hidden [batch, outputs]` before SiLU, `gates [batch, inputs]`.
void excite_forward(const ConvShape& s, const float* x, const float* squeeze, const float* excite, const float* bias,
                    float* means, float* hidden, float* gates, float* out, float* memory) {
  Scratch scratch = {memory};
  const int64_t channels = s.inputs, units = s.outputs, period = period_of(channels);
  spatial_means(s.batch, s.positions(), channels, x, means, scratch);
  float* packed = scratch.take(most(channels * packed_channels(units), units * packed_channels(channels)));
  float* biases = scratch.take(packed_channels(channels));
  float* active = scratch.take(s.batch * units);
  pack(rows_of(s.batch, channels, units), squeeze, packed);
  linear(s.batch, channels, units, means, packed, nullptr, hidden, scratch);
  over_flat(s.batch * units, 16, [&](int64_t at, int64_t, int k) INLINE_LAMBDA {
    Flat::store_at_most(active + at, silu(Flat::load_at_most(hidden + at, k)), k);
  });
  zero(biases, packed_channels(channels));
  std::memcpy(biases, bias, channels * sizeof(float));
  pack(rows_of(s.batch, units, channels), excite, packed);
  linear(s.batch, units, channels, active, packed, biases, gates, scratch);
  over_flat(s.batch * channels, 16, [&](int64_t at, int64_t, int k) INLINE_LAMBDA {
    Flat::store_at_most(gates + at, hyperbolic_tangent<Flat>(Flat::load_at_most(gates + at, k)), k);
  });
  float* gate = scratch.take(period);
  const int64_t of_image = s.positions() * channels;
  for (int64_t n = 0; n < s.batch; ++n, x += of_image, out += of_image) {
    repeat(gates + n * channels, channels, period, gate);
    over_flat(of_image, period, [&](int64_t at, int64_t offset, int k) INLINE_LAMBDA {
      Flat::store_at_most(out + at, Flat::mul(Flat::load_at_most(x + at, k), Flat::load(gate + offset)), k);
    });
  }
}

void excite_backward(const ConvShape& s, const float* x, const float* squeeze, const float* excite, const float* means,
                     const float* hidden, const float* gates, const float* grad, float* x_grad, float* squeeze_grad,
                     float* excite_grad, float* bias_grad, float* memory) {
  Scratch scratch = {memory};
  const int64_t channels = s.inputs, units = s.outputs, period = period_of(channels), of_image = s.positions() * channels;
  float* of_gates = scratch.take(s.batch * channels);
  float* active = scratch.take(s.batch * units);
  float* of_hidden = scratch.take(s.batch * units);
  float* packed = scratch.take(most(channels * packed_channels(units), units * packed_channels(channels)));
  double* sums = scratch.take_doubles(channels);
  for (int64_t n = 0; n < s.batch; ++n) {
    zero(sums, channels);
    double* const totals[1] = {sums};
    add_channel_sums<1>(of_image, channels, period, totals, [&](int64_t at, int64_t, int k, Flat::V(&v)[1]) INLINE_LAMBDA {
      v[0] = Flat::mul(Flat::load_at_most(x + n * of_image + at, k), Flat::load_at_most(grad + n * of_image + at, k));
    });
    for (int64_t c = 0; c < channels; ++c) {
      const float gate = gates[n * channels + c];
      of_gates[n * channels + c] = static_cast<float>(sums[c] * (1 - static_cast<double>(gate) * gate));
    }
  }
  column_sums(s.batch, channels, of_gates, bias_grad, scratch);
  over_flat(s.batch * units, 16, [&](int64_t at, int64_t, int k) INLINE_LAMBDA {
    Flat::store_at_most(active + at, silu(Flat::load_at_most(hidden + at, k)), k);
  });
  linear_weight_grad(s.batch, units, channels, active, of_gates, excite_grad, scratch);
  pack_backwards(rows_of(s.batch, units, channels), excite, packed);
  linear(s.batch, channels, units, of_gates, packed, nullptr, of_hidden, scratch);
  over_flat(s.batch * units, 16, [&](int64_t at, int64_t, int k) INLINE_LAMBDA {
    Flat::V value, slope;
    silu_and_slope(Flat::load_at_most(hidden + at, k), value, slope);
    Flat::store_at_most(of_hidden + at, Flat::mul(Flat::load_at_most(of_hidden + at, k), slope), k);
  });
  linear_weight_grad(s.batch, channels, units, means, of_hidden, squeeze_grad, scratch);
  if (x_grad == nullptr) return;
  float* of_means = scratch.take(s.batch * channels);
  pack_backwards(rows_of(s.batch, channels, units), squeeze, packed);
  linear(s.batch, units, channels, of_hidden, packed, nullptr, of_means, scratch);
  float* gate = scratch.take(period);
  float* share = scratch.take(period);
  float* shares = scratch.take(channels);
  for (int64_t n = 0; n < s.batch; ++n) {
    repeat(gates + n * channels, channels, period, gate);
    for (int64_t c = 0; c < channels; ++c)
      shares[c] = of_means[n * channels + c] / static_cast<float>(s.positions());
    repeat(shares, channels, period, share);
    over_flat(of_image, period, [&](int64_t at, int64_t offset, int k) INLINE_LAMBDA {
      const auto g = Flat::load_at_most(grad + n * of_image + at, k);
      Flat::store_at_most(x_grad + n * of_image + at, Flat::fma(g, Flat::load(gate + offset), Flat::load(share + offset)), k);
    });
  }
}

}  // namespace
