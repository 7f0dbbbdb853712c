// A block of a host: convolution, batch norm by the batch's statistics, ReLU and, if asked for, a 2x2 max pool after it or a
// residual that is added in front of it, forward and backward; and the same with fixed statistics, folded into the
// convolution.
//
// The convolution's result `z` is kept for the backward pass, and what each window of the pool chose of it; what lies
// between it and the block's output, and its gradient, exist a few images at a time.

#pragma once

#include "algorithms.hpp"
#include "pool.hpp"

namespace {

// ---- scratch

INLINE int64_t block_scratch_forward(const ConvShape& s) {
  const int64_t images = images_of_chunk(s);
  return pad_scratch(s, s.inputs, images, images_in_lanes(s.outputs)) + chunk_room(s) +
         images * s.positions() * s.outputs + 8 * period_of(s.outputs) + 512;
}

INLINE int64_t block_scratch_backward(const ConvShape& s) {
  const int64_t images = images_of_chunk(s);
  const int64_t of_x = (s.stride > 1 ? pad_scratch(s, s.inputs, images, 1) : 0) + images * s.positions() * s.inputs;
  const int64_t of_channels = 18 * most(period_of(s.outputs), packed_channels(s.outputs));
  return of_x + pad_scratch(strided(s), s.outputs, images, 1) + chunk_room(s) + 2 * weight_totals(s) + of_channels + 512;
}

// ---- forward and backward

// z, and each channel's mean and (biased) variance over batch and positions. `packed`: weights as `conv_pack` makes them.
//
// Squares are summed about a guess at the mean, that of the first images, so nothing cancels.
void block_forward(const ConvShape& s, const float* x, const float* packed, float* z, double* mean, double* variance,
                   float* memory) {
  Scratch scratch = {memory};
  const int64_t images = images_of_chunk(s), channels = s.outputs, period = period_of(channels);
  const Padded in = bordered_inputs(s, images, scratch);
  float* room = scratch.take(chunk_room(s));
  float* guess = scratch.take(period);
  float* guesses = scratch.take(channels);
  const int64_t positions = strided(s).positions(), of_image = positions * channels;
  zero(mean, channels);
  zero(variance, channels);
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    float* out = z + first * of_image;
    convolve_chunk(s, x + first * s.positions() * s.inputs, in, count, packed, nullptr, out, room);
    if (first == 0) {
      double* const sums[1] = {mean};
      add_channel_sums<1>(count * of_image, channels, period, sums, [&](int64_t at, int64_t, int n, Flat::V(&v)[1]) INLINE_LAMBDA {
        v[0] = Flat::load_at_most(out + at, n);
      });
      for (int64_t c = 0; c < channels; ++c) guesses[c] = static_cast<float>(mean[c] / static_cast<double>(count * positions));
      repeat(guesses, channels, period, guess);
      zero(mean, channels);
    }
    double* const sums[2] = {mean, variance};
    add_channel_sums<2>(count * of_image, channels, period, sums, [&](int64_t at, int64_t offset, int n, Flat::V(&v)[2]) INLINE_LAMBDA {
      v[0] = Flat::sub(Flat::load_at_most(out + at, n), Flat::load(guess + offset));
      v[1] = Flat::mul(v[0], v[0]);
    });
  }
  const double values = static_cast<double>(s.batch * positions);
  for (int64_t c = 0; c < channels; ++c) {
    const double offset = mean[c] / values;
    variance[c] = variance[c] / values - offset * offset;
    mean[c] = guesses[c] + offset;
  }
}

