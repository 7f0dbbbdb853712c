// Plays every kernel of every level over drawn shapes, each array exactly as large as it has to be, for the address and
// undefined-behaviour sanitizers; see sanitize-kernels.sh.
//
// Results are compared between the levels, whose bits must agree, so that nothing is read that was never written.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "../../crates/torch/src/kernels/arithmetic/table.hpp"

using namespace simic;

namespace {

// Memory of exactly N values, aligned as scratch has to be. Fresh floats are NaN, so that one that is read unwritten
// shows.
template <class T>
struct Exact {
  T* data = nullptr;
  int64_t count;

  explicit Exact(int64_t count) : count(count) {
    if (posix_memalign(reinterpret_cast<void**>(&data), 64, count > 0 ? count * sizeof(T) : 1)) std::abort();
    std::memset(static_cast<void*>(data), 0xff, count * sizeof(T));
  }
  Exact(const Exact&) = delete;
  ~Exact() { std::free(data); }
  operator T*() const { return data; }
};

using Floats = Exact<float>;

struct Draws {
  std::mt19937_64 engine;

  int64_t below(int64_t n) { return static_cast<int64_t>(engine() % n); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool coin() { return below(2) == 1; }

  void fill(const Floats& values) {
    for (int64_t i = 0; i < values.count; ++i) values.data[i] = static_cast<float>(below(2001) - 1000) / 500;
  }
};

// What a level computed, in the order in which it did.
struct Record {
  std::vector<uint32_t> bits;

