// A block of a host: convolution, batch norm by the batch's statistics, ReLU and, if asked for, a 2x2 max pool, forward
// and backward; and the same with fixed statistics, folded into the convolution.
//
// The convolution's result `z` is kept for the backward pass; what lies between it and the block's output, and its
// gradient, exist a few images at a time.

#pragma once

#include "convolution.hpp"

namespace {

INLINE int64_t block_scratch_forward(const ConvShape& s) {
  const int64_t images = images_at_a_time(s);
  return pad_scratch(s, s.inputs, images) + convolution_room(s, images) + images * s.positions() * s.outputs +
         8 * period_of(s.outputs) + 512;
}

INLINE int64_t block_scratch_backward(const ConvShape& s) {
  const int64_t images = images_at_a_time(s);
  return pad_scratch(s, s.inputs, images) + pad_scratch(s, s.outputs, images) + convolution_room(s, images) +
         2 * s.elements() * packed_channels(s.outputs) + 16 * period_of(s.outputs) + 512;
}

// z, and each channel's mean and (biased) variance over batch and positions. `packed`: weights as `pack` makes them.
//
// Squares are summed about a guess at the mean, that of the first images, so nothing cancels.
void block_forward(const ConvShape& s, const float* x, const float* packed, float* z, double* mean, double* variance,
                   float* memory) {
  Scratch scratch = {memory};
  const int64_t images = images_at_a_time(s), channels = s.outputs, period = period_of(channels);
  const Padded in = pad(s, s.inputs, images, scratch);
  float* room = scratch.take(convolution_room(s, images));
  float* guess = scratch.take(period);
  float* guesses = scratch.take(channels);
  const int64_t of_image = s.positions() * channels;
  zero(mean, channels);
  zero(variance, channels);
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    fill(in, x + first * s.positions() * s.inputs, count);
    float* out = z + first * of_image;
    convolve(in, count, s.kernel, packed, nullptr, out, channels, room);
    if (first == 0) {
      double* const sums[1] = {mean};
      add_channel_sums<1>(count * of_image, channels, period, sums, [&](int64_t at, int64_t, int n, Flat::V(&v)[1]) INLINE_LAMBDA {
        v[0] = Flat::load_at_most(out + at, n);
      });
      for (int64_t c = 0; c < channels; ++c) guesses[c] = static_cast<float>(mean[c] / static_cast<double>(count * s.positions()));
      repeat(guesses, channels, period, guess);
      zero(mean, channels);
    }
    double* const sums[2] = {mean, variance};
    add_channel_sums<2>(count * of_image, channels, period, sums, [&](int64_t at, int64_t offset, int n, Flat::V(&v)[2]) INLINE_LAMBDA {
      v[0] = Flat::sub(Flat::load_at_most(out + at, n), Flat::load(guess + offset));
      v[1] = Flat::mul(v[0], v[0]);
    });
  }
  const double values = static_cast<double>(s.batch * s.positions());
  for (int64_t c = 0; c < channels; ++c) {
    const double offset = mean[c] / values;
    variance[c] = variance[c] / values - offset * offset;
    mean[c] = guesses[c] + offset;
  }
}

// One window of a pool: the four positions of `z` from which `offset` distances lead, normalised.
template <class L>
struct Window {
  typename L::V z[4], y[4], highest;

  INLINE Window(const float* from, const int64_t (&offsets)[4], typename L::V scale, typename L::V shift, int n) {
    for (int i = 0; i < 4; ++i) {
      z[i] = L::load_at_most(from + offsets[i], n);
      y[i] = L::fma(z[i], scale, shift);
    }
    highest = L::larger(L::larger(L::larger(y[0], y[1]), y[2]), y[3]);
  }
};

// relu(z·scale + shift), pooled if asked for. `out` is dense.
template <class L>
INLINE void activate_pooled(const ConvShape& s, const float* z, const float* scale, const float* shift, float* out,
                            int64_t images) {
  const int64_t channels = s.outputs, row = s.width * channels, height = s.height / 2, width = s.width / 2;
  const int64_t offsets[4] = {0, channels, row, row + channels};
  for (int64_t n = 0; n < images; ++n, z += s.height * row)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x, out += channels) {
        const float* from = z + 2 * y * row + 2 * x * channels;
        for (int64_t c = 0; c < channels; c += L::WIDTH) {
          const int valid = static_cast<int>(least(L::WIDTH, channels - c));
          const Window<L> window(from + c, offsets, L::load(scale + c), L::load(shift + c), valid);
          L::store_at_most(out + c, L::relu(window.highest), valid);
        }
      }
}