// relu(z·scale + shift), pooled. `out` is dense, as is `chosen`, where there is room for it: in each window the z of which
// the result was made.
template <class Line>
INLINE void activate_pooled(const Line& lanes, const ConvShape& s, const float* z, const float* scale, const float* shift,
                            float* out, float* chosen, int64_t images) {
  using L = typename Line::L;
  using V = typename Line::V;
  const int64_t row = s.width * s.outputs, height = s.height / 2, width = s.width / 2, of_out = width * s.outputs;
  // The last images first: they are still in the cache, as the first ones then are for the reader of the result.
  for (int64_t n = images - 1; n >= 0; --n)
    for (int64_t y = 0; y < height; ++y) {
      const float* from = z + (n * s.height + 2 * y) * row;
      const int64_t windows = (n * height + y) * of_out;
      float *to = out + windows, *choices = chosen == nullptr ? nullptr : chosen + windows;
      lanes.over_channels([&](int64_t c) INLINE_LAMBDA {
        const V scales = lanes.factor(scale, c), shifts = lanes.factor(shift, c);
        lanes.over(width, c, [&](int64_t at, int count) INLINE_LAMBDA {
          const float* corner = from + lanes.corner(at, c);
          V values[4], results[4];
          lanes.load(corner, count, values[0], values[1]);
          lanes.load(corner + row, count, values[2], values[3]);
          for (int i = 0; i < 4; ++i) results[i] = L::fma(values[i], scales, shifts);
          const V most = highest<L>(results);
          L::store_at_most(to + at, L::relu(most), count);
          if (choices == nullptr) return;
          V first = values[3];
          for (int i = 2; i >= 0; --i) first = L::select_less(results[i], most, first, values[i]);
          L::store_at_most(choices + at, first, count);
        });
      });
    }
}

// `scale` and `shift` have packed_channels entries. `residual`: what is added in front of the ReLU of a block without a
// pool, or null. `chosen`: what a pooled block needs on its way back, or null.
void block_activate(const ConvShape& shape, const float* z, const float* scale, const float* shift, bool pooled,
                    const float* residual, float* out, float* chosen, int64_t images, float* memory) {
  const ConvShape s = strided(shape);
  if (pooled)
    return lined(s.outputs, [&](auto lanes) INLINE_LAMBDA {
      activate_pooled(lanes, s, z, scale, shift, out, chosen, images);
    });
  Scratch scratch = {memory};
  const int64_t period = period_of(s.outputs);
  float* scales = scratch.take(period);
  float* shifts = scratch.take(period);
  repeat(scale, s.outputs, period, scales);
  repeat(shift, s.outputs, period, shifts);
  const auto normalised = [&](int64_t at, int64_t offset, int n) INLINE_LAMBDA {
    return Flat::fma(Flat::load_at_most(z + at, n), Flat::load(scales + offset), Flat::load(shifts + offset));
  };
  const int64_t values = images * s.positions() * s.outputs;
  if (residual == nullptr)
    return over_flat(values, period, [&](int64_t at, int64_t offset, int n) INLINE_LAMBDA {
      Flat::store_at_most(out + at, Flat::relu(normalised(at, offset, n)), n);
    });
  over_flat(values, period, [&](int64_t at, int64_t offset, int n) INLINE_LAMBDA {
    const auto y = Flat::add(normalised(at, offset, n), Flat::load_at_most(residual + at, n));
    Flat::store_at_most(out + at, Flat::relu(y), n);
  });
}

// Per channel: Σ dy and Σ dy·(z - mean), dy being the gradient in front of the ReLU, which came through a pool, if there
// is `chosen`, or not.
//
// Window by window in both cases, so that a block gives the same bits whether its pool is computed with it or after it
// (the pool's gradient is zero where this leaves positions out).
template <class Line>
INLINE void add_sums(const Line& lanes, const ConvShape& s, const float* z, const float* chosen, const float* grad,
                     const float* scale, const float* shift, const float* mean, double* sums, double* products,
                     int64_t images) {
  using L = typename Line::L;
  using V = typename Line::V;
  const int64_t row = s.width * s.outputs, height = s.height / 2, width = s.width / 2;
  lanes.over_channels([&](int64_t c) INLINE_LAMBDA {
    const V scales = lanes.factor(scale, c), shifts = lanes.factor(shift, c), means = lanes.factor(mean, c);
    V sum = L::zero(), product = L::zero();
    const auto add = [&](V value, V g) INLINE_LAMBDA {
      const V dy = L::select_less(L::zero(), L::fma(value, scales, shifts), g, L::zero());
      sum = L::add(sum, dy);
      product = L::fma(dy, L::sub(value, means), product);
    };
    const auto add_row = [&](const float* values, const float* g, int64_t positions) INLINE_LAMBDA {
      lanes.over(positions, c, [&](int64_t at, int n) INLINE_LAMBDA {
        add(L::load_at_most(values + at, n), L::load_at_most(g + at, n));
      });
    };
    if (chosen != nullptr) {
      const int64_t of_row = width * s.outputs;
      for (int64_t y = 0; y < images * height; ++y) add_row(chosen + y * of_row, grad + y * of_row, width);
    } else {
      for (int64_t n = 0; n < images; ++n)
        for (int64_t y = 0; y < s.height; y += 2) {
          const float *values = z + (n * s.height + y) * row, *g = grad + (n * s.height + y) * row;
          if (y + 1 == s.height) {
            add_row(values, g, s.width);
            break;
          }
          lanes.over(width, c, [&](int64_t at, int count) INLINE_LAMBDA {
            const int64_t corner = lanes.corner(at, c);
            V of_z[4], of_g[4];
            for (int line = 0; line < 2; ++line) {
              lanes.load(values + corner + line * row, count, of_z[2 * line], of_z[2 * line + 1]);
              lanes.load(g + corner + line * row, count, of_g[2 * line], of_g[2 * line + 1]);
            }
            for (int i = 0; i < 4; ++i) add(of_z[i], of_g[i]);
          });
          const int64_t covered = 2 * width * s.outputs;
          for (int64_t line = 0; line < 2; ++line)
            add_row(values + covered + line * row, g + covered + line * row, s.width - 2 * width);
        }
    }
    lanes.add_to(sums, c, sum);
    lanes.add_to(products, c, product);
  });
}

