// Factorisations of batches of small column-major matrices: LU, Cholesky, QR. A block per matrix, which
// lies in shared memory all the while; in place; ragged sizes.
//
//   getrf: A = P L U with partial pivoting, as xGETRF: pivots from 1; info the first zero pivot
//   potrf: A = L L^H or U^H U, as xPOTRF: one triangle is read and written; info the first bad minor
//   geqrf: A = H_1 ... H_k R, as xGEQRF: v below the diagonal, tau
//
// Shared memory: m' n elements, m' = m | 1, so that neither rows nor columns collide in a bank.
#include "panels.cuh"
#include "reflectors.cuh"

namespace {
constexpr int THREADS = 512;

template <class T> INLINE void load(T* s, int ld, const T* a, int m, int n) {
  for (int e = threadIdx.x; e < m * n; e += blockDim.x) s[e % m + e / m * ld] = a[e];
}
template <class T> INLINE void store(T* a, const T* s, int ld, int m, int n) {
  __syncthreads();
  for (int e = threadIdx.x; e < m * n; e += blockDim.x) a[e] = s[e % m + e / m * ld];
  __syncthreads();
}

template <class T>
INLINE void getrf(T* a, int32_t* ipiv, int32_t* info, long long batch, int m, int n, T* s) {
  const int ld = m | 1, k_end = min(m, n);
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* ab = a + b * m * n;
    load(s, ld, ab, m, n);
    const int first_zero =
        lu_by_panels(s, ld, m, n, [=](int k, int row) { ipiv[b * k_end + k] = row + 1; });
    if (threadIdx.x == 0) info[b] = first_zero;
    store(ab, s, ld, m, n);
  }
}

// The lower triangle of A, or of A^H where the upper one is given, is factored.
template <class T>
INLINE void potrf(T* a, int32_t* info, long long batch, int n, int lower, T* s) {
  const int ld = n | 1;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* ab = a + b * n * n;
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
      const int i = e % n, j = e / n;
      if (lower ? i >= j : i <= j) {
        if (lower) s[i + j * ld] = ab[e];
        else s[j + i * ld] = conj(ab[e]);
      }
    }
    const int failed = cholesky_by_panels(s, ld, n);
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
      const int i = e % n, j = e / n;
      if (lower && i >= j) ab[e] = s[i + j * ld];
      if (!lower && i <= j) ab[e] = conj(s[j + i * ld]);
    }
    if (threadIdx.x == 0) info[b] = failed;
    __syncthreads();
  }
}

template <class T> INLINE void geqrf(T* a, T* tau, long long batch, int m, int n, T* s) {
  const int ld = m | 1, k_end = min(m, n);
  const int warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  __shared__ unsigned char raw[sizeof(T)] __attribute__((aligned(16)));
  T* const shared_tau = reinterpret_cast<T*>(raw);
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* ab = a + b * m * n;
    load(s, ld, ab, m, n);
    __syncthreads();
    for (int k = 0; k < k_end; k++) {
      if (warp == 0) {
        T own;
        reflector(s + k * ld, k, m, own);
        if (threadIdx.x == 0) {
          *shared_tau = own;
          tau[b * k_end + k] = own;
        }
      }
      __syncthreads();
      reflect(s, ld, k, m, conj(*shared_tau), k + 1, n, warp, warps);
      __syncthreads();
    }
    store(ab, s, ld, m, n);
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                      \
  extern "C" __global__ void __launch_bounds__(THREADS)                                          \
      getrf_##suffix(T* a, int32_t* ipiv, int32_t* info, long long batch, int m, int n) {        \
    SHARED_MEMORY(raw);                                                                          \
    getrf<T>(a, ipiv, info, batch, m, n, reinterpret_cast<T*>(raw));                             \
  }                                                                                              \
  KERNEL(getrf_##suffix);                                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS)                                          \
      potrf_##suffix(T* a, int32_t* info, long long batch, int n, int lower) {                   \
    SHARED_MEMORY(raw);                                                                          \
    potrf<T>(a, info, batch, n, lower, reinterpret_cast<T*>(raw));                               \
  }                                                                                              \
  KERNEL(potrf_##suffix);                                                                        \
  extern "C" __global__ void __launch_bounds__(THREADS)                                          \
      geqrf_##suffix(T* a, T* tau, long long batch, int m, int n) {                              \
    SHARED_MEMORY(raw);                                                                          \
    geqrf<T>(a, tau, batch, m, n, reinterpret_cast<T*>(raw));                                    \
  }                                                                                              \
  KERNEL(geqrf_##suffix);
FOR_SCALARS(INSTANCE)
