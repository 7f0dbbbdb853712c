// Elementary functions over lanes: the same operations, so the same bits, at every level. Errors are within two units
// in the last place over the ranges that are named.
//
// Polynomials: S. L. Moshier, Cephes Mathematical Library (single precision).

#pragma once

#include "lanes.hpp"

namespace {

// The result of exp over the whole range; 0 below -87.3, infinite above 88.7.
template <class L>
INLINE typename L::V exponential(typename L::V x) {
  using V = typename L::V;
  const V lowest = L::all(-87.33654f), beyond = L::all(88.72284f);
  const V bounded = L::select_less(L::select_less(x, lowest, lowest, x), beyond, L::select_less(x, lowest, lowest, x), beyond);
  // Adding and taking away 1.5·2²³ rounds to the nearest integer, which then stands in the low bits.
  const V magic = L::all(12582912.0f);
  const V shifted = L::fma(bounded, L::all(1.44269504f), magic);
  const V n = L::sub(shifted, magic);
  V r = L::fma(n, L::all(-0.693359375f), bounded);
  r = L::fma(n, L::all(2.12194440e-4f), r);
  V p = L::all(1.9875691500e-4f);
  p = L::fma(p, r, L::all(1.3981999507e-3f));
  p = L::fma(p, r, L::all(8.3334519073e-3f));
  p = L::fma(p, r, L::all(4.1665795894e-2f));
  p = L::fma(p, r, L::all(1.6666665459e-1f));
  p = L::fma(p, r, L::all(5.0000001201e-1f));
  const V y = L::add(L::fma(p, L::mul(r, r), r), L::all(1.0f));
  const V scaled = L::from_bits(L::iadd(L::bits(y), L::shift_left(L::bits(shifted), 23)));
  const V finite = L::select_less(x, lowest, L::zero(), scaled);
  // Also where x is NaN: it stays NaN.
  return L::select_less(x, beyond, finite, L::mul(x, L::all(__builtin_inff())));
}

// Natural logarithm of normal positive numbers.
template <class L>
INLINE typename L::V logarithm(typename L::V x) {
  using V = typename L::V;
  const auto bits = L::bits(x);
  const V half = L::from_bits(L::ior(L::iand(bits, L::iall(0x007fffff)), L::iall(0x3f000000)));
  const auto exponent = L::isub(L::shift_right(bits, 23), L::iall(126));
  // The exponent as a number, by way of the mantissa of 1.5·2²³.
  const V magic = L::all(12582912.0f);
  const V e = L::sub(L::from_bits(L::iadd(L::bits(magic), exponent)), magic);
  const V root = L::all(0.707106781186547524f);
  const V scale = L::select_less(half, root, L::sub(e, L::all(1.0f)), e);
  const V m = L::sub(L::select_less(half, root, L::add(half, half), half), L::all(1.0f));
  const V square = L::mul(m, m);
  V p = L::all(7.0376836292e-2f);
  p = L::fma(p, m, L::all(-1.1514610310e-1f));
  p = L::fma(p, m, L::all(1.1676998740e-1f));
  p = L::fma(p, m, L::all(-1.2420140846e-1f));
  p = L::fma(p, m, L::all(1.4249322787e-1f));
  p = L::fma(p, m, L::all(-1.6668057665e-1f));
  p = L::fma(p, m, L::all(2.0000714765e-1f));
  p = L::fma(p, m, L::all(-2.4999993993e-1f));
  p = L::fma(p, m, L::all(3.3333331174e-1f));
  V y = L::mul(L::mul(p, m), square);
  y = L::fma(scale, L::all(-2.12194440e-4f), y);
  y = L::fma(square, L::all(-0.5f), y);
  return L::fma(scale, L::all(0.693359375f), L::add(m, y));
}

// 1 / (1 + exp(-x)).
template <class L>
INLINE typename L::V sigmoid(typename L::V x) {
  const auto one = L::all(1.0f);
  return L::div(one, L::add(one, exponential<L>(L::sub(L::zero(), x))));
}

template <class L>
INLINE typename L::V hyperbolic_tangent(typename L::V x) {
  using V = typename L::V;
  const V size = L::from_bits(L::iand(L::bits(x), L::iall(0x7fffffff)));
  const V square = L::mul(x, x);
  V p = L::all(-5.70498872745e-3f);
  p = L::fma(p, square, L::all(2.06390887954e-2f));
  p = L::fma(p, square, L::all(-5.37397155531e-2f));
  p = L::fma(p, square, L::all(1.33314422036e-1f));
  p = L::fma(p, square, L::all(-3.33332819422e-1f));
  const V small = L::fma(L::mul(p, square), x, x);
  const V one = L::all(1.0f);
  const V large = L::sub(one, L::div(L::all(2.0f), L::add(exponential<L>(L::add(size, size)), one)));
  const V signed_large = L::from_bits(L::ior(L::bits(large), L::iand(L::bits(x), L::iall(static_cast<int32_t>(0x80000000u)))));
  return L::select_less(size, L::all(0.625f), small, signed_large);
}

}  // namespace