// `scale` and `shift` have packed_channels entries.
void block_activate(const ConvShape& s, const float* z, const float* scale, const float* shift, bool pooled, float* out,
                    int64_t images, float* memory) {
  if (pooled) {
    if (is_narrow(s.outputs)) activate_pooled<Lanes<8>>(s, z, scale, shift, out, images);
    else activate_pooled<Lanes<16>>(s, z, scale, shift, out, images);
    return;
  }
  Scratch scratch = {memory};
  const int64_t period = period_of(s.outputs);
  float* scales = scratch.take(period);
  float* shifts = scratch.take(period);
  repeat(scale, s.outputs, period, scales);
  repeat(shift, s.outputs, period, shifts);
  over_flat(images * s.positions() * s.outputs, period, [&](int64_t at, int64_t offset, int n) INLINE_LAMBDA {
    const auto y = Flat::fma(Flat::load_at_most(z + at, n), Flat::load(scales + offset), Flat::load(shifts + offset));
    Flat::store_at_most(out + at, Flat::relu(y), n);
  });
}

// The gradient in front of the ReLU.
template <class L>
INLINE typename L::V before_relu(const Window<L>& window, typename L::V grad) {
  return L::select_less(L::zero(), window.highest, grad, L::zero());
}

// The gradient of a window's positions: all of it reaches the first of its largest values.
template <class L>
INLINE void route(const Window<L>& window, typename L::V rest, typename L::V (&to)[4]) {
  for (int i = 0; i < 3; ++i) {
    to[i] = L::select_less(window.y[i], window.highest, L::zero(), rest);
    rest = L::select_less(window.y[i], window.highest, rest, L::zero());
  }
  to[3] = rest;
}

// Per channel: Σ dy and Σ dy·(z - mean), dy being the gradient in front of the ReLU, which came through a pool or not.
//
// Window by window in both cases, so that a block gives the same bits whether its pool is computed with it or behind it
// (the pool's gradient is zero where this leaves positions out).
template <class L, bool POOLED>
INLINE void add_sums(const ConvShape& s, const float* z, const float* grad, const float* scale, const float* shift,
                     const float* mean, double* sums, double* products, int64_t images) {
  const int64_t channels = s.outputs, row = s.width * channels, height = s.height / 2, width = s.width / 2;
  const int64_t offsets[4] = {0, channels, row, row + channels};
  float lanes[L::WIDTH];
  for (int64_t c = 0; c < channels; c += L::WIDTH) {
    const int valid = static_cast<int>(least(L::WIDTH, channels - c));
    const auto scales = L::load(scale + c), shifts = L::load(shift + c), means = L::load(mean + c);
    auto sum = L::zero(), product = L::zero();
    const auto add = [&](typename L::V dy, typename L::V value) INLINE_LAMBDA {
      sum = L::add(sum, dy);
      product = L::fma(dy, L::sub(value, means), product);
    };
    const auto add_alone = [&](int64_t at) INLINE_LAMBDA {
      const auto value = L::load_at_most(z + at, valid);
      add(L::select_less(L::zero(), L::fma(value, scales, shifts), L::load_at_most(grad + at, valid), L::zero()), value);
    };
    const float* pooled = grad + c;
    for (int64_t n = 0; n < images; ++n) {
      const int64_t image = n * s.height * row + c;
      for (int64_t y = 0; y < height; ++y) {
        const int64_t line = image + 2 * y * row;
        for (int64_t x = 0; x < width; ++x) {
          const int64_t corner = line + 2 * x * channels;
          const Window<L> window(z + corner, offsets, scales, shifts, valid);
          if (POOLED) {
            auto chosen = window.z[3];
            for (int i = 2; i >= 0; --i) chosen = L::select_less(window.y[i], window.highest, chosen, window.z[i]);
            add(before_relu(window, L::load_at_most(pooled, valid)), chosen);
            pooled += channels;
          } else {
            for (int i = 0; i < 4; ++i) {
              const auto g = L::load_at_most(grad + corner + offsets[i], valid);
              add(L::select_less(L::zero(), window.y[i], g, L::zero()), window.z[i]);
            }
          }
        }
        if (!POOLED)
          for (int64_t x = 2 * width; x < s.width; ++x) add_alone(line + x * channels), add_alone(line + row + x * channels);
      }
      if (!POOLED)
        for (int64_t y = 2 * height; y < s.height; ++y)
          for (int64_t x = 0; x < s.width; ++x) add_alone(image + y * row + x * channels);
    }
    L::store(lanes, sum);
    for (int lane = 0; lane < valid; ++lane) sums[c + lane] += lanes[lane];
    L::store(lanes, product);
    for (int lane = 0; lane < valid; ++lane) products[c + lane] += lanes[lane];
  }
}