// By channel: dz = a·dy + b·(z - mean) + c.
struct Spread {
  const float *mean, *a, *b, *c;
};

// dz of `images` images, pooled, into the middle of padded storage.
template <class Line>
INLINE void pooled_grads(const Line& lanes, const ConvShape& s, const float* z, const float* chosen, const float* grad,
                         const float* scale, const float* shift, const Spread& spread, const Padded& to, int64_t images) {
  using L = typename Line::L;
  using V = typename Line::V;
  const int64_t row = s.width * s.outputs, width = s.width / 2, of_grad = width * s.outputs, covered = 2 * of_grad;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < s.height; y += 2) {
      const int64_t windows = (n * (s.height / 2) + y / 2) * of_grad;
      const float *from = z + (n * s.height + y) * row, *of_z = chosen + windows, *g = grad + windows;
      float* into = to.data + n * to.image + (to.pad + y) * to.row + to.pad * s.outputs;
      lanes.over_channels([&](int64_t c) INLINE_LAMBDA {
        const V means = lanes.factor(spread.mean, c), bs = lanes.factor(spread.b, c), cs = lanes.factor(spread.c, c);
        const auto centred = [&](V value) INLINE_LAMBDA { return L::fma(bs, L::sub(value, means), cs); };
        // Positions that no window covers.
        const auto pass = [&](const float* values, float* result, int64_t positions) INLINE_LAMBDA {
          lanes.over(positions, c, [&](int64_t at, int count) INLINE_LAMBDA {
            L::store_at_most(result + at, centred(L::load_at_most(values + at, count)), count);
          });
        };
        if (y + 1 == s.height) return pass(from, into, s.width);
        const V scales = lanes.factor(scale, c), shifts = lanes.factor(shift, c), as = lanes.factor(spread.a, c);
        lanes.over(width, c, [&](int64_t at, int count) INLINE_LAMBDA {
          const int64_t corner = lanes.corner(at, c);
          V values[4], dy[4];
          lanes.load(from + corner, count, values[0], values[1]);
          lanes.load(from + corner + row, count, values[2], values[3]);
          const V most = L::load_at_most(of_z + at, count);
          const V before_relu =
              L::select_less(L::zero(), L::fma(most, scales, shifts), L::load_at_most(g + at, count), L::zero());
          route<L>(values, most, before_relu, dy);
          for (int i = 0; i < 4; ++i) dy[i] = L::fma(as, dy[i], centred(values[i]));
          lanes.store(into + corner, count, dy[0], dy[1]);
          lanes.store(into + corner + to.row, count, dy[2], dy[3]);
        });
        for (int64_t line = 0; line < 2; ++line) pass(from + covered + line * row, into + covered + line * to.row, s.width - 2 * width);
      });
    }
}

