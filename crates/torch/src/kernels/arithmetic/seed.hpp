// The parts of seeds: a convolution followed by SiLU and group norm, squeeze and excitation, a norm alone.
// All of it is per sample, so a sample passes through while it is close to the core.

#pragma once

#include "algorithms.hpp"
#include "math.hpp"

namespace {

using simic::Layer;

INLINE Flat::V silu(Flat::V x) { return Flat::mul(x, sigmoid<Flat>(x)); }

// silu(x) and its slope, σ + silu(x)·(1 - σ).
INLINE void silu_and_slope(Flat::V x, Flat::V& value, Flat::V& slope) {
  const auto gate = sigmoid<Flat>(x);
  value = Flat::mul(x, gate);
  slope = Flat::fma(value, Flat::sub(Flat::all(1), gate), gate);
}

// ---- group norm

// A group norm, applied to one sample at a time.
struct Norm {
  int64_t positions, channels, groups, group_channels, period;
  const float* gamma;
  const float* beta;
  double epsilon;
  double *first, *second;
  float* by_channel;
  // Numbers that repeat with the channels.
  float* pattern[5];

  INLINE Norm(int64_t positions, int64_t channels, int64_t groups, const float* gamma, const float* beta, double epsilon,
              Scratch& scratch)
      : positions(positions), channels(channels), groups(groups), group_channels(channels / groups),
        period(period_of(channels)), gamma(gamma), beta(beta), epsilon(epsilon), first(scratch.take_doubles(channels)), second(scratch.take_doubles(channels)),
        by_channel(scratch.take(channels)) {
    for (auto& numbers : pattern) numbers = scratch.take(period);
  }

  static INLINE int64_t scratch(int64_t channels) { return 5 * channels + 5 * period_of(channels) + 128; }

  INLINE int64_t floats() const { return positions * channels; }
  INLINE double values() const { return static_cast<double>(positions * group_channels); }

  template <class F>
  INLINE void spread(float* to, F of_channel) {
    for (int64_t group = 0, c = 0; group < groups; ++group)
      for (const int64_t next = c + group_channels; c < next; ++c) by_channel[c] = of_channel(c, group);
    repeat(by_channel, channels, period, to);
  }

  INLINE double sum_of_group(const double* of_channels, int64_t group) const {
    double sum = 0;
    for (int64_t c = group * group_channels; c < (group + 1) * group_channels; ++c) sum += of_channels[c];
    return sum;
  }

  // Mean and 1/√(σ² + ε) of each group of `a`, in two passes. The first calls `read(index, count)` for each vector of it,
  // which may write it as well.
  template <class F>
  INLINE void statistics(const float* a, float* means, float* inverses, F read) {
    zero(first, channels);
    double* const sums[1] = {first};
    add_channel_sums<1>(floats(), channels, period, sums, [&](int64_t at, int64_t, int n, Flat::V(&v)[1]) INLINE_LAMBDA {
      v[0] = read(at, n);
    });
    for (int64_t group = 0; group < groups; ++group) means[group] = static_cast<float>(sum_of_group(first, group) / values());
    spread(pattern[0], [&](int64_t, int64_t group) INLINE_LAMBDA { return means[group]; });
    zero(first, channels);
    zero(second, channels);
    double* const moments[2] = {first, second};
    add_channel_sums<2>(floats(), channels, period, moments, [&](int64_t at, int64_t offset, int n, Flat::V(&v)[2]) INLINE_LAMBDA {
      v[0] = Flat::sub(Flat::load_at_most(a + at, n), Flat::load(pattern[0] + offset));
      v[1] = Flat::mul(v[0], v[0]);
    });
    for (int64_t group = 0; group < groups; ++group) {
      // The error of the mean by rounding.
      const double off = sum_of_group(first, group) / values();
      const double variance = sum_of_group(second, group) / values() - off * off;
      inverses[group] = static_cast<float>(1 / __builtin_sqrt(variance + epsilon));
    }
  }

