// Factorisations of batches of small column-major matrices: LU, Cholesky, QR. A block per matrix, which
// lies in shared memory all the while; in place; ragged sizes.
//
//   getrf: A = P L U with partial pivoting, as xGETRF: pivots from 1; info the first zero pivot
//   potrf: A = L L^H or U^H U, as xPOTRF: one triangle is read and written; info the first bad minor
//   geqrf: A = H_1 ... H_k R, as xGEQRF: v below the diagonal, tau
//
// Shared memory: m' n elements, m' = m | 1, so that neither rows nor columns collide in a bank.
#include "panels.cuh"

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

// The 2-norm of x[0..m) by one warp, scaled so that squares neither overflow nor vanish.
template <class T> INLINE RealOf<T> warp_norm(const T* x, int m) {
  using R = RealOf<T>;
  const int lane = threadIdx.x % LANES;
  R largest = 0;
  bool odd = false;
  for (int i = lane; i < m; i += LANES) {
    const R here = fmax(fabs(real(x[i])), fabs(imag(x[i])));
    odd = odd || here != here || real(x[i]) != real(x[i]) || imag(x[i]) != imag(x[i]);
    largest = fmax(largest, here);
  }
  for (int flip = LANES / 2; flip > 0; flip /= 2)
    largest = fmax(largest, __shfl_xor_sync(ALL_LANES, largest, flip));
  if (__any_sync(ALL_LANES, odd)) return largest + R(NAN);
  if (largest == 0 || largest > Machine<R>::LARGEST) return largest;
  R sum = 0;
  for (int i = lane; i < m; i += LANES)
    sum += square(make<T>(real(x[i]) / largest, imag(x[i]) / largest));
  return largest * sqrt(warp_sum(sum));
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

template <class T> INLINE void geqrf(T* a, T* tau, long long batch, int m, int n, T* s) {
  const int ld = m | 1, k_end = min(m, n), lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  __shared__ unsigned char raw[sizeof(T)] __attribute__((aligned(16)));
  T* const shared_tau = reinterpret_cast<T*>(raw);
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* ab = a + b * m * n;
    load(s, ld, ab, m, n);
    __syncthreads();
    for (int k = 0; k < k_end; k++) {
      T* v = s + k * ld;
      if (warp == 0) {
        T own;
        reflector(v, k, m, own);
        if (lane == 0) {
          *shared_tau = own;
          tau[b * k_end + k] = own;
        }
      }
      __syncthreads();
      const T factor = conj(*shared_tau);
      for (int j = k + 1 + warp; j < n; j += warps) {
        T* c = s + j * ld;
        T sum = make<T>(0);
        for (int i = k + lane; i < m; i += LANES) sum = sum + (i == k ? c[i] : conj(v[i]) * c[i]);
        const T w = factor * warp_sum(sum);
        for (int i = k + lane; i < m; i += LANES) c[i] = c[i] - (i == k ? w : v[i] * w);
      }
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