// dz = a·dy + b·(z - mean) + c for the positions of a row that no window covers, from column `first`.
template <class L>
INLINE void uncovered(const float* z, float* to, int64_t first, int64_t width, int64_t channels, const float* mean,
                      const float* b, const float* c) {
  for (int64_t x = first; x < width; ++x)
    for (int64_t ch = 0; ch < channels; ch += L::WIDTH) {
      const int valid = static_cast<int>(least(L::WIDTH, channels - ch));
      const auto centred = L::sub(L::load_at_most(z + x * channels + ch, valid), L::load(mean + ch));
      L::store_at_most(to + x * channels + ch, L::fma(L::load(b + ch), centred, L::load(c + ch)), valid);
    }
}

// dz of `images` images, pooled, into the middle of padded storage.
template <class L>
INLINE void pooled_grads(const ConvShape& s, const float* z, const float* grad, const float* scale, const float* shift,
                         const float* mean, const float* a, const float* b, const float* c, const Padded& to,
                         int64_t images) {
  const int64_t channels = s.outputs, row = s.width * channels, height = s.height / 2, width = s.width / 2;
  const int64_t offsets[4] = {0, channels, row, row + channels};
  const int64_t targets[4] = {0, channels, to.row, to.row + channels};
  for (int64_t n = 0; n < images; ++n, z += s.height * row) {
    float* image = to.data + n * to.image + to.pad * (to.row + channels);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x, grad += channels) {
        const float* from = z + 2 * y * row + 2 * x * channels;
        float* into = image + 2 * y * to.row + 2 * x * channels;
        for (int64_t ch = 0; ch < channels; ch += L::WIDTH) {
          const int valid = static_cast<int>(least(L::WIDTH, channels - ch));
          const Window<L> window(from + ch, offsets, L::load(scale + ch), L::load(shift + ch), valid);
          typename L::V dy[4];
          route(window, before_relu(window, L::load_at_most(grad + ch, valid)), dy);
          const auto means = L::load(mean + ch);
          for (int i = 0; i < 4; ++i) {
            const auto spread = L::fma(L::load(b + ch), L::sub(window.z[i], means), L::load(c + ch));
            L::store_at_most(into + targets[i] + ch, L::fma(L::load(a + ch), dy[i], spread), valid);
          }
        }
      }
      for (int64_t line = 2 * y; line < 2 * y + 2; ++line)
        uncovered<L>(z + line * row, image + line * to.row, 2 * width, s.width, channels, mean, b, c);
    }
    for (int64_t line = 2 * height; line < s.height; ++line)
      uncovered<L>(z + line * row, image + line * to.row, 0, s.width, channels, mean, b, c);
  }
}