  // γ·x̂ + β as a scale and a shift of `a`, in patterns 0 and 1.
  INLINE void affine(const float* means, const float* inverses) {
    spread(pattern[0], [&](int64_t c, int64_t group) INLINE_LAMBDA { return gamma[c] * inverses[group]; });
    spread(pattern[1], [&](int64_t c, int64_t group) INLINE_LAMBDA {
      return __builtin_fmaf(-means[group], gamma[c] * inverses[group], beta[c]);
    });
  }

  INLINE Flat::V apply(Flat::V a, int64_t offset) const {
    return Flat::fma(a, Flat::load(pattern[0] + offset), Flat::load(pattern[1] + offset));
  }

  // Adds a sample's share to the gradients of γ and β, and gives that of its input `a` for the gradient `factor·g` of the
  // norm's result to `write(index, count, value)`. `read`: as of `statistics`.
  template <class R, class F>
  INLINE void backward(const float* a, const float* g, float factor, const float* means, const float* inverses,
                       double* gamma_grad, double* beta_grad, R read, F write) {
    // x̂ as a scale and a shift of `a`.
    spread(pattern[0], [&](int64_t, int64_t group) INLINE_LAMBDA { return inverses[group]; });
    spread(pattern[1], [&](int64_t, int64_t group) INLINE_LAMBDA { return -means[group] * inverses[group]; });
    zero(first, channels);
    zero(second, channels);
    double* const sums[2] = {first, second};
    add_channel_sums<2>(floats(), channels, period, sums, [&](int64_t at, int64_t offset, int n, Flat::V(&v)[2]) INLINE_LAMBDA {
      v[0] = Flat::load_at_most(g + at, n);
      v[1] = Flat::mul(v[0], apply(read(at, n), offset));
    });
    for (int64_t c = 0; c < channels; ++c) {
      first[c] *= factor;
      second[c] *= factor;
      beta_grad[c] += first[c];
      gamma_grad[c] += second[c];
      first[c] *= gamma[c];
      second[c] *= gamma[c];
    }
    // With r = 1/√(σ² + ε): da = g·γr - x̂·rΣ(γg·x̂)/n - rΣ(γg)/n.
    spread(pattern[2], [&](int64_t c, int64_t group) INLINE_LAMBDA { return factor * gamma[c] * inverses[group]; });
    for (int which = 0; which < 2; ++which) {
      const double* of_channels = which == 0 ? second : first;
      for (int64_t group = 0; group < groups; ++group) {
        const float share = static_cast<float>(-inverses[group] * sum_of_group(of_channels, group) / values());
        for (int64_t c = group * group_channels; c < (group + 1) * group_channels; ++c) by_channel[c] = share;
      }
      repeat(by_channel, channels, period, pattern[3 + which]);
    }
    over_flat(floats(), period, [&](int64_t at, int64_t offset, int n) INLINE_LAMBDA {
      const auto normalised = apply(Flat::load_at_most(a + at, n), offset);
      const auto rest = Flat::fma(normalised, Flat::load(pattern[3] + offset), Flat::load(pattern[4] + offset));
      write(at, n, Flat::fma(Flat::load_at_most(g + at, n), Flat::load(pattern[2] + offset), rest));
    });
  }
};

// ---- convolution, SiLU, group norm, SiLU

int64_t layer_scratch_forward(const Layer& layer) {
  const ConvShape& s = layer.conv;
  const int64_t images = images_of_chunk(s);
  return pad_scratch(s, s.inputs, images, filled_together(s, s.outputs)) + chunk_room(s) +
         Norm::scratch(s.outputs) + (images + 1) * s.positions() * s.outputs +
         2 * layer.groups + 256;
}

int64_t layer_scratch_backward(const Layer& layer) {
  const ConvShape& s = layer.conv;
  const int64_t images = images_of_chunk(s), of_image = s.positions() * s.outputs;
  return pad_scratch(s, s.inputs, images, 1) + pad_scratch(s, s.outputs, images, grads_together(s)) +
         chunk_room(s) + Norm::scratch(s.outputs) +
         4 * s.outputs + 2 * weight_totals(s) + (2 * images + 4) * (of_image + 16) + SLACK + 512;
}

// Writes the layer's result y to `out`, or onto + alpha·y where there is an `onto`; neither, where `out` is null. Kept for
// the way back, or null where there is none: `z`, the convolution's result, unless it is all that the layer computes;
// `means` and `inverses`, of each sample and group.
void layer_forward(const Layer& layer, const float* x, const float* packed, const float* gamma, const float* beta,
                   const float* onto, float alpha, float* z, float* out, float* means, float* inverses, float* memory) {
  const ConvShape& s = layer.conv;
  Scratch scratch = {memory};
  const int64_t images = images_of_chunk(s), channels = s.outputs, of_image = s.positions() * channels;
  const Padded in = bordered_inputs(s, images, scratch);
  Norm norm(s.positions(), channels, layer.groups, gamma, beta, layer.epsilon, scratch);
  float* room = scratch.take(chunk_room(s));
  float* passing = scratch.take(images * of_image);
  float* values = scratch.take(of_image);
  float* passing_mean = scratch.take(layer.groups);
  float* passing_inverse = scratch.take(layer.groups);
  const bool is_convolved_into_out = onto == nullptr && !layer.norm && !layer.silu_before;
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    const float* from = x + first * s.positions() * s.inputs;
    float* to = is_convolved_into_out ? out + first * of_image : z == nullptr ? passing : z + first * of_image;
    convolve_chunk(s, from, in, count, packed, nullptr, to, room);
    if (is_convolved_into_out) continue;
    for (int64_t n = 0; n < count; ++n) {
      const int64_t image = (first + n) * of_image;
      const float* convolved = to + n * of_image;
      const auto add_onto = [&](int64_t at, int k, Flat::V y) INLINE_LAMBDA {
        if (onto != nullptr) y = Flat::fma(y, Flat::all(alpha), Flat::load_at_most(onto + image + at, k));
        Flat::store_at_most(out + image + at, y, k);
      };
      if (!layer.norm) {
        if (out == nullptr) continue;
        over_flat(of_image, 16, [&](int64_t at, int64_t, int k) INLINE_LAMBDA {
          const auto value = Flat::load_at_most(convolved + at, k);
          add_onto(at, k, layer.silu_before ? silu(value) : value);
        });
        continue;
      }
      float* mean = means == nullptr ? passing_mean : means + (first + n) * layer.groups;
      float* inverse = inverses == nullptr ? passing_inverse : inverses + (first + n) * layer.groups;
      const float* a = layer.silu_before ? values : convolved;
      norm.statistics(a, mean, inverse, [&](int64_t at, int k) INLINE_LAMBDA {
        auto value = Flat::load_at_most(convolved + at, k);
        if (layer.silu_before) value = silu(value), Flat::store_at_most(values + at, value, k);
        // While there is much to compute: where the result goes, and what the next chunk's convolution reads and writes.
        if (out != nullptr) fetch(out + image + at);
        if (z != nullptr) fetch(convolved + images * of_image + at);
        if (s.inputs == channels) fetch(x + image + images * of_image + at);
        return value;
      });
      if (out == nullptr) continue;
      norm.affine(mean, inverse);
      over_flat(of_image, norm.period, [&](int64_t at, int64_t offset, int k) INLINE_LAMBDA {
        const auto y = norm.apply(Flat::load_at_most(a + at, k), offset);
        add_onto(at, k, layer.silu_after ? silu(y) : y);
      });
    }
  }
}

