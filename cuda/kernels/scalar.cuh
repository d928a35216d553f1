// The four scalars behind one set of functions: float, double and their complex types.
#pragma once
#include "device.cuh"

template <class R>
struct alignas(2 * sizeof(R)) Complex {
  R re, im;
};

namespace {
#define INLINE __device__ __forceinline__

template <class R> INLINE Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R> INLINE Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R> INLINE Complex<R> operator-(Complex<R> a) { return {-a.re, -a.im}; }
template <class R> INLINE Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// What differs between real and complex scalars.
template <class T> struct Traits {
  using Real = T;
  static INLINE T real(T a) { return a; }
  static INLINE T imag(T) { return T(0); }
  static INLINE T make(T re, T) { return re; }
  static INLINE T conj(T a) { return a; }
  static INLINE T scale(T a, T r) { return a * r; }
  static INLINE T abs1(T a) { return fabs(a); }
  static INLINE T abs(T a) { return fabs(a); }
  static INLINE T square(T a) { return a * a; }
  static INLINE T shuffle(T a, int lane) { return __shfl_sync(ALL_LANES, a, lane); }
  static INLINE T shuffle_xor(T a, int mask) { return __shfl_xor_sync(ALL_LANES, a, mask); }
};
template <class R> struct Traits<Complex<R>> {
  using Real = R;
  using T = Complex<R>;
  static INLINE R real(T a) { return a.re; }
  static INLINE R imag(T a) { return a.im; }
  static INLINE T make(R re, R im) { return {re, im}; }
  static INLINE T conj(T a) { return {a.re, -a.im}; }
  static INLINE T scale(T a, R r) { return {a.re * r, a.im * r}; }
  static INLINE R abs1(T a) { return fabs(a.re) + fabs(a.im); }
  static INLINE R abs(T a) { return hypot(a.re, a.im); }
  static INLINE R square(T a) { return a.re * a.re + a.im * a.im; }
  static INLINE T shuffle(T a, int lane) {
    return {__shfl_sync(ALL_LANES, a.re, lane), __shfl_sync(ALL_LANES, a.im, lane)};
  }
  static INLINE T shuffle_xor(T a, int mask) {
    return {__shfl_xor_sync(ALL_LANES, a.re, mask), __shfl_xor_sync(ALL_LANES, a.im, mask)};
  }
};

template <class T> using RealOf = typename Traits<T>::Real;
template <class T> INLINE RealOf<T> real(T a) { return Traits<T>::real(a); }
template <class T> INLINE RealOf<T> imag(T a) { return Traits<T>::imag(a); }
template <class T> INLINE T conj(T a) { return Traits<T>::conj(a); }
template <class T> INLINE T scale(T a, RealOf<T> r) { return Traits<T>::scale(a, r); }
template <class T> INLINE RealOf<T> abs1(T a) { return Traits<T>::abs1(a); }
template <class T> INLINE RealOf<T> modulus(T a) { return Traits<T>::abs(a); }
template <class T> INLINE RealOf<T> square(T a) { return Traits<T>::square(a); }
template <class T> INLINE T make(RealOf<T> re, RealOf<T> im = RealOf<T>(0)) {
  return Traits<T>::make(re, im);
}
template <class T> INLINE T not_a_number() { return make<T>(RealOf<T>(NAN), RealOf<T>(NAN)); }
template <class T> INLINE bool is_zero(T a) { return real(a) == 0 && imag(a) == 0; }

// a times a power of two.
template <class T> INLINE T shifted(T a, int power) {
  return make<T>(scalbn(real(a), power), scalbn(imag(a), power));
}

// LAPACK's machine constants: unit roundoff, smallest normal number, largest number.
template <class R> struct Machine;
template <> struct Machine<float> {
  static constexpr float EPSILON = 0x1p-24f, SAFE_MIN = 0x1p-126f, LARGEST = 0x1.fffffep127f;
};
template <> struct Machine<double> {
  static constexpr double EPSILON = 0x1p-53, SAFE_MIN = 0x1p-1022, LARGEST = 0x1.fffffffffffffp1023;
};

// a / b. The complex quotient follows Baudin and Smith (arXiv:1210.4539): both are brought by powers of
// two to where Smith's formula neither overflows nor loses digits.
INLINE float divide(float a, float b) { return a / b; }
INLINE double divide(double a, double b) { return a / b; }

// The part (x + y d/c) t of Smith's quotient, in the order that survives underflow.
template <class R> INLINE R smith_part(R x, R y, R c, R d, R r, R t) {
  if (r == 0) return (x + d * (y / c)) * t;
  if (y * r == 0) return x * t + (y * t) * r;
  return (x + y * r) * t;
}
template <class R> INLINE Complex<R> smith(R a, R b, R c, R d) {
  const R r = d / c, t = R(1) / (c + d * r);
  return {smith_part(a, b, c, d, r, t), smith_part(b, -a, c, d, r, t)};
}
template <class R> INLINE Complex<R> divide(Complex<R> z, Complex<R> w) {
  constexpr R EPSILON = Machine<R>::EPSILON;
  constexpr R UP = R(2) / (EPSILON * EPSILON), SMALL = R(2) * Machine<R>::SAFE_MIN / EPSILON;
  constexpr R LARGE = R(0.5) / Machine<R>::SAFE_MIN;
  R restore = 1;
  const R z_size = fmax(fabs(z.re), fabs(z.im)), w_size = fmax(fabs(w.re), fabs(w.im));
  if (z_size >= LARGE) { z = scale(z, R(0.5)); restore *= R(2); }
  else if (z_size <= SMALL) { z = scale(z, UP); restore /= UP; }
  if (w_size >= LARGE) { w = scale(w, R(0.5)); restore *= R(0.5); }
  else if (w_size <= SMALL) { w = scale(w, UP); restore *= UP; }
  Complex<R> q;
  if (fabs(w.im) <= fabs(w.re)) {
    q = smith(z.re, z.im, w.re, w.im);
  } else {
    q = smith(z.im, z.re, w.im, w.re);
    q.im = -q.im;
  }
  return scale(q, restore);
}

// The sum over the lanes of a warp, in every lane, added in the same order in each.
template <class T> INLINE T warp_sum(T a) {
  for (int mask = LANES / 2; mask > 0; mask /= 2) a = a + Traits<T>::shuffle_xor(a, mask);
  return a;
}
}  // namespace

// One kernel for each scalar: INSTANCE(suffix, type).
#define FOR_SCALARS(INSTANCE) \
  INSTANCE(f32, float)        \
  INSTANCE(f64, double)       \
  INSTANCE(c64, Complex<float>) \
  INSTANCE(c128, Complex<double>)
