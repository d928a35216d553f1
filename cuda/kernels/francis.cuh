// Hessenberg and Schur forms of a small matrix, by columns in shared memory: a warp's lanes have the columns in
// turn, then the rows.
//
// Reduction by reflectors (xGEHRD). Then Francis' QR iteration (Computer J. 4, 1961 and 1962), two shifts at
// a time for real matrices and one for complex ones; a subdiagonal element is neglected by Ahues' and
// Tisseur's criterion (LAPACK Working Note 122); every tenth iteration without progress takes Wilkinson's and
// Reinsch's exceptional shifts, and 30 for each row are the end (xLAHQR).
#pragma once
#include "reflectors.cuh"
#include "two_by_two.cuh"

namespace {
// Iterations for each row, of which there are at least so many: xLAHQR's.
constexpr int SWEEPS = 30, FEWEST = 10;

template <class T> struct Form {
  using R = RealOf<T>;
  static constexpr bool COMPLEX = sizeof(T) != sizeof(R);
  // Rows of a bulge: one more than shifts.
  static constexpr int ROWS = COMPLEX ? 2 : 3;
  static constexpr R ULP = 2 * Machine<R>::EPSILON;
  // Vectors that are no longer, beside a matrix of about one, become zero: of less than the least normal number
  // no reflector is unitary.
  static constexpr R LEAST = Machine<R>::SAFE_MIN / ULP;

  T *h, *z;
  int n, ld;

  // Whether all of T is wanted, with Z; else its diagonal blocks are, and z is null.
  INLINE bool whole() const { return z != nullptr; }
  static INLINE int lane() { return threadIdx.x % LANES; }
  INLINE T& at(int i, int j) const { return h[i + j * ld]; }
  INLINE R size(int i, int j) const { return abs1(at(i, j)); }

  // A by rows, times two to a power, so that squares neither overflow nor vanish; false where it is not finite.
  INLINE bool load(const T* a, int& power) const {
    bool finite = true;
    R largest = 0;
    for (int e = lane(); e < n * n; e += LANES) {
      const T x = a[e];
      const R re = fabs(real(x)), im = fabs(imag(x));
      finite = finite && re <= Machine<R>::LARGEST && im <= Machine<R>::LARGEST;
      largest = fmax(largest, fmax(re, im));
      at(e / n, e % n) = x;
    }
    for (int flip = LANES / 2; flip > 0; flip /= 2)
      largest = fmax(largest, __shfl_xor_sync(ALL_LANES, largest, flip));
    if (__any_sync(ALL_LANES, !finite)) return false;
    power = largest > 0 ? -ilogb(largest) : 0;
    __syncwarp();
    shift(power);
    return true;
  }
  INLINE void shift(int power) const {
    for (int e = lane(); e < n * n; e += LANES) at(e % n, e / n) = shifted(at(e % n, e / n), power);
    __syncwarp();
  }

  // A = Q H Q^H; z becomes Q, and h zero below its subdiagonal.
  INLINE void reduce() const {
    if (whole())
      for (int e = lane(); e < n * n; e += LANES) z[e % n + e / n * ld] = make<T>(e % n == e / n ? 1 : 0);
    __syncwarp();
    for (int k = 0; k + 1 < n; k++) {
      T* const v = h + k * ld;
      T tau = make<T>(0);
      if (warp_norm(v + k + 1, n - k - 1) > LEAST) reflector(v, k + 1, n, tau);
      __syncwarp();
      if (!is_zero(tau)) {
        for (int j = k + 1 + lane(); j < n; j += LANES) {
          T* const c = h + j * ld;
          T sum = c[k + 1];
          for (int i = k + 2; i < n; i++) sum = sum + conj(v[i]) * c[i];
          sum = conj(tau) * sum;
          c[k + 1] = c[k + 1] - sum;
          for (int i = k + 2; i < n; i++) c[i] = c[i] - v[i] * sum;
        }
        __syncwarp();
        right(h, v, tau, k + 1);
        if (whole()) right(z, v, tau, k + 1);
      }
      __syncwarp();
      for (int i = k + 2 + lane(); i < n; i += LANES) v[i] = make<T>(0);
      __syncwarp();
    }
  }

  // H = Q T Q^H, Q collected in z; false where that does not end.
  INLINE bool converge() const {
    int budget = SWEEPS * max(n, FEWEST), stop = n, stalled = 0;
    while (stop > 0) {
      const int start = unreduced(stop), order = stop - start;
      if (order < ROWS) {
        if (order == 2) split(start);
        stop = start;
        stalled = 0;
      } else {
        if (budget-- == 0) return false;
        sweep(start, stop, ++stalled);
      }
    }
    return true;
  }

  // Brings the real block at k to standard form.
  INLINE void split(int k) const {
    if constexpr (!COMPLEX) {
      const Standard<R> s = standard(at(k, k), at(k, k + 1), at(k + 1, k), at(k + 1, k + 1));
      __syncwarp();
      if (lane() == 0) {
        at(k, k) = s.a, at(k, k + 1) = s.b;
        at(k + 1, k) = s.c, at(k + 1, k + 1) = s.d;
      }
      if (whole()) {
        for (int j = k + 2 + lane(); j < n; j += LANES) s.rotate(at(k, j), at(k + 1, j));
        for (int i = lane(); i < k; i += LANES) s.rotate(at(i, k), at(i, k + 1));
        for (int i = lane(); i < n; i += LANES) s.rotate(z[i + k * ld], z[i + (k + 1) * ld]);
      }
      __syncwarp();
    }
  }

 private:
  // `to` after the reflector of v, whose first row is `first`, from the right.
  INLINE void right(T* to, const T* v, T tau, int first) const {
    for (int i = lane(); i < n; i += LANES) {
      T sum = to[i + first * ld];
      for (int j = first + 1; j < n; j++) sum = sum + to[i + j * ld] * v[j];
      sum = sum * tau;
      to[i + first * ld] = to[i + first * ld] - sum;
      for (int j = first + 1; j < n; j++) to[i + j * ld] = to[i + j * ld] - sum * conj(v[j]);
    }
  }

  // The first row of the unreduced block that ends before `stop`; what couples it becomes zero.
  INLINE int unreduced(int stop) const {
    for (int last = stop - 1; last > 0; last -= LANES) {
      const int i = last - lane();
      const unsigned found = __ballot_sync(ALL_LANES, i > 0 && is_negligible(i, stop));
      __syncwarp();
      if (found == 0) continue;
      const int row = last + 1 - __ffs((int)found);
      if (lane() == 0) at(row, row - 1) = make<T>(0);
      __syncwarp();
      return row;
    }
    return 0;
  }

  // Whether the element before the diagonal of row i may become zero.
  INLINE bool is_negligible(int i, int stop) const {
    const R smallest = Machine<R>::SAFE_MIN * (R(n) / ULP), below = size(i, i - 1);
    if (below <= smallest) return true;
    R around = size(i - 1, i - 1) + size(i, i);
    if (around == 0) {
      if (i >= 2) around += size(i - 1, i - 2);
      if (i + 1 < stop) around += size(i + 1, i);
    }
    if (below > ULP * around) return false;
    const R above = size(i - 1, i), here = size(i, i), apart = abs1(at(i - 1, i - 1) - at(i, i));
    const R ab = fmax(below, above), ba = fmin(below, above), aa = fmax(here, apart), bb = fmin(here, apart);
    const R sum = aa + ab;
    return ba * (ab / sum) <= fmax(smallest, ULP * (bb * (aa / sum)));
  }

  // A multiple of the first column of the product of H less each shift, for the H from row and column k on.
  // Elements before the diagonal are none that may become zero.
  struct Column {
    T x, y, z;
  };
  INLINE Column first_column(int k, const Shifts<T>& shifts) const {
    const T corner = at(k, k), next = at(k + 1, k);
    if constexpr (COMPLEX) {
      const T here = corner - shifts.one;
      const R sum = abs1(here) + abs1(next);
      return {over(here, sum), over(next, sum), make<T>(0)};
    } else {
      const R sum = fabs(corner - shifts.other) + fabs(shifts.other_imag) + fabs(next);
      const R down = next / sum, one = corner - shifts.one;
      const Column c = {down * at(k, k + 1) + one * ((corner - shifts.other) / sum) -
                            shifts.one_imag * (shifts.other_imag / sum),
                        down * (corner + at(k + 1, k + 1) - shifts.one - shifts.other),
                        down * at(k + 2, k + 1)};
      const R all = fmax(fabs(c.x) + fabs(c.y) + fabs(c.z), Machine<R>::SAFE_MIN);
      return {c.x / all, c.y / all, c.z / all};
    }
  }
  static INLINE T over(T x, R by) { return make<T>(real(x) / by, imag(x) / by); }

  // Whether a bulge that starts at row k with this column leaves the element before it alone.
  INLINE bool is_decoupled(int k, const Column& c) const {
    const R below = size(k, k - 1) * (abs1(c.y) + abs1(c.z));
    return below <= ULP * abs1(c.x) * (size(k - 1, k - 1) + size(k, k) + size(k + 1, k + 1));
  }

  // One sweep over rows start to stop, after so many without progress.
  INLINE void sweep(int start, int stop, int stalled) const {
    const Shifts<T> shifts = next_shifts(start, stop, stalled);
    const int top = whole() ? 0 : start, end = whole() ? n : stop;
    int begin = stop - ROWS;
    Column c = first_column(begin, shifts);
    while (begin > start && !is_decoupled(begin, c)) c = first_column(--begin, shifts);
    for (int k = begin; k + 1 < stop; k++) {
      const bool three = ROWS == 3 && k + 2 < stop;
      if (k > begin) c = {at(k, k - 1), at(k + 1, k - 1), three ? at(k + 2, k - 1) : make<T>(0)};
      const R norm = ROWS == 3 ? hypot(modulus(c.y), modulus(c.z)) : modulus(c.y);
      T tau = make<T>(0), y = tau, z2 = tau;
      R beta = real(c.x);
      if (norm > LEAST || fabs(imag(c.x)) > LEAST) {
        beta = -copysign(hypot(modulus(c.x), norm), real(c.x));
        tau = make<T>((beta - real(c.x)) / beta, -imag(c.x) / beta);
        const T pivot = c.x - make<T>(beta);
        y = divide(c.y, pivot), z2 = divide(c.z, pivot);
      }
      __syncwarp();
      if (lane() == 0 && k > begin) {
        at(k, k - 1) = make<T>(beta);
        at(k + 1, k - 1) = make<T>(0);
        if (three) at(k + 2, k - 1) = make<T>(0);
      }
      if (lane() == 0 && k == begin && k > start) at(k, k - 1) = at(k, k - 1) * (make<T>(1) - conj(tau));
      for (int j = k + lane(); j < end; j += LANES) {
        T* const p = &at(k, j);
        const T w = conj(tau) * (p[0] + conj(y) * p[1] + (three ? conj(z2) * p[2] : make<T>(0)));
        p[0] = p[0] - w;
        p[1] = p[1] - y * w;
        if (three) p[2] = p[2] - z2 * w;
      }
      __syncwarp();
      chase(h, k, top, min(k + ROWS + 1, stop), tau, y, z2, three);
      if (whole()) chase(z, k, 0, n, tau, y, z2, three);
      __syncwarp();
    }
  }
  // The reflector from the right, on rows first to end.
  INLINE void chase(T* to, int k, int first, int end, T tau, T y, T z2, bool three) const {
    for (int i = first + lane(); i < end; i += LANES) {
      T *const p = to + i + k * ld, *const q = p + ld, *const r = q + ld;
      T w = *p + y * *q;
      if constexpr (ROWS == 3)
        if (three) w = w + z2 * *r;
      w = tau * w;
      *p = *p - w;
      *q = *q - w * conj(y);
      if constexpr (ROWS == 3)
        if (three) *r = *r - w * conj(z2);
    }
  }

  INLINE Shifts<T> next_shifts(int start, int stop, int stalled) const {
    const int last = stop - 1;
    const bool odd = stalled % 10 == 0, below = stalled % 20 == 0;
    // Exceptional ones from the bottom and from the top by turns.
    const T corner = below ? at(last, last) : at(start, start);
    if constexpr (COMPLEX) {
      if (odd) return {corner + make<T>(R(0.75) * (below ? size(last, last - 1) : size(start + 1, start)))};
      return {wilkinson(at(last - 1, last - 1), at(last - 1, last), at(last, last - 1), at(last, last))};
    } else {
      if (odd) {
        const R next = below ? size(last, last - 1) + size(last - 1, last - 2)
                             : size(start + 1, start) + size(start + 2, start + 1);
        return two_shifts<R>(corner + R(0.75) * next, R(-0.4375) * next, next, corner + R(0.75) * next);
      }
      return two_shifts<R>(at(last - 1, last - 1), at(last - 1, last), at(last, last - 1), at(last, last));
    }
  }
};
}  // namespace