// Gradients of the weights and, where there is room for them, of x, for the gradient alpha·grad of the layer's result;
// with a norm also of γ and β. `is_added`: the result was added onto x, whose gradient is that through the layer and `grad`
// then, in whose place it may be written.
void layer_backward(const Layer& layer, const float* x, const float* z, const float* means, const float* inverses,
                    const float* gamma, const float* beta, const float* grad, float alpha, bool is_added,
                    const float* backwards, float* x_grad, float* weight_grad, float* gamma_grad, float* beta_grad,
                    float* memory) {
  const ConvShape& s = layer.conv;
  Scratch scratch = {memory};
  const int64_t images = images_of_chunk(s), channels = s.outputs, of_image = s.positions() * channels;
  const Padded in = s.depthwise ? pad(s, s.inputs, images, 1, scratch) : unfilled(s, s.inputs);
  const Padded of_grads = bordered(s, channels, images, grads_together(s), scratch);
  Norm norm(s.positions(), channels, layer.groups, gamma, beta, layer.epsilon, scratch);
  double* gammas = scratch.take_doubles(channels);
  double* betas = scratch.take_doubles(channels);
  double* totals = scratch.take_doubles(weight_totals(s));
  zero(gammas, channels), zero(betas, channels), zero(totals, weight_totals(s));
  // For one sample: silu(z) and its slope, and the gradient after the norm. For a chunk: dz.
  float* values = scratch.take(of_image);
  float* slopes = scratch.take(of_image);
  float* after_norm = scratch.take(of_image);
  float* dz = scratch.take(images * of_image + SLACK);
  float* through = scratch.take(is_added ? images * of_image : 0);
  float* room = scratch.take(chunk_room(s));
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    for (int64_t n = 0; n < count; ++n) {
      const float* of_z = z + (first + n) * of_image;
      const float* g = grad + (first + n) * of_image;
      float* to = dz + n * of_image;
      if (!layer.norm) {
        over_flat(of_image, 16, [&](int64_t at, int64_t, int k) INLINE_LAMBDA {
          Flat::V value, slope = Flat::all(1);
          if (layer.silu_before) silu_and_slope(Flat::load_at_most(of_z + at, k), value, slope);
          Flat::store_at_most(to + at, Flat::mul(Flat::load_at_most(g + at, k), Flat::mul(Flat::all(alpha), slope)), k);
        });
        continue;
      }
      const float* mean = means + (first + n) * layer.groups;
      const float* inverse = inverses + (first + n) * layer.groups;
      const float* a = layer.silu_before ? values : of_z;
      const auto activate = [&](int64_t at, int k) INLINE_LAMBDA {
        auto value = Flat::load_at_most(of_z + at, k);
        if (layer.silu_before) {
          Flat::V slope;
          silu_and_slope(value, value, slope);
          Flat::store_at_most(values + at, value, k);
          Flat::store_at_most(slopes + at, slope, k);
        }
        // For the gradients of the weights.
        if (s.inputs == channels) fetch(x + (first + n) * of_image + at);
        return value;
      };
      const auto finish = [&](int64_t at, int k, Flat::V da) INLINE_LAMBDA {
        const auto value = layer.silu_before ? Flat::mul(da, Flat::load_at_most(slopes + at, k)) : da;
        Flat::store_at_most(to + at, value, k);
      };
      if (!layer.silu_after) {
        norm.backward(a, g, alpha, mean, inverse, gammas, betas, activate, finish);
        continue;
      }
      norm.affine(mean, inverse);
      over_flat(of_image, norm.period, [&](int64_t at, int64_t offset, int k) INLINE_LAMBDA {
        Flat::V value, slope;
        silu_and_slope(norm.apply(activate(at, k), offset), value, slope);
        Flat::store_at_most(after_norm + at, Flat::mul(Flat::load_at_most(g + at, k), slope), k);
      });
      const auto again = [&](int64_t at, int k) INLINE_LAMBDA { return Flat::load_at_most(a + at, k); };
      norm.backward(a, after_norm, alpha, mean, inverse, gammas, betas, again, finish);
    }
    float* of_x = x_grad == nullptr ? nullptr : x_grad + first * s.positions() * s.inputs;
    convolve_chunk_back(s, x + first * s.positions() * s.inputs, in, with_border(s, of_grads, dz, count), count, backwards,
                        x_grad != nullptr && is_added ? through : of_x, totals, room);
    if (x_grad != nullptr && is_added)
      over_flat(count * of_image, 16, [&](int64_t at, int64_t, int k) INLINE_LAMBDA {
        const auto passed_by = Flat::load_at_most(grad + first * of_image + at, k);
        Flat::store_at_most(of_x + at, Flat::add(passed_by, Flat::load_at_most(through + at, k)), k);
      });
  }
  unpack_totals(s, totals, weight_grad);
  if (!layer.norm) return;
  for (int64_t c = 0; c < channels; ++c) {
    gamma_grad[c] = static_cast<float>(gammas[c]);
    beta_grad[c] = static_cast<float>(betas[c]);
  }
}

