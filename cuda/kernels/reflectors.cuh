// Householder reflectors of a column-major matrix in shared memory: H = I - tau v v^H, v zero above row k,
// one in it. Columns are ld apart.
#pragma once
#include "scalar.cuh"

namespace {
// The 2-norm of element(0) to element(m - 1) by one warp, scaled so that squares neither overflow nor vanish.
template <class T, class F> INLINE RealOf<T> warp_norm_of(int m, F element) {
  using R = RealOf<T>;
  const int lane = threadIdx.x % LANES;
  R largest = 0;
  bool odd = false;
  for (int i = lane; i < m; i += LANES) {
    const T x = element(i);
    const R here = fmax(fabs(real(x)), fabs(imag(x)));
    odd = odd || here != here || real(x) != real(x) || imag(x) != imag(x);
    largest = fmax(largest, here);
  }
  for (int flip = LANES / 2; flip > 0; flip /= 2)
    largest = fmax(largest, __shfl_xor_sync(ALL_LANES, largest, flip));
  if (__any_sync(ALL_LANES, odd)) return largest + R(NAN);
  if (largest == 0 || largest > Machine<R>::LARGEST) return largest;
  R sum = 0;
  for (int i = lane; i < m; i += LANES) {
    const T x = element(i);
    sum += square(make<T>(real(x) / largest, imag(x) / largest));
  }
  return largest * sqrt(warp_sum(sum));
}
template <class T> INLINE RealOf<T> warp_norm(const T* x, int m) {
  return warp_norm_of<T>(m, [=](int i) { return x[i]; });
}

// H = I - tau v v^H with H^H [alpha; x] = [beta; 0], after xLARFG: v = [1; x / (alpha - beta)].
template <class T> INLINE void reflector(T* column, int k, int m, T& tau) {
  using R = RealOf<T>;
  const R norm = warp_norm(column + k + 1, m - k - 1);
  const T alpha = column[k];
  __syncwarp();
  if (norm == 0 && imag(alpha) == 0) {
    tau = make<T>(0);
    return;
  }
  const R beta = -copysign(hypot(modulus(alpha), norm), real(alpha));
  tau = make<T>((beta - real(alpha)) / beta, -imag(alpha) / beta);
  const T pivot = alpha - make<T>(beta);
  for (int i = k + 1 + threadIdx.x % LANES; i < m; i += LANES) column[i] = divide(column[i], pivot);
  if (threadIdx.x % LANES == 0) column[k] = make<T>(beta);
}

// Columns `first` to `end` after H of column k, or after its adjoint where `tau` is conj(tau): by warps, of
// which this is number `warp` of `warps`.
template <class T>
INLINE void reflect(T* s, int ld, int k, int m, T tau, int first, int end, int warp, int warps) {
  const int lane = threadIdx.x % LANES;
  const T* v = s + k * ld;
  for (int j = first + warp; j < end; j += warps) {
    T* c = s + j * ld;
    T sum = make<T>(0);
    for (int i = k + lane; i < m; i += LANES) sum = sum + (i == k ? c[i] : conj(v[i]) * c[i]);
    const T w = tau * warp_sum(sum);
    for (int i = k + lane; i < m; i += LANES) c[i] = c[i] - (i == k ? w : v[i] * w);
  }
}
}  // namespace