// Gradients of γ and β, of the weights and, where there is room for them, of x, which with `is_begun` are added to what is
// there. `scale` is γ/√(σ² + ε) and `inverse`
// 1/√(σ² + ε); these, `shift` and `mean` have packed_channels entries. `backwards`: weights as `conv_pack` turns them.
// `chosen`: as `block_activate` gives it, or null where nothing was pooled. `residual`: as `block_activate` took it; its
// gradient goes to `residual_grad`, which may be `grad`. Both are null without one.
void block_backward(const ConvShape& shape, const float* x, const float* z, const float* chosen, const float* residual,
                    const float* grad, const float* scale, const float* shift, const float* mean, const float* inverse,
                    const float* backwards, float* x_grad, bool is_begun, float* weight_grad, float* gamma_grad,
                    float* beta_grad, float* residual_grad, float* memory) {
  Scratch scratch = {memory};
  const ConvShape s = strided(shape);
  const int64_t images = images_of_chunk(shape), channels = s.outputs, period = period_of(channels);
  const int64_t padded_channels = packed_channels(channels);
  const bool pooled = chosen != nullptr;
  const int64_t of_image = s.positions() * channels;
  const int64_t of_grad = pooled ? (s.height / 2) * (s.width / 2) * channels : of_image;
  double* sums = scratch.take_doubles(channels);
  double* products = scratch.take_doubles(channels);
  zero(sums, channels);
  zero(products, channels);
  const auto by_period = [&](const float* values) INLINE_LAMBDA {
    float* to = pooled ? nullptr : scratch.take(period);
    if (to != nullptr) repeat(values, channels, period, to);
    return to;
  };
  float *scales = by_period(scale), *shifts = by_period(shift), *means = by_period(mean);
  const auto normalised = [&](const float* values, int64_t at, int64_t offset, int n) INLINE_LAMBDA {
    return Flat::fma(Flat::load_at_most(values + at, n), Flat::load(scales + offset), Flat::load(shifts + offset));
  };
  const auto positive = [&](Flat::V y, const float* g, int64_t at, int n) INLINE_LAMBDA {
    return Flat::select_less(Flat::zero(), y, Flat::load_at_most(g + at, n), Flat::zero());
  };

  // With a residual the ReLU is passed first; what then asks whether 0·z + 1 is positive is let through.
  const float *of_scale = scale, *of_shift = shift;
  if (residual != nullptr) {
    float *none = scratch.take(padded_channels), *all = scratch.take(padded_channels);
    for (int64_t ch = 0; ch < padded_channels; ++ch) none[ch] = 0, all[ch] = 1;
    of_scale = none, of_shift = all;
  }
  const auto chosen_of = [&](int64_t image) INLINE_LAMBDA { return pooled ? chosen + image * of_grad : nullptr; };
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first), begin = first * of_image;
    if (residual != nullptr)
      over_flat(count * of_image, period, [&](int64_t at, int64_t offset, int n) INLINE_LAMBDA {
        const auto y = Flat::add(normalised(z + begin, at, offset, n), Flat::load_at_most(residual + begin + at, n));
        Flat::store_at_most(residual_grad + begin + at, positive(y, grad + begin, at, n), n);
      });
    const float* g = (residual != nullptr ? residual_grad : grad) + first * of_grad;
    lined(channels, [&](auto lanes) INLINE_LAMBDA {
      add_sums(lanes, s, z + begin, chosen_of(first), g, of_scale, of_shift, mean, sums, products, count);
    });
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
  float *as = by_period(a), *bs = by_period(b), *cs = by_period(c);

  const Padded in = shape.stride > 1 ? pad(shape, s.inputs, images, 1, scratch) : unfilled(shape, s.inputs);
  ConvShape bordered = s;
  if (is_tiled(shape)) bordered.kernel = 1;
  const Padded dz = pad(bordered, channels, images, 1, scratch);
  float* room = scratch.take(chunk_room(shape));
  double* totals = weight_grad == nullptr ? nullptr : scratch.take_doubles(weight_totals(shape));
  if (totals != nullptr) zero(totals, weight_totals(shape));
  const int64_t row = s.width * channels, of_x = shape.positions() * s.inputs;
  float* addend = is_begun ? scratch.take(images * of_x) : nullptr;
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    const float* values = z + first * of_image;
    const float* g = (residual != nullptr ? residual_grad : grad) + first * of_grad;
    if (pooled)
      lined(channels, [&](auto lanes) INLINE_LAMBDA {
        pooled_grads(lanes, s, values, chosen_of(first), g, scale, shift, {mean, a, b, c}, dz, count);
      });
    else
      for (int64_t n = 0; n < count; ++n)
        for (int64_t y = 0; y < s.height; ++y) {
          const float* line = values + n * of_image + y * row;
          const float* of = g + n * of_image + y * row;
          float* to = dz.data + n * dz.image + (y + dz.pad) * dz.row + dz.pad * channels;
          over_flat(row, period, [&](int64_t at, int64_t offset, int k) INLINE_LAMBDA {
            const auto centred = Flat::sub(Flat::load_at_most(line + at, k), Flat::load(means + offset));
            const auto spread = Flat::fma(Flat::load(bs + offset), centred, Flat::load(cs + offset));
            const auto dy = residual != nullptr ? Flat::load_at_most(of + at, k) : positive(normalised(line, at, offset, k), of, at, k);
            Flat::store_at_most(to + at, Flat::fma(Flat::load(as + offset), dy, spread), k);
          });
        }
    float* to = x_grad == nullptr ? nullptr : x_grad + first * of_x;
    convolve_chunk_back(shape, x + first * of_x, in, dz, count, backwards, is_begun ? addend : to, totals, room);
    if (is_begun)
      over_flat(count * of_x, 16, [&](int64_t at, int64_t, int n) INLINE_LAMBDA {
        Flat::store_at_most(to + at, Flat::add(Flat::load_at_most(to + at, n), Flat::load_at_most(addend + at, n)), n);
      });
  }
  if (totals == nullptr) return;
  unpack_totals(shape, totals, weight_grad);
}

