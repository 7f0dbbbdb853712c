// Vectors of `W` floats, with the instructions of the level for which this unit is compiled.
//
// The engine promises the same bits on every CPU: every kernel is written over a fixed number of lanes, each lane
// sums in a fixed order, a product and a sum are one rounding (`fma`) exactly where a kernel says so, and nothing else
// is contracted (-ffp-contract=off). A level without wide vectors does the same operations in several pieces.
//
// Units of all levels end up in one binary, so nothing here may have a name that the linker could merge with another
// level's: everything is in an anonymous namespace, and the kernels use no templates of the standard library.

#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define INLINE inline __attribute__((always_inline))
// For the innermost loops: all registers of the machine are theirs.
#define ALONE __attribute__((noinline))
#define INLINE_LAMBDA __attribute__((always_inline))

namespace {

// Neighbouring positions of `C` channels, 32 floats: where in them lane after lane of the even and of the odd ones comes
// from, and, of the even ones followed by the odd, lane after lane of the neighbours.
template <int C>
struct Neighbours {
  int32_t even[16] = {}, odd[16] = {}, low[16] = {}, high[16] = {};

  constexpr Neighbours() {
    for (int lane = 0; lane < 16; ++lane) {
      even[lane] = 2 * (lane / C) * C + lane % C;
      odd[lane] = even[lane] + C;
      low[lane] = lane / C % 2 * 16 + lane / (2 * C) * C + lane % C;
      high[lane] = low[lane] + 8;
    }
  }
};

template <int W>
struct Registers;
#define REGISTERS_OF(W)                                            \
  template <>                                                      \
  struct Registers<W> {                                            \
    typedef float V __attribute__((vector_size(W * sizeof(float)))); \
    typedef int32_t I __attribute__((vector_size(W * sizeof(float)))); \
  };
REGISTERS_OF(4)
REGISTERS_OF(8)
REGISTERS_OF(16)
#undef REGISTERS_OF

// Vectors that the level has registers for.
template <int W>
struct Native {
  typedef typename Registers<W>::V V;
  typedef typename Registers<W>::I I;