  void add(const Floats& values) {
    const size_t from = bits.size();
    bits.resize(from + values.count);
    std::memcpy(bits.data() + from, values.data, values.count * sizeof(float));
  }
  void add(const Exact<double>& values) {
    for (int64_t i = 0; i < values.count; ++i) {
      Floats pair(2);
      std::memcpy(pair.data, values.data + i, sizeof(double));
      add(pair);
    }
  }
};

struct Filled : Floats {
  Filled(Draws& draws, int64_t count) : Floats(count) { draws.fill(*this); }
};

ConvShape dense(Draws& d) {
  static const int64_t CHANNELS[] = {1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 24, 32, 33, 64};
  const auto channels = [&] { return CHANNELS[d.below(14)]; };
  return {d.between(1, 9), d.between(1, 9), d.between(1, 9), channels(), channels(), d.coin() ? 1 : 3, false};
}

// Large enough to be computed in tiles, of 4x4 or 2x2 outputs.
ConvShape wide(Draws& d) {
  const int64_t side = d.coin() ? 4 : 2, vector = side == 4 ? 8 : 16, products = side == 4 ? 30'000 : 150'000;
  const int64_t inputs = vector * d.between(1, 4), outputs = vector * d.between(side == 4 ? 2 : 1, 4), height = side * d.between(2, 10);
  const int64_t width = (products / (inputs * outputs * height) + side) / side * side;
  return {d.between(1, 9), height, width, inputs, outputs, 3, false};
}

// At every second row and column.
ConvShape strided(Draws& d) {
  const int64_t kernel = d.coin() ? 1 : 3;
  return {d.between(1, 5), d.between(1, 9), d.between(1, 9), 16 * d.between(1, 4), 16 * d.between(1, 4), kernel, false, 2};
}

void play_block(const Kernels& k, Draws& d, Record& record) {
  const int64_t form = d.below(16);
  const ConvShape s = form == 0 ? wide(d) : form < 6 ? strided(d) : dense(d), outer = simic::strided(s);
  const bool pooled = d.coin() && outer.height > 1 && outer.width > 1, adds = !pooled && d.coin(), wants_x_grad = d.coin();
  const int64_t padded = packed_channels(s.outputs), in = s.batch * s.positions() * s.inputs;
  const int64_t z_count = s.batch * outer.positions() * s.outputs;
  const int64_t out_count = pooled ? s.batch * (outer.height / 2) * (outer.width / 2) * s.outputs : z_count;
  const int64_t weights = s.elements() * s.outputs;
  const Filled x(d, in), w(d, weights), grad(d, out_count), residual(d, adds ? z_count : 0);
  const float* added = adds ? residual.data : nullptr;
  const Floats packed(k.conv_packed_floats(s, false)), z(z_count), out(out_count);
  const Exact<double> mean(s.outputs), variance(s.outputs);
  k.conv_pack(s, w, false, packed);
  {
    const Floats memory(k.block_scratch_forward(s));
    k.block_forward(s, x, packed, z, mean, variance, memory);
    record.add(z);
    record.add(mean);
    const Floats scale(padded), shift(padded), chosen(pooled ? out_count : 0), means(padded), inverses(padded);
    for (const Floats* numbers : {&scale, &shift, &means, &inverses}) std::memset(numbers->data, 0, padded * sizeof(float));
    for (int64_t c = 0; c < s.outputs; ++c) {
      inverses[c] = static_cast<float>(1 / std::sqrt(variance[c] + 1e-5));
      scale[c] = inverses[c];
      shift[c] = static_cast<float>(-mean[c] * inverses[c]);
      means[c] = static_cast<float>(mean[c]);
    }
    k.block_activate(s, z, scale, shift, pooled, added, out, pooled ? chosen.data : nullptr, s.batch, memory);
    record.add(out);
    const Floats backwards(k.conv_packed_floats(s, true)), x_grad(in), weight_grad(weights);
    const Floats gamma_grad(s.outputs), beta_grad(s.outputs), scratch(k.block_scratch_backward(s));
    const Floats residual_grad(adds ? z_count : 0);
    // In the place of the block's own gradient, or not.
    float* passed = !adds ? nullptr : d.coin() ? grad.data : residual_grad.data;
    k.conv_pack(s, w, true, backwards);
    const bool is_begun = wants_x_grad && d.coin();
    if (is_begun) d.fill(x_grad);
    k.block_backward(s, x, z, pooled ? chosen.data : nullptr, added, grad, scale, shift, means, inverses,
                     wants_x_grad ? backwards.data : nullptr, wants_x_grad ? x_grad.data : nullptr, is_begun, weight_grad,
                     gamma_grad, beta_grad, passed, scratch);
    if (passed == residual_grad.data) record.add(residual_grad);
    if (wants_x_grad) record.add(x_grad);
    for (const Floats* numbers : {&weight_grad, &gamma_grad, &beta_grad}) record.add(*numbers);
  }
  if (s.stride > 1) return;
  const Filled gamma(d, s.outputs), beta(d, s.outputs), running(d, s.outputs);
  const Floats spread(s.outputs), bias(padded), folded(weights);
  for (int64_t c = 0; c < s.outputs; ++c) spread[c] = 1 + std::fabs(running[c]);
  k.block_fold(s, w, gamma, beta, running, spread, 1e-5, folded, bias);
  const Floats memory(k.block_scratch_forward(s));
  k.conv_pack(s, folded, false, packed);
  k.block_folded(s, x, packed, bias, pooled, added, out, memory);
  record.add(out);
}

void play_pool(const Kernels& k, Draws& d, Record& record) {
  const int64_t channels = d.between(1, 40);
  const ConvShape s = {d.between(1, 5), d.between(2, 9), d.between(2, 9), channels, channels, 1, false};
  const int64_t count = s.batch * s.positions() * channels, halved = s.batch * (s.height / 2) * (s.width / 2) * channels;
  const Filled x(d, count), grad(d, halved);
  const Floats out(halved), x_grad(count);
  k.pool(s, x, nullptr, out);
  k.pool(s, x, grad, x_grad);
  record.add(out);
  record.add(x_grad);
}

void play_head(const Kernels& k, Draws& d, Record& record) {
  const ConvShape s = {d.between(1, 20), d.between(1, 6), d.between(1, 6), d.between(1, 70), d.between(1, 40), 1, false};
  const Filled x(d, s.batch * s.positions() * s.inputs), w(d, s.outputs * s.inputs), bias(d, s.outputs);
  const Filled grad(d, s.batch * s.outputs);
  const Floats means(s.batch * s.inputs), logits(s.batch * s.outputs), memory(k.head_scratch(s));
  k.head_forward(s, x, w, bias, means, logits, memory);
  const Floats x_grad(x.count), w_grad(w.count), bias_grad(s.outputs);
  k.head_backward(s, means, w, grad, d.coin() ? x_grad.data : nullptr, w_grad, bias_grad, memory);
  for (const Floats* numbers : {&means, &logits, &w_grad, &bias_grad}) record.add(*numbers);
}

void play_layer(const Kernels& k, Draws& d, Record& record) {
  const bool is_wide = d.below(8) == 0;
  ConvShape s = is_wide ? wide(d) : dense(d);
  if (!is_wide && d.coin() && s.inputs > 1) {
    s.outputs = s.inputs;
    s.kernel = 2 * d.between(0, 3) + 1;
    s.depthwise = true;
  }
  const bool norm = d.coin(), silu_before = d.coin(), silu_after = norm && d.coin();
  int64_t groups = 1;
  if (norm)
    do groups = d.between(1, s.outputs);
    while (s.outputs % groups != 0);
  const Layer layer = {s, silu_before, norm, silu_after, groups, 1e-5};
  const int64_t in = s.batch * s.positions() * s.inputs, count = s.batch * s.positions() * s.outputs;
  const bool plain = !norm && !silu_before, is_added = d.coin() && s.inputs == s.outputs;
  const Filled x(d, in), w(d, s.elements() * s.outputs), gamma(d, s.outputs), beta(d, s.outputs), grad(d, count), onto(d, count);
  const Floats packed(k.conv_packed_floats(s, false)), z(plain ? 0 : count), out(count);
  const Floats means(s.batch * groups), inverses(s.batch * groups);
  const auto of = [](bool there, const Floats& values) { return there ? values.data : nullptr; };
  k.conv_pack(s, w, false, packed);
  {
    const Floats memory(k.layer_scratch_forward(layer));
    k.layer_forward(layer, x, packed, of(norm, gamma), of(norm, beta), is_added ? x.data : of(d.coin(), onto), 0.5f,
                    of(!plain, z), out, of(norm, means), of(norm, inverses), memory);
  }
  record.add(out);
  const Floats backwards(k.conv_packed_floats(s, true)), x_grad(in), w_grad(w.count), gamma_grad(s.outputs), beta_grad(s.outputs);
  const Floats memory(k.layer_scratch_backward(layer));
  const bool wants_x_grad = d.coin();
  k.conv_pack(s, w, true, backwards);
  k.layer_backward(layer, x, of(!plain, z), of(norm, means), of(norm, inverses), of(norm, gamma), of(norm, beta), grad, 0.5f,
                   is_added, of(wants_x_grad, backwards), of(wants_x_grad, x_grad), w_grad, of(norm, gamma_grad),
                   of(norm, beta_grad), memory);
  if (wants_x_grad) record.add(x_grad);
  record.add(w_grad);
}

void play_norm(const Kernels& k, Draws& d, Record& record) {
  const int64_t channels = d.between(1, 40);
  int64_t groups = 1;
  do groups = d.between(1, channels);
  while (channels % groups != 0);
  const Layer layer = {{d.between(1, 5), d.between(1, 6), d.between(1, 6), channels, channels, 1, false}, false, true, false, groups, 1e-5};
  const int64_t count = layer.conv.batch * layer.conv.positions() * channels;
  const Filled x(d, count), gamma(d, channels), beta(d, channels), grad(d, count);
  const Floats out(count), means(layer.conv.batch * groups), inverses(layer.conv.batch * groups), memory(k.norm_scratch(layer));
  k.norm_forward(layer, x, gamma, beta, 0.3f, out, means, inverses, memory);
  const Floats x_grad(count), gamma_grad(channels), beta_grad(channels), strength_grad(1);
  k.norm_backward(layer, x, means, inverses, gamma, beta, 0.3f, grad, d.coin() ? x_grad.data : nullptr, gamma_grad, beta_grad,
                  strength_grad, memory);
  for (const Floats* numbers : {&out, &gamma_grad, &beta_grad, &strength_grad}) record.add(*numbers);
}

void play_excite(const Kernels& k, Draws& d, Record& record) {
  const ConvShape s = {d.between(1, 9), d.between(1, 6), d.between(1, 6), d.between(1, 40), d.between(1, 20), 1, false};
  const int64_t count = s.batch * s.positions() * s.inputs;
  const Filled x(d, count), squeeze(d, s.inputs * s.outputs), excite(d, s.inputs * s.outputs), bias(d, s.inputs), grad(d, count);
  const Floats means(s.batch * s.inputs), gates(s.batch * s.inputs), hidden(s.batch * s.outputs), out(count);
  const Floats memory(k.excite_scratch(s));
  k.excite_forward(s, x, squeeze, excite, bias, means, hidden, gates, out, memory);
  const Floats x_grad(count), squeeze_grad(squeeze.count), excite_grad(excite.count), bias_grad(s.inputs);
  k.excite_backward(s, x, squeeze, excite, means, hidden, gates, grad, d.coin() ? x_grad.data : nullptr, squeeze_grad, excite_grad,
                    bias_grad, memory);
  for (const Floats* numbers : {&out, &squeeze_grad, &excite_grad, &bias_grad}) record.add(*numbers);
}

void play_batch(const Kernels& k, Draws& d, Record& record) {
  const int64_t rows = d.between(1, 9), run = d.between(1, 40), pitch = run + d.below(8), windows = d.between(1, 4);
  // The last window ends where its last row does.
  const int64_t step = d.between(1, 20), stored = (windows - 1) * step + (rows - 1) * pitch + run, count = d.between(1, 6);
  const Exact<uint8_t> bytes(stored), mask(stored);
  for (int64_t i = 0; i < stored; ++i) {
    bytes[i] = static_cast<uint8_t>(d.below(256));
    mask[i] = static_cast<uint8_t>(d.below(2));
  }
  const Exact<int64_t> numbers(count), places(count);
  for (int64_t i = 0; i < count; ++i) {
    numbers[i] = d.below(windows);
    places[i] = d.below(windows);
  }
  const Filled a(d, rows * run), b(d, rows * run);
  const Floats out(count * rows * run);
  const Windows images = {{rows, run, pitch, step}, bytes, numbers};
  k.gather_images(images, d.coin() ? Windows{{rows, run, pitch, step}, mask, places} : Windows{}, count, a, b, out);
  record.add(out);
}

void play_losses(const Kernels& k, Draws& d, Record& record) {
  const int64_t samples = d.between(1, 40), classes = d.between(1, 30), configurations = d.between(1, 5);
  const Filled logits(d, configurations * samples * classes);
  const Exact<int64_t> targets(samples), predictions(samples);
  for (int64_t i = 0; i < samples; ++i) targets[i] = d.below(classes);
  const Floats grad(samples * classes), memory(16 * classes);
  const Exact<double> means(2), losses(configurations), correct(configurations), both(configurations);
  const Exact<uint8_t> flags(samples);
  k.cross_entropy(logits, targets, samples, classes, d.coin() ? 0.1 : 0.0, predictions, grad, means, memory);
  for (const Exact<double>* sums : {&losses, &correct, &both}) std::memset(static_cast<void*>(sums->data), 0, configurations * sizeof(double));
  k.add_validation(logits, targets, configurations, samples, classes, d.below(configurations), losses, correct, both, flags, memory);
  record.add(grad);
  record.add(means);
  record.add(losses);
}

void play_updates(const Kernels& k, Draws& d, Record& record) {
  const int64_t n = d.between(1, 100);
  const Filled grad(d, n), param(d, n), velocity(d, n);
  const Floats first(n), second(n);
  std::memset(first.data, 0, n * sizeof(float));
  std::memset(second.data, 0, n * sizeof(float));
  k.sgd({0.5f, 0.1f, 0.9f, 0.01f}, n, grad, d.coin() ? velocity.data : nullptr, param);
  k.adamw({1, 0.1f, 0.9f, 0.1f, 0.99f, 0.01f, 1e-8f, 0.99f, 1.1f}, n, grad, first, second, param);
  Exact<double> squares(1);
  squares[0] = k.sum_of_squares(grad, n);
  record.add(param);
  record.add(squares);
}

using Play = void (*)(const Kernels&, Draws&, Record&);
const struct {
  const char* name;
  Play play;
} PLAYS[] = {
    {"block", play_block}, {"pool", play_pool},   {"head", play_head},     {"layer", play_layer},   {"norm", play_norm},
    {"excite", play_excite}, {"batch", play_batch}, {"losses", play_losses}, {"updates", play_updates},
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const Kernels* const levels[] = {&plain_kernels, __builtin_cpu_supports("avx2") ? &avx2_kernels : nullptr,
                                   __builtin_cpu_supports("avx512bw") ? &avx512_kernels : nullptr};
  for (const auto& [name, play] : PLAYS) {
    for (int round = 0; round < rounds; ++round) {
      Record expected;
      for (const Kernels* level : levels) {
        if (level == nullptr) continue;
        Draws draws{std::mt19937_64(round)};
        Record record;
        play(*level, draws, record);
        if (level == levels[0]) expected = record;
        if (record.bits != expected.bits) {
          std::fprintf(stderr, "%s, draw %d: %s differs from plain\n", name, round, level->level);
          return 1;
        }
      }
    }
    std::printf("%-8s %d shapes\n", name, rounds);
  }
  for (const Kernels* level : levels)
    if (level != nullptr) std::printf("level %s\n", level->level);
}
