// The Cholesky factor after a rank-one change: R'^H R' = R^H R + w w^H, R upper triangular, row-major.
//
// Below R an appended row w^H; rotation k, of rows k and n, brings the appended element k to zero:
//
//   [ c   s ] [ R(k, k) ]   [ r ]      c = |f| / h, s = phase(f) conj(g) / h, r = phase(f) h
//   [ -s' c ] [  w(k)   ] = [ 0 ]      h = sqrt(|f|^2 + |g|^2)
//
// A block per matrix, in panels of 32 rows: its first warp computes a panel's rotations on the
// diagonal block, a lane per column; then every thread applies them to columns of its own, the
// appended element in a register, so that R is read and written once, in order. In place: r [batch,
// n, n], of which the lower triangle is not touched; w [batch, n] becomes zero.
#include "scalar.cuh"

namespace {
constexpr int PANEL = LANES;

template <class T> struct Rotation {
  RealOf<T> c;
  T s;
};

// [c s; -s' c] with [c s; -s' c] [f; g] = [r; 0]; the identity where g = 0.
template <class T> INLINE Rotation<T> rotation(T f, T g, T& r) {
  if (is_zero(g)) {
    r = f;
    return {RealOf<T>(1), make<T>(0)};
  }
  const RealOf<T> f_size = modulus(f), h = hypot(f_size, modulus(g));
  const T phase = f_size == 0 ? make<T>(1) : make<T>(real(f) / f_size, imag(f) / f_size);
  r = scale(phase, h);
  const T g_part = make<T>(real(g) / h, -imag(g) / h);
  return {f_size / h, phase * g_part};
}

template <class T> INLINE void rotate(const Rotation<T>& q, T& x, T& v) {
  const T below = v;
  v = scale(below, q.c) - conj(q.s) * x;
  x = scale(x, q.c) + q.s * below;
}

template <class T>
INLINE void update(T* __restrict__ r, T* __restrict__ w, long long batch, int n, Rotation<T>* shared) {
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* rb = r + b * n * n;
    T* wb = w + b * n;
    for (int k0 = 0; k0 < n; k0 += PANEL) {
      const int rows = min(PANEL, n - k0);
      if (threadIdx.x < LANES) {
        const int lane = threadIdx.x, j = k0 + lane;
        // The first panel finds w as it was given, the others as the row w^H that it has become.
        T v = lane >= rows ? make<T>(0) : k0 == 0 ? conj(wb[j]) : wb[j];
        for (int k = 0; k < rows; k++) {
          T x = lane >= k && lane < rows ? rb[(size_t)(k0 + k) * n + j] : make<T>(0);
          const T f = Traits<T>::shuffle(x, k), g = Traits<T>::shuffle(v, k);
          T diagonal;
          const Rotation<T> q = rotation(f, g, diagonal);
          if (lane > k) rotate(q, x, v);
          if (lane == k) {
            x = diagonal;
            v = make<T>(0);
            shared[k] = q;
          }
          if (lane >= k && lane < rows) rb[(size_t)(k0 + k) * n + j] = x;
        }
        if (lane < rows) wb[j] = make<T>(0);
      }
      __syncthreads();
      for (int j = k0 + PANEL + threadIdx.x; j < n; j += blockDim.x) {
        T v = k0 == 0 ? conj(wb[j]) : wb[j];
        T* x = rb + (size_t)k0 * n + j;
        for (int k = 0; k < rows; k++, x += n) {
          T here = *x;
          rotate(shared[k], here, v);
          *x = here;
        }
        wb[j] = v;
      }
      __syncthreads();
    }
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                        \
  extern "C" __global__ void __launch_bounds__(512)                                                \
      cholesky_update_##suffix(T* __restrict__ r, T* __restrict__ w, long long batch, int n) {     \
    __shared__ unsigned char rotations[PANEL * sizeof(Rotation<T>)] __attribute__((aligned(16)));  \
    update<T>(r, w, batch, n, reinterpret_cast<Rotation<T>*>(rotations));                          \
  }                                                                                                \
  KERNEL(cholesky_update_##suffix);
FOR_SCALARS(INSTANCE)
