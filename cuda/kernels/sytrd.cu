// A = Q T Q^H of batches of small Hermitian column-major matrices, T tridiagonal, in place, as xSYTRD and xHETRD:
// Householder reflectors of the columns from the first one on for the lower triangle, from the last one on for
// the upper one. A block per matrix, which lies in shared memory all the while. Only the triangle is read and
// written.
//
// Shared memory: n' n elements, n' = n | 1, then n.
#include "reflectors.cuh"

namespace {
constexpr int THREADS = 512;

// Of n columns the one in k's place: the last first where the upper triangle is given. What has both indices
// turned is the lower triangle of another Hermitian matrix, of which all is alike.
INLINE int turned(int k, int n, int lower) { return lower ? k : n - 1 - k; }

template <class T>
INLINE void sytrd(T* a, RealOf<T>* d, RealOf<T>* e, T* tau, int32_t* info, long long batch, int n,
                  int lower, T* s) {
  using R = RealOf<T>;
  const int ld = n | 1, lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  T* const product = s + ld * n;
  __shared__ T shared_tau;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* const ab = a + b * n * n;
    for (int at = threadIdx.x; at < n * n; at += blockDim.x) {
      const int i = at % n, j = at / n;
      if (i < j) continue;
      const T x = ab[turned(i, n, lower) + turned(j, n, lower) * n];
      s[i + j * ld] = i == j ? make<T>(real(x)) : x;
      s[j + i * ld] = i == j ? make<T>(real(x)) : conj(x);
    }
    __syncthreads();
    for (int k = 0; k < n - 1; k++) {
      T* const v = s + k * ld;
      if (warp == 0) {
        T own;
        reflector(v, k + 1, n, own);
        __syncwarp();
        if (lane == 0) {
          shared_tau = own;
          d[b * n + turned(k, n, lower)] = real(v[k]);
          e[b * (n - 1) + turned(k, n - 1, lower)] = real(v[k + 1]);
          tau[b * (n - 1) + turned(k, n - 1, lower)] = own;
        }
      }
      __syncthreads();
      const T t = shared_tau;
      // tau A v, of which v's part is taken so that A - v w^H - w v^H is H^H A H.
      for (int j = k + 1 + warp; j < n; j += warps) {
        T sum = make<T>(0);
        for (int i = k + 1 + lane; i < n; i += LANES) {
          const T x = conj(s[i + j * ld]);
          sum = sum + (i == k + 1 ? x : x * v[i]);
        }
        sum = warp_sum(sum);
        if (lane == 0) product[j] = t * sum;
      }
      __syncthreads();
      T along = make<T>(0);
      for (int i = k + 1 + lane; i < n; i += LANES)
        along = along + (i == k + 1 ? conj(product[i]) : conj(product[i]) * v[i]);
      const T part = scale(t * warp_sum(along), R(-0.5));
      for (int j = k + 1 + warp; j < n; j += warps) {
        const T vj = j == k + 1 ? make<T>(1) : v[j], wj = product[j] + part * vj;
        for (int i = k + 1 + lane; i < n; i += LANES) {
          const T vi = i == k + 1 ? make<T>(1) : v[i], wi = product[i] + part * vi;
          s[i + j * ld] = s[i + j * ld] - vi * conj(wj) - wi * conj(vj);
        }
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      d[b * n + turned(n - 1, n, lower)] = real(s[n - 1 + (n - 1) * ld]);
      info[b] = 0;
    }
    for (int at = threadIdx.x; at < n * n; at += blockDim.x) {
      const int i = at % n, j = at / n;
      if (i < j) continue;
      const T x = s[i + j * ld];
      ab[turned(i, n, lower) + turned(j, n, lower) * n] = i == j ? make<T>(real(x)) : x;
    }
    __syncthreads();
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                             \
  extern "C" __global__ void __launch_bounds__(THREADS, 1)                                              \
      sytrd_##suffix(T* a, RealOf<T>* d, RealOf<T>* e, T* tau, int32_t* info, long long batch, int n,   \
                     int lower) {                                                                       \
    SHARED_MEMORY(raw);                                                                                 \
    sytrd<T>(a, d, e, tau, info, batch, n, lower, reinterpret_cast<T*>(raw));                           \
  }                                                                                                     \
  KERNEL(sytrd_##suffix);
FOR_SCALARS(INSTANCE)