  static INLINE V load(const float* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static INLINE void store(float* to, V v) { std::memcpy(to, &v, sizeof v); }
  static INLINE V add(V a, V b) { return a + b; }
  static INLINE V sub(V a, V b) { return a - b; }
  static INLINE V mul(V a, V b) { return a * b; }
  static INLINE V div(V a, V b) { return a / b; }
  // a < b ? x : y, lane by lane; false where a or b is NaN.
  static INLINE V select_less(V a, V b, V x, V y) { return a < b ? x : y; }
  // a == b ? x : y.
  static INLINE V select_equal(V a, V b, V x, V y) { return a == b ? x : y; }
  // v where it is larger or NaN, else m: libtorch's maximum of a pool.
  static INLINE V larger(V m, V v) {
    const V most = m < v ? v : m;
    return v != v ? v : most;
  }
  static INLINE I bits(V v) { return (I)v; }
  static INLINE V from_bits(I i) { return (V)i; }
  static INLINE I iadd(I a, I b) { return a + b; }
  static INLINE I isub(I a, I b) { return a - b; }
  static INLINE I iand(I a, I b) { return a & b; }
  static INLINE I ior(I a, I b) { return a | b; }
  static INLINE I shift_left(I a, int by) { return a << by; }
  static INLINE I shift_right(I a, int by) { return a >> by; }

  // `M` floats, again and again.
  template <int M>
  static INLINE V repeated(const float* from) {
    if constexpr (M == 1) return all(*from);
    if constexpr (M >= W) return load(from);
#if defined(__AVX2__) || defined(__AVX512F__)
    if constexpr (M == 2 && W == 8) return _mm256_castpd_ps(_mm256_set1_pd(pair(from)));
    if constexpr (M == 4 && W == 8) return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from));
#endif
#if defined(__AVX512F__)
    if constexpr (M == 2 && W == 16) return _mm512_castpd_ps(_mm512_set1_pd(pair(from)));
    if constexpr (M == 4 && W == 16) return _mm512_broadcast_f32x4(_mm_loadu_ps(from));
    if constexpr (M == 8 && W == 16) return _mm512_broadcast_f32x8(_mm256_loadu_ps(from));
#endif
    V v;
    for (int lane = 0; lane < W; ++lane) v[lane] = from[lane % M];
    return v;
  }
  static INLINE double pair(const float* from) {
    double two;
    std::memcpy(&two, from, sizeof two);
    return two;
  }

#if defined(__AVX512F__)
  // Lane `c·M + m` of 16 as lane `m·(16 / M) + c`.
  template <int M>
  static INLINE V transpose(V v) {
    static_assert(W == 16);
    alignas(64) static const int32_t OF_2[16] = {0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15};
    alignas(64) static const int32_t OF_4[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    if constexpr (M == 16) return v;
    else return _mm512_permutexvar_ps(_mm512_load_si512(M == 2 ? OF_2 : OF_4), v);
  }
  // The first and the last 8 lanes of 16.
  static INLINE void halves(V v, typename Registers<8>::V (&to)[2]) {
    static_assert(W == 16);
    to[0] = _mm512_castps512_ps256(v), to[1] = _mm512_extractf32x8_ps(v, 1);
  }
  // 32 floats, those of neighbouring positions of `C` channels, as the even and the odd positions.
  template <int C>
  static INLINE void split(V low, V high, V& even, V& odd) {
    static_assert(W == 16);
    alignas(64) static constexpr Neighbours<C> FROM;
    even = _mm512_permutex2var_ps(low, _mm512_load_si512(FROM.even), high);
    odd = _mm512_permutex2var_ps(low, _mm512_load_si512(FROM.odd), high);
  }
  // And the way back.
  template <int C>
  static INLINE void merge(V even, V odd, V& low, V& high) {
    static_assert(W == 16);
    alignas(64) static constexpr Neighbours<C> FROM;
    low = _mm512_permutex2var_ps(even, _mm512_load_si512(FROM.low), odd);
    high = _mm512_permutex2var_ps(even, _mm512_load_si512(FROM.high), odd);
  }
  static INLINE V all(float x) {
    if constexpr (W == 16) return _mm512_set1_ps(x);
    else return _mm256_set1_ps(x);
  }
  static INLINE I iall(int32_t x) {
    if constexpr (W == 16) return (I)_mm512_set1_epi32(x);
    else return (I)_mm256_set1_epi32(x);
  }
  static INLINE V fma(V a, V b, V c) {
    if constexpr (W == 16) return _mm512_fmadd_ps(a, b, c);
    else return _mm256_fmadd_ps(a, b, c);
  }
  // The first `n` of W lanes; the others are 0.
  static INLINE V load_some(const float* from, int n) {
    if constexpr (W == 16) return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), from);
    else return _mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << n) - 1), from);
  }
  static INLINE void store_some(float* to, V v, int n) {
    if constexpr (W == 16) _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << n) - 1), v);
    else _mm256_mask_storeu_ps(to, static_cast<__mmask8>((1u << n) - 1), v);
  }
#else
#if defined(__AVX2__)
  static INLINE V all(float x) { return _mm256_set1_ps(x); }
  static INLINE I iall(int32_t x) { return (I)_mm256_set1_epi32(x); }
  static INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
#else
  static INLINE V all(float x) { return V{x, x, x, x}; }
  static INLINE I iall(int32_t x) { return I{x, x, x, x}; }
#if defined(__aarch64__)
  static INLINE V fma(V a, V b, V c) { return vfmaq_f32(c, a, b); }
