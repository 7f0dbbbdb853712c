// Cross entropy of rows of logits: 16 rows at a time, one per lane; classes are walked in their order.

#pragma once

#include "images.hpp"
#include "math.hpp"

namespace {

constexpr int ROWS = 16;

// Results of 16 rows: their largest logit and its place, Σ exp(z - largest) and the logarithm of that.
struct RowSums {
  Flat::V highest, sum, log_sum;
  float places[ROWS];
};

// Reads `rows` rows of `classes` logits; `memory [classes, 16]` then holds exp(z - largest), and `spread`, where asked for,
// Σ (largest - z).
template <bool WITH_SPREAD>
INLINE RowSums sum_rows(const float* logits, int64_t classes, int rows, float* memory, Flat::V& spread) {
  for (int64_t c = 0; c < classes; ++c) {
    float* column = memory + c * ROWS;
    for (int row = 0; row < rows; ++row) column[row] = logits[row * classes + c];
    for (int row = rows; row < ROWS; ++row) column[row] = 0;
  }
  RowSums out;
  out.highest = Flat::load(memory);
  auto place = Flat::zero();
  for (int64_t c = 1; c < classes; ++c) {
    const auto z = Flat::load(memory + c * ROWS);
    place = Flat::select_less(out.highest, z, Flat::all(static_cast<float>(c)), place);
    out.highest = Flat::larger(out.highest, z);
  }
  Flat::store(out.places, place);
  float largest[ROWS];
  Flat::store(largest, out.highest);
  // The largest value of a row with NaNs is its first NaN.
  for (int row = 0; row < rows; ++row)
    if (largest[row] != largest[row]) {
      int64_t c = 0;
      while (logits[row * classes + c] == logits[row * classes + c]) ++c;
      out.places[row] = static_cast<float>(c);
    }
  out.sum = Flat::zero();
  if (WITH_SPREAD) spread = Flat::zero();
  for (int64_t c = 0; c < classes; ++c) {
    float* column = memory + c * ROWS;
    const auto difference = Flat::sub(Flat::load(column), out.highest);
    if (WITH_SPREAD) spread = Flat::sub(spread, difference);
    const auto e = exponential<Flat>(difference);
    Flat::store(column, e);
    out.sum = Flat::add(out.sum, e);
  }
  // Makes the logarithm of NaN or infinity NaN.
  out.log_sum = Flat::add(logarithm<Flat>(out.sum), Flat::sub(out.sum, out.sum));
  return out;
}

// logsumexp(z) - z_y of each of `rows` rows.
INLINE void losses_of(const RowSums& sums, const float* logits, int64_t classes, const int64_t* targets, int rows,
                      float* losses) {
  float at_target[ROWS] = {};
  for (int row = 0; row < rows; ++row) at_target[row] = logits[row * classes + targets[row]];
  Flat::store(losses, Flat::sub(sums.log_sum, Flat::sub(Flat::load(at_target), sums.highest)));
}

// Mean loss (`mean[0]`), mean objective with label smoothing (`mean[1]`), the prediction of each row, and the gradient of
// the objective. `memory` has 16·classes floats.
void cross_entropy(const float* logits, const int64_t* targets, int64_t rows, int64_t classes, double smoothing,
                   int64_t* predictions, float* grad, double* mean, float* memory) {
  const auto share = static_cast<float>(1.0 / static_cast<double>(rows));
  const auto at_target = static_cast<float>(1.0 - smoothing);
  const auto anywhere = static_cast<float>(smoothing / static_cast<double>(classes));
  double plain = 0, spreads = 0;
  for (int64_t first = 0; first < rows; first += ROWS) {
    const int count = static_cast<int>(least(ROWS, rows - first));
    const float* z = logits + first * classes;
    auto spread = Flat::zero();
    const RowSums sums = smoothing == 0 ? sum_rows<false>(z, classes, count, memory, spread)
                                        : sum_rows<true>(z, classes, count, memory, spread);
    float losses[ROWS], factors[ROWS];
    losses_of(sums, z, classes, targets + first, count, losses);
    for (int row = 0; row < count; ++row) {
      plain += losses[row];
      predictions[first + row] = static_cast<int64_t>(sums.places[row]);
    }
    if (smoothing != 0) {
      float all[ROWS];
      Flat::store(all, Flat::fma(Flat::all(static_cast<float>(classes)), sums.log_sum, spread));
      for (int row = 0; row < count; ++row) spreads += all[row];
    }
    Flat::store(factors, Flat::div(Flat::all(1), sums.sum));
    for (int row = 0; row < count; ++row) {
      float* to = grad + (first + row) * classes;
      for (int64_t c = 0; c < classes; ++c) to[c] = (memory[c * ROWS + row] * factors[row] - anywhere) * share;
      to[targets[first + row]] -= at_target * share;
    }
  }
  const auto n = static_cast<double>(rows);
  mean[0] = plain / n;
  mean[1] = smoothing == 0 ? mean[0] : (1 - smoothing) * mean[0] + smoothing * spreads / (n * static_cast<double>(classes));
}

// Adds to the sums of each of `configurations`: losses, correct rows, rows that `main` gets right as well. Configuration k
// has rows k·samples to (k+1)·samples of `logits`. `memory` has 16·classes floats and `flags` room for `samples`.
void add_validation(const float* logits, const int64_t* targets, int64_t configurations, int64_t samples,
                    int64_t classes, int64_t main, double* losses, double* correct, double* both_correct,
                    uint8_t* flags, float* memory) {
  for (int64_t turn = 0; turn < configurations; ++turn) {
    // The main configuration first: the others are held against it.
    const int64_t k = turn == 0 ? main : turn <= main ? turn - 1 : turn;
    const float* z = logits + k * samples * classes;
    double total = 0;
    int64_t right = 0, both = 0;
    for (int64_t first = 0; first < samples; first += ROWS) {
      const int count = static_cast<int>(least(ROWS, samples - first));
      auto spread = Flat::zero();
      const RowSums sums = sum_rows<false>(z + first * classes, classes, count, memory, spread);
      float of_rows[ROWS];
      losses_of(sums, z + first * classes, classes, targets + first, count, of_rows);
      for (int row = 0; row < count; ++row) {
        const bool is_right = static_cast<int64_t>(sums.places[row]) == targets[first + row];
        if (turn == 0) flags[first + row] = is_right;
        total += of_rows[row];
        right += is_right;
        both += is_right && flags[first + row] != 0;
      }
    }
    losses[k] += total;
    correct[k] += static_cast<double>(right);
    if (configurations > 1) both_correct[k] += static_cast<double>(both);
  }
}

}  // namespace