// ---- with fixed statistics

// A block whose statistics are fixed: relu(conv(x) + bias), pooled if asked for, or relu(conv(x) + bias + residual) where
// that is not null. `packed`: the weights of `block_fold` as `conv_pack` makes them; `bias`: as `block_fold` makes it.
void block_folded(const ConvShape& s, const float* x, const float* packed, const float* bias, bool pooled,
                  const float* residual, float* out, float* memory) {
  Scratch scratch = {memory};
  const int64_t images = images_of_chunk(s), channels = s.outputs;
  const Padded in = bordered_inputs(s, images, scratch);
  float* room = scratch.take(chunk_room(s));
  float* full = scratch.take(images * s.positions() * channels);
  float* ones = scratch.take(packed_channels(channels));
  float* zeros = scratch.take(packed_channels(channels));
  for (int64_t c = 0; c < packed_channels(channels); ++c) ones[c] = 1, zeros[c] = 0;
  const int64_t of_out = (pooled ? (s.height / 2) * (s.width / 2) : s.positions()) * channels;
  for (int64_t first = 0; first < s.batch; first += images) {
    const int64_t count = least(images, s.batch - first);
    const float* from = x + first * s.positions() * s.inputs;
    float* to = out + first * of_out;
    if (!pooled) {
      convolve_chunk(s, from, in, count, packed, bias, to, room);
      const float* added = residual == nullptr ? nullptr : residual + first * of_out;
      over_flat(count * of_out, 16, [&](int64_t at, int64_t, int n) INLINE_LAMBDA {
        const auto y = Flat::load_at_most(to + at, n);
        Flat::store_at_most(to + at, Flat::relu(added == nullptr ? y : Flat::add(y, Flat::load_at_most(added + at, n))), n);
      });
      continue;
    }
    convolve_chunk(s, from, in, count, packed, bias, full, room);
    block_activate(s, full, ones, zeros, true, nullptr, to, nullptr, count, nullptr);
  }
}

// Folds a norm with fixed statistics into weights of the same layout, w·γ/√(σ² + ε), and a bias of packed_channels entries,
// β - μ·γ/√(σ² + ε).
void block_fold(const ConvShape& s, const float* weights, const float* gamma, const float* beta, const float* mean,
                const float* variance, double epsilon, float* folded, float* bias) {
  zero(bias, packed_channels(s.outputs));
  for (int64_t o = 0; o < s.outputs; ++o) {
    const double gain = gamma[o] / __builtin_sqrt(variance[o] + epsilon);
    bias[o] = static_cast<float>(beta[o] - mean[o] * gamma[o] / __builtin_sqrt(variance[o] + epsilon));
    for (int64_t e = 0; e < s.elements(); ++e, ++folded, ++weights) *folded = static_cast<float>(*weights * gain);
  }
}

}  // namespace