#else
  // One rounding, as everywhere, if slowly.
  static ALONE V fma(V a, V b, V c) {
    for (int lane = 0; lane < W; ++lane) c[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
    return c;
  }
#endif
#endif
#if defined(__AVX2__)
  // As with 16 lanes: two vectors of neighbouring positions as even and odd positions, and back.
  template <int C>
  static INLINE void split(V low, V high, V& even, V& odd) {
    if constexpr (C == 1) {
      even = in_order(_mm256_shuffle_ps(low, high, 0x88)), odd = in_order(_mm256_shuffle_ps(low, high, 0xDD));
    } else if constexpr (C == 2) {
      const __m256d a = _mm256_castps_pd(low), b = _mm256_castps_pd(high);
      even = in_order(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b))), odd = in_order(_mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
    } else {
      even = _mm256_permute2f128_ps(low, high, 0x20), odd = _mm256_permute2f128_ps(low, high, 0x31);
    }
  }
  template <int C>
  static INLINE void merge(V even, V odd, V& low, V& high) {
    V first = even, second = odd;
    if constexpr (C == 1) {
      first = _mm256_unpacklo_ps(even, odd), second = _mm256_unpackhi_ps(even, odd);
    } else if constexpr (C == 2) {
      const __m256d a = _mm256_castps_pd(even), b = _mm256_castps_pd(odd);
      first = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), second = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
    }
    low = _mm256_permute2f128_ps(first, second, 0x20), high = _mm256_permute2f128_ps(first, second, 0x31);
  }
  // Quarters 0, 2, 1, 3.
  static INLINE V in_order(V v) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8)); }
  static INLINE __m256i first_lanes(int n) {
    static const int32_t ONES_THEN_ZEROS[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ONES_THEN_ZEROS + 8 - n));
  }
  static INLINE V load_some(const float* from, int n) { return _mm256_maskload_ps(from, first_lanes(n)); }
  static INLINE void store_some(float* to, V v, int n) { _mm256_maskstore_ps(to, first_lanes(n), v); }
#else
  template <int C>
  static INLINE void split(V low, V high, V& even, V& odd) {
    if constexpr (C == 1) even = V{low[0], low[2], high[0], high[2]}, odd = V{low[1], low[3], high[1], high[3]};
    else even = V{low[0], low[1], high[0], high[1]}, odd = V{low[2], low[3], high[2], high[3]};
  }
  template <int C>
  static INLINE void merge(V even, V odd, V& low, V& high) {
    if constexpr (C == 1) low = V{even[0], odd[0], even[1], odd[1]}, high = V{even[2], odd[2], even[3], odd[3]};
    else low = V{even[0], even[1], odd[0], odd[1]}, high = V{even[2], even[3], odd[2], odd[3]};
  }
  static INLINE V load_some(const float* from, int n) {
    V v = {};
    std::memcpy(&v, from, n * sizeof(float));
    return v;
  }
  static INLINE void store_some(float* to, V v, int n) { std::memcpy(to, &v, n * sizeof(float)); }
#endif
#endif
};

// Twice as many lanes as `Half` has.
template <int W, class Half>
struct Twice {
  struct V {
    typename Half::V low, high;
  };
  struct I {
    typename Half::I low, high;
  };
  static constexpr int H = W / 2;

