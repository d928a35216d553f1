// Matrices of order 2, [a b; c d]: the shifts of a QR iteration that they have as eigenvalues, and the
// standard form of real ones, as cpu/src/schur/two_by_two.rs has them.
#pragma once
#include "scalar.cuh"

namespace {
// The root with a real part that is not negative.
template <class R> INLINE Complex<R> square_root(Complex<R> z) {
  const R size = hypot(z.re, z.im);
  if (size == 0) return {0, 0};
  const R larger = sqrt((fabs(z.re) + size) / 2), smaller = z.im / (2 * larger);
  if (z.re >= 0) return {larger, smaller};
  return {fabs(smaller), copysign(larger, z.im)};
}

// The eigenvalue nearer to d, d - u^2 / (x +- sqrt(x^2 + u^2)) with u^2 = b c, x = (a - d) / 2 and the sign
// that makes the divisor larger.
template <class R> INLINE Complex<R> wilkinson(Complex<R> a, Complex<R> b, Complex<R> c, Complex<R> d) {
  const Complex<R> u = square_root(b) * square_root(c), x = scale(a - d, R(0.5));
  const R size = fmax(abs1(u), abs1(x));
  if (abs1(u) == 0) return d;
  const Complex<R> p = {x.re / size, x.im / size}, q = {u.re / size, u.im / size};
  Complex<R> root = square_root(p * p + q * q);
  if (p.re * root.re + p.im * root.im < 0) root = -root;
  return d - u * divide(u, x + scale(root, size));
}

// One shift for complex matrices; two for real ones, a conjugate pair or the same twice.
template <class T> struct Shifts {
  T one;
  T one_imag = T(0), other = T(0), other_imag = T(0);
};
template <class R> struct Shifts<Complex<R>> {
  Complex<R> one;
};

// Both eigenvalues where they are a pair, else twice the one nearer to d. Not of zero.
template <class R> INLINE Shifts<R> two_shifts(R a, R b, R c, R d) {
  const R size = fabs(a) + fabs(b) + fabs(c) + fabs(d);
  a /= size, b /= size, c /= size, d /= size;
  const R middle = (a + d) / 2, offset = (a - d) / 2, square = offset * offset + b * c;
  const R root = sqrt(fabs(square));
  if (square < 0) return {middle * size, root * size, middle * size, -root * size};
  const R nearer = (fabs(middle + root - d) <= fabs(middle - root - d) ? middle + root : middle - root) * size;
  return {nearer, 0, nearer, 0};
}

// A real matrix [a b; c d] = G^T B G in standard form: c is zero, or a = d and b and c have opposite signs
// (xLANV2; Bai and Demmel, Linear Algebra Appl. 186, 1993). G = [cosine sine; -sine cosine]. Of a c that is not
// zero.
template <class R> struct Standard {
  R a, b, c, d, cosine, sine;

  // [x; y] = G [x; y].
  INLINE void rotate(R& x, R& y) const {
    const R first = x * cosine + y * sine;
    y = y * cosine - x * sine;
    x = first;
  }
};

template <class R> INLINE Standard<R> standard(R a, R b, R c, R d) {
  if (b == 0) return {d, -c, 0, a, 0, 1};
  bool opposite = (b > 0) != (c > 0);
  if (a == d && opposite) return {a, b, c, d, 1, 0};
  const R difference = a - d, large = fmax(fabs(b), fabs(c)), small = fmin(fabs(b), fabs(c));
  R p = difference / 2;
  const R product = opposite ? -small : small, size = fmax(fabs(p), large);
  const R z = (p / size) * p + (large / size) * product;
  // Eigenvalues that are real by more than rounding: the one farther from d first.
  if (z >= 8 * Machine<R>::EPSILON * size) {
    const R far = p + copysign(sqrt(size) * sqrt(z), p), length = hypot(c, far);
    return {d + far, b - c, 0, d - (large / far) * product, far / length, c / length};
  }
  // Equal diagonal elements, by the rotation through half the angle of (b + c, a - d).
  const R sigma = b + c, length = hypot(sigma, difference);
  const R cosine = sqrt((1 + fabs(sigma) / length) / 2), sine = -(p / (length * cosine)) * copysign(R(1), sigma);
  const R a1 = a * cosine + b * sine, b1 = b * cosine - a * sine;
  const R c1 = c * cosine + d * sine, d1 = d * cosine - c * sine;
  a = a1 * cosine + c1 * sine, b = b1 * cosine + d1 * sine;
  c = c1 * cosine - a1 * sine, d = d1 * cosine - b1 * sine;
  const R middle = (a + d) / 2;
  opposite = (b > 0) != (c > 0);
  if (c == 0 || (b != 0 && opposite)) return {middle, b, c, middle, cosine, sine};
  if (b == 0) return {middle, -c, 0, middle, -sine, cosine};
  // Nearly equal real eigenvalues: a second rotation clears c.
  const R root_b = sqrt(fabs(b)), root_c = sqrt(fabs(c)), across = sqrt(fabs(b + c));
  const R turn = root_b / across, rise = root_c / across;
  p = copysign(root_b * root_c, c);
  return {middle + p, b - c, 0, middle - p, cosine * turn - sine * rise, cosine * rise + sine * turn};
}
}  // namespace