// Gradients of γ and β, of the weights and, where there is room for them, of x. `scale` is γ/√(σ² + ε) and `inverse`
// 1/√(σ² + ε); these, `shift` and `mean` have packed_channels entries. `backwards`: weights as `pack_backwards` makes them.
void block_backward(const ConvShape& s, const float* x, const float* z, const float* grad, bool pooled,
                    const float* scale, const float* shift, const float* mean, const float* inverse,
                    const float* backwards, float* x_grad, float* weight_grad, float* gamma_grad, float* beta_grad,
                    float* memory) {
  Scratch scratch = {memory};
  const int64_t images = images_at_a_time(s), channels = s.outputs, period = period_of(channels);
  const int64_t padded_channels = packed_channels(channels);
  const int64_t of_image = s.positions() * channels;
  const int64_t of_grad = pooled ? (s.height / 2) * (s.width / 2) * channels : of_image;
  double* sums = scratch.take_doubles(channels);
  double* products = scratch.take_doubles(channels);
  zero(sums, channels);
  zero(products, channels);
  float *scales = nullptr, *shifts = nullptr, *means = nullptr;
  if (!pooled) {
    scales = scratch.take(period), shifts = scratch.take(period), means = scratch.take(period);
    repeat(scale, channels, period, scales);
    repeat(shift, channels, period, shifts);
    repeat(mean, channels, period, means);
  }
  const auto grad_before_relu = [&](const float* values, const float* g, int64_t at, int64_t offset, int n) INLINE_LAMBDA {
    const auto y = Flat::fma(Flat::load_at_most(values + at, n), Flat::load(scales + offset), Flat::load(shifts + offset));
    return Flat::select_less(Flat::zero(), y, Flat::load_at_most(g + at, n), Flat::zero());
  };

  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    const float* values = z + first * of_image;
    const float* g = grad + first * of_grad;
    const bool narrow = is_narrow(channels);
    if (pooled && narrow) add_sums<Lanes<8>, true>(s, values, g, scale, shift, mean, sums, products, count);
    else if (pooled) add_sums<Lanes<16>, true>(s, values, g, scale, shift, mean, sums, products, count);
    else if (narrow) add_sums<Lanes<8>, false>(s, values, g, scale, shift, mean, sums, products, count);
    else add_sums<Lanes<16>, false>(s, values, g, scale, shift, mean, sums, products, count);
  }

  // dz = a·dy + b·(z - mean) + c, by channel.
  float* a = scratch.take(most(padded_channels, period));
  float* b = scratch.take(most(padded_channels, period));
  float* c = scratch.take(most(padded_channels, period));
  const double total = static_cast<double>(s.batch * s.positions());
  for (int64_t ch = 0; ch < padded_channels; ++ch) {
    if (ch >= channels) {
      a[ch] = b[ch] = c[ch] = 0;
      continue;
    }
    // `scale` is γ / √(σ² + ε).
    const double gain = scale[ch], deviation = inverse[ch];
    a[ch] = scale[ch];
    b[ch] = static_cast<float>(-gain * deviation * deviation * products[ch] / total);
    c[ch] = static_cast<float>(-gain * sums[ch] / total);
    gamma_grad[ch] = static_cast<float>(products[ch] * deviation);
    beta_grad[ch] = static_cast<float>(sums[ch]);
  }
  if (weight_grad == nullptr && x_grad == nullptr) return;
  float *as = nullptr, *bs = nullptr, *cs = nullptr;
  if (!pooled) {
    as = scratch.take(period), bs = scratch.take(period), cs = scratch.take(period);
    repeat(a, channels, period, as);
    repeat(b, channels, period, bs);
    repeat(c, channels, period, cs);
  }

  const Padded in = pad(s, s.inputs, images, scratch);
  const Padded dz = pad(s, channels, images, scratch);
  float* room = scratch.take(convolution_room(s, images));
  double* totals = scratch.take_doubles(s.elements() * padded_channels);
  zero(totals, s.elements() * padded_channels);
  const int64_t row = s.width * channels;
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    const float* values = z + first * of_image;
    const float* g = grad + first * of_grad;
    if (pooled && is_narrow(channels)) pooled_grads<Lanes<8>>(s, values, g, scale, shift, mean, a, b, c, dz, count);
    else if (pooled) pooled_grads<Lanes<16>>(s, values, g, scale, shift, mean, a, b, c, dz, count);
    else
      for (int64_t n = 0; n < count; ++n)
        for (int64_t y = 0; y < s.height; ++y) {
          const float* line = values + n * of_image + y * row;
          const float* of = g + n * of_image + y * row;
          float* to = dz.data + n * dz.image + (y + dz.pad) * dz.row + dz.pad * channels;
          over_flat(row, period, [&](int64_t at, int64_t offset, int k) INLINE_LAMBDA {
            const auto centred = Flat::sub(Flat::load_at_most(line + at, k), Flat::load(means + offset));
            const auto spread = Flat::fma(Flat::load(bs + offset), centred, Flat::load(cs + offset));
            const auto dy = grad_before_relu(line, of, at, offset, k);
            Flat::store_at_most(to + at, Flat::fma(Flat::load(as + offset), dy, spread), k);
          });
        }
    if (x_grad != nullptr)
      convolve(dz, count, s.kernel, backwards, nullptr, x_grad + first * s.positions() * s.inputs, s.inputs,
                               room);
    if (weight_grad != nullptr) 
      add_weight_grads(x + first * s.positions() * s.inputs, in, dz, count, s.kernel, totals, room);
  }
  if (weight_grad != nullptr) unpack_grads(s, totals, weight_grad);
}