  static INLINE V load(const float* from) { return {Half::load(from), Half::load(from + H)}; }
  static INLINE void store(float* to, V v) {
    Half::store(to, v.low);
    Half::store(to + H, v.high);
  }
  template <int M>
  static INLINE V repeated(const float* from) {
    if constexpr (M == W) return load(from);
    else return {Half::template repeated<M>(from), Half::template repeated<M>(from)};
  }
  template <int M>
  static INLINE V transpose(V v) {
    float from[W], to[W];
    store(from, v);
    for (int lane = 0; lane < W; ++lane) to[lane % M * (W / M) + lane / M] = from[lane];
    return load(to);
  }
  static INLINE void halves(V v, typename Half::V (&to)[2]) { to[0] = v.low, to[1] = v.high; }
  template <int C>
  static INLINE void split(V low, V high, V& even, V& odd) {
    if constexpr (C == H) {
      even = {low.low, high.low}, odd = {low.high, high.high};
    } else {
      Half::template split<C>(low.low, low.high, even.low, odd.low);
      Half::template split<C>(high.low, high.high, even.high, odd.high);
    }
  }
  template <int C>
  static INLINE void merge(V even, V odd, V& low, V& high) {
    if constexpr (C == H) {
      low = {even.low, odd.low}, high = {even.high, odd.high};
    } else {
      Half::template merge<C>(even.low, odd.low, low.low, low.high);
      Half::template merge<C>(even.high, odd.high, high.low, high.high);
    }
  }
  static INLINE V load_some(const float* from, int n) {
    return n <= H ? V{Half::load_some(from, n), Half::all(0)} : V{Half::load(from), Half::load_some(from + H, n - H)};
  }
  static INLINE void store_some(float* to, V v, int n) {
    if (n <= H) return Half::store_some(to, v.low, n);
    Half::store(to, v.low);
    Half::store_some(to + H, v.high, n - H);
  }
  static INLINE V all(float x) { return {Half::all(x), Half::all(x)}; }
  static INLINE V add(V a, V b) { return {Half::add(a.low, b.low), Half::add(a.high, b.high)}; }
  static INLINE V sub(V a, V b) { return {Half::sub(a.low, b.low), Half::sub(a.high, b.high)}; }
  static INLINE V mul(V a, V b) { return {Half::mul(a.low, b.low), Half::mul(a.high, b.high)}; }
  static INLINE V div(V a, V b) { return {Half::div(a.low, b.low), Half::div(a.high, b.high)}; }
  static INLINE V fma(V a, V b, V c) { return {Half::fma(a.low, b.low, c.low), Half::fma(a.high, b.high, c.high)}; }
  static INLINE V select_less(V a, V b, V x, V y) {
    return {Half::select_less(a.low, b.low, x.low, y.low), Half::select_less(a.high, b.high, x.high, y.high)};
  }
  static INLINE V select_equal(V a, V b, V x, V y) {
    return {Half::select_equal(a.low, b.low, x.low, y.low), Half::select_equal(a.high, b.high, x.high, y.high)};
  }
  static INLINE V larger(V m, V v) { return {Half::larger(m.low, v.low), Half::larger(m.high, v.high)}; }
  static INLINE I iall(int32_t x) { return {Half::iall(x), Half::iall(x)}; }
  static INLINE I bits(V v) { return {Half::bits(v.low), Half::bits(v.high)}; }
  static INLINE V from_bits(I i) { return {Half::from_bits(i.low), Half::from_bits(i.high)}; }
  static INLINE I iadd(I a, I b) { return {Half::iadd(a.low, b.low), Half::iadd(a.high, b.high)}; }
  static INLINE I isub(I a, I b) { return {Half::isub(a.low, b.low), Half::isub(a.high, b.high)}; }
  static INLINE I iand(I a, I b) { return {Half::iand(a.low, b.low), Half::iand(a.high, b.high)}; }
  static INLINE I ior(I a, I b) { return {Half::ior(a.low, b.low), Half::ior(a.high, b.high)}; }
  static INLINE I shift_left(I a, int by) { return {Half::shift_left(a.low, by), Half::shift_left(a.high, by)}; }
  static INLINE I shift_right(I a, int by) { return {Half::shift_right(a.low, by), Half::shift_right(a.high, by)}; }
};

template <int W>
struct LanesOf;
#if defined(__AVX512F__)
template <> struct LanesOf<8> { typedef Native<8> Type; };
template <> struct LanesOf<16> { typedef Native<16> Type; };
constexpr int WIDEST = 16;
constexpr int REGISTERS = 32;
#elif defined(__AVX2__)
template <> struct LanesOf<8> { typedef Native<8> Type; };
template <> struct LanesOf<16> { typedef Twice<16, Native<8>> Type; };
constexpr int WIDEST = 8;
constexpr int REGISTERS = 16;
#else
template <> struct LanesOf<8> { typedef Twice<8, Native<4>> Type; };
template <> struct LanesOf<16> { typedef Twice<16, LanesOf<8>::Type> Type; };
constexpr int WIDEST = 8;
constexpr int REGISTERS = 16;
#endif

// `Lanes<W>`, W = 8 or 16.
template <int W>
struct Lanes : LanesOf<W>::Type {
  using Base = typename LanesOf<W>::Type;
  using V = typename Base::V;
  static constexpr int WIDTH = W;

  // All W lanes, or the first `n` of them.
  static INLINE V load_at_most(const float* from, int n) { return n >= W ? Base::load(from) : Base::load_some(from, n); }
  static INLINE void store_at_most(float* to, V v, int n) {
    if (n >= W) Base::store(to, v);
    else Base::store_some(to, v, n);
  }
  static INLINE V zero() { return Base::all(0); }
  // x where positive or NaN, else 0.
  static INLINE V relu(V x) { return Base::select_less(x, zero(), zero(), x); }
};

}  // namespace