// ---- a norm alone: tanh(strength)·(norm(x) - x)

INLINE float factor_of(float strength) {
  float lanes[16];
  Flat::store(lanes, hyperbolic_tangent<Flat>(Flat::all(strength)));
  return lanes[0];
}

int64_t norm_scratch(const Layer& layer) {
  return Norm::scratch(layer.conv.outputs) + 4 * layer.conv.outputs + 256;
}

void norm_forward(const Layer& layer, const float* x, const float* gamma, const float* beta, float strength, float* out,
                  float* means, float* inverses, float* memory) {
  Scratch scratch = {memory};
  const ConvShape& s = layer.conv;
  Norm norm(s.positions(), s.outputs, layer.groups, gamma, beta, layer.epsilon, scratch);
  const int64_t of_image = norm.floats();
  const auto factor = Flat::all(factor_of(strength));
  for (int64_t n = 0; n < s.batch; ++n, x += of_image, out += of_image, means += layer.groups, inverses += layer.groups) {
    norm.statistics(x, means, inverses, [&](int64_t at, int k) INLINE_LAMBDA { return Flat::load_at_most(x + at, k); });
    norm.affine(means, inverses);
    over_flat(of_image, norm.period, [&](int64_t at, int64_t offset, int k) INLINE_LAMBDA {
      const auto value = Flat::load_at_most(x + at, k);
      Flat::store_at_most(out + at, Flat::mul(factor, Flat::sub(norm.apply(value, offset), value)), k);
    });
  }
}