// ---- a 2x2 max pool alone; a last odd row or column is left out

template <class L>
INLINE void pool_images(const ConvShape& s, const float* x, const float* grad, float* out) {
  const int64_t channels = s.outputs, row = s.width * channels, height = s.height / 2, width = s.width / 2;
  const int64_t offsets[4] = {0, channels, row, row + channels};
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t column = 0; column < width; ++column) {
        const int64_t corner = (n * s.height + 2 * y) * row + 2 * column * channels;
        const int64_t target = ((n * height + y) * width + column) * channels;
        for (int64_t c = 0; c < channels; c += L::WIDTH) {
          const int valid = static_cast<int>(least(L::WIDTH, channels - c));
          const Window<L> window(x + corner + c, offsets, L::all(1), L::zero(), valid);
          if (grad == nullptr) {
            L::store_at_most(out + target + c, window.highest, valid);
            continue;
          }
          typename L::V parts[4];
          route(window, L::load_at_most(grad + target + c, valid), parts);
          for (int i = 0; i < 4; ++i) L::store_at_most(out + corner + offsets[i] + c, parts[i], valid);
        }
      }
}

// Without `grad` the pooled images; with it the gradient of x, whose `x_grad` is written as a whole.
void pool(const ConvShape& s, const float* x, const float* grad, float* out) {
  if (grad != nullptr && (s.height % 2 != 0 || s.width % 2 != 0)) zero(out, s.batch * s.positions() * s.outputs);
  if (is_narrow(s.outputs)) pool_images<Lanes<8>>(s, x, grad, out);
  else pool_images<Lanes<16>>(s, x, grad, out);
}

// A block whose statistics are fixed: relu(conv(x) + bias), pooled if asked for. `bias` has packed_channels entries.
void block_folded(const ConvShape& s, const float* x, const float* packed, const float* bias, bool pooled, float* out,
                  float* memory) {
  Scratch scratch = {memory};
  const int64_t images = images_at_a_time(s), channels = s.outputs;
  const Padded in = pad(s, s.inputs, images, scratch);
  float* room = scratch.take(convolution_room(s, images));
  float* full = scratch.take(images * s.positions() * channels);
  float* ones = scratch.take(packed_channels(channels));
  float* zeros = scratch.take(packed_channels(channels));
  for (int64_t c = 0; c < packed_channels(channels); ++c) ones[c] = 1, zeros[c] = 0;
  const int64_t of_out = (pooled ? (s.height / 2) * (s.width / 2) : s.positions()) * channels;
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    fill(in, x + first * s.positions() * s.inputs, count);
    float* to = out + first * of_out;
    if (!pooled) {
      convolve(in, count, s.kernel, packed, bias, to, channels, room);
      over_flat(count * of_out, 16, [&](int64_t at, int64_t, int n) INLINE_LAMBDA {
        Flat::store_at_most(to + at, Flat::relu(Flat::load_at_most(to + at, n)), n);
      });
      continue;
    }
    convolve(in, count, s.kernel, packed, bias, full, channels, room);
    block_activate(s, full, ones, zeros, true, to, count, nullptr);
  }
}

// Folds a norm with fixed statistics into packed weights: w·γ/√(σ² + ε) and β - μ·γ/√(σ² + ε).
void block_fold(const ConvShape& s, const float* weights, const float* gamma, const float* beta, const float* mean,
                const float* variance, double epsilon, float* packed, float* bias) {
  zero(bias, packed_channels(s.outputs));
  for (int64_t o = 0; o < s.outputs; ++o)
    bias[o] = static_cast<float>(beta[o] - mean[o] * gamma[o] / __builtin_sqrt(variance[o] + epsilon));
  pack_scaled(s, weights, packed, [&](int64_t o, float weight) INLINE_LAMBDA {
    return static_cast<float>(weight * (gamma[o] / __builtin_sqrt(variance[o] + epsilon)));
  });
}

}  // namespace