// Gradients of γ, β, the strength and, where there is room for it, of x.
void norm_backward(const Layer& layer, const float* x, const float* means, const float* inverses, const float* gamma,
                   const float* beta, float strength, const float* grad, float* x_grad, float* gamma_grad,
                   float* beta_grad, float* strength_grad, float* memory) {
  Scratch scratch = {memory};
  const ConvShape& s = layer.conv;
  const int64_t channels = s.outputs;
  Norm norm(s.positions(), channels, layer.groups, gamma, beta, layer.epsilon, scratch);
  const int64_t of_image = norm.floats();
  double* gammas = scratch.take_doubles(channels);
  double* betas = scratch.take_doubles(channels);
  zero(gammas, channels), zero(betas, channels);
  double total = 0;
  const float factor = factor_of(strength);
  for (int64_t n = 0; n < s.batch; ++n, x += of_image, grad += of_image, means += layer.groups, inverses += layer.groups) {
    norm.affine(means, inverses);
    zero(norm.first, channels);
    double* const sums[1] = {norm.first};
    add_channel_sums<1>(of_image, channels, norm.period, sums, [&](int64_t at, int64_t offset, int k, Flat::V(&v)[1]) INLINE_LAMBDA {
      const auto value = Flat::load_at_most(x + at, k);
      v[0] = Flat::mul(Flat::load_at_most(grad + at, k), Flat::sub(norm.apply(value, offset), value));
    });
    for (int64_t c = 0; c < channels; ++c) total += norm.first[c];
    const auto read = [&](int64_t at, int k) INLINE_LAMBDA { return Flat::load_at_most(x + at, k); };
    norm.backward(x, grad, factor, means, inverses, gammas, betas, read, [&](int64_t at, int k, Flat::V dx) INLINE_LAMBDA {
      if (x_grad == nullptr) return;
      Flat::store_at_most(x_grad + at, Flat::fma(Flat::load_at_most(grad + at, k), Flat::all(-factor), dx), k);
    });
    if (x_grad != nullptr) x_grad += of_image;
  }
  for (int64_t c = 0; c < channels; ++c) {
    gamma_grad[c] = static_cast<float>(gammas[c]);
    beta_grad[c] = static_cast<float>(betas[c]);
  }
  *strength_grad = static_cast<float>(total) * (1 - factor * factor);
}

}  // namespace
