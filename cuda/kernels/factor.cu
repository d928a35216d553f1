// Factorisations of batches of small column-major matrices: LU, Cholesky, QR. A block per matrix, which
// lies in shared memory all the while; in place; ragged sizes.
//
//   getrf: A = P L U with partial pivoting, as xGETRF: pivots from 1; info the first zero pivot
//   potrf: A = L L^H or U^H U, as xPOTRF: one triangle is read and written; info the first bad minor
//   geqrf: A = H_1 ... H_k R, as xGEQRF: v below the diagonal, tau
//
// Shared memory: m' n elements, m' = m | 1, so that neither rows nor columns collide in a bank.
#include "scalar.cuh"

namespace {
constexpr int THREADS = 512;
// Columns that LU and Cholesky factor before the rest is touched.
constexpr int PANEL = 8;

template <class T> INLINE void load(T* s, int ld, const T* a, int m, int n) {
  for (int e = threadIdx.x; e < m * n; e += blockDim.x) s[e % m + e / m * ld] = a[e];
  __syncthreads();
}
template <class T> INLINE void store(T* a, const T* s, int ld, int m, int n) {
  __syncthreads();
  for (int e = threadIdx.x; e < m * n; e += blockDim.x) a[e] = s[e % m + e / m * ld];
  __syncthreads();
}

// The row of the first entry of largest |re| + |im| in x[0..m), by one warp; a NaN is no larger than
// anything, but is kept where it comes first, as LAPACK does.
template <class T> INLINE int pivot_row(const T* x, int m) {
  using R = RealOf<T>;
  const int lane = threadIdx.x % LANES;
  int row = lane < m ? lane : 0;
  R size = lane < m ? abs1(x[lane]) : R(-1);
  for (int i = lane + LANES; i < m; i += LANES) {
    const R here = abs1(x[i]);
    if (here > size) {
      size = here;
      row = i;
    }
  }
  for (int flip = LANES / 2; flip > 0; flip /= 2) {
    const R other = __shfl_xor_sync(ALL_LANES, size, flip);
    const int other_row = __shfl_xor_sync(ALL_LANES, row, flip);
    if (other > size || (other == size && other_row < row)) {
      size = other;
      row = other_row;
    }
  }
  return __shfl_sync(ALL_LANES, row, 0);
}

// C -= L U in columns from `first` + PANEL on: L is the panel that starts with column `first`, U(q, j) is
// factor(q, j). Rows below the panel's, or for a triangle from the diagonal on.
template <bool TRIANGLE, class T, class F>
INLINE void update(T* s, int ld, int first, int m, int n, F factor) {
  // Columns that share what is read of L, as registers allow.
  constexpr int TOGETHER = sizeof(T) == 4 ? 4 : sizeof(T) == 8 ? 2 : 1;
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  for (int j = first + PANEL + warp * TOGETHER; j < n; j += warps * TOGETHER) {
    T by[TOGETHER][PANEL];
#pragma unroll
    for (int c = 0; c < TOGETHER; c++)
#pragma unroll
      for (int q = 0; q < PANEL; q++) by[c][q] = j + c < n ? factor(q, j + c) : make<T>(0);
    for (int i = (TRIANGLE ? j : first + PANEL) + lane; i < m; i += LANES) {
      T sum[TOGETHER];
#pragma unroll
      for (int c = 0; c < TOGETHER; c++) sum[c] = make<T>(0);
#pragma unroll
      for (int q = 0; q < PANEL; q++) {
        const T l = s[i + (first + q) * ld];
#pragma unroll
        for (int c = 0; c < TOGETHER; c++) sum[c] = sum[c] + l * by[c][q];
      }
#pragma unroll
      for (int c = 0; c < TOGETHER; c++)
        if (j + c < n) s[i + (j + c) * ld] = s[i + (j + c) * ld] - sum[c];
    }
  }
}

template <class T> INLINE void swap(T* c, int i, int j) {
  const T kept = c[i];
  c[i] = c[j];
  c[j] = kept;
}

// Panels of columns, in which each step reaches the panel alone; then row swaps, rows of U and the rest.
template <class T>
INLINE void getrf(T* a, int32_t* ipiv, int32_t* info, long long batch, int m, int n, T* s) {
  __shared__ int pivots[PANEL];
  const int ld = m | 1, k_end = min(m, n), lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* ab = a + b * m * n;
    load(s, ld, ab, m, n);
    int first_zero = 0;
    for (int first = 0; first < k_end; first += PANEL) {
      const int end = min(first + PANEL, k_end);
      for (int k = first; k < end; k++) {
        T* column = s + k * ld;
        // The first warp finds the pivot, and finishes the column.
        if (warp == 0) {
          const int row = k + pivot_row(column + k, m - k);
          if (lane == 0) {
            pivots[k - first] = row;
            ipiv[b * k_end + k] = row + 1;
            swap(column, k, row);
          }
          __syncwarp();
          const T top = column[k];
          if (!is_zero(top))
            for (int i = k + 1 + lane; i < m; i += LANES) column[i] = divide(column[i], top);
          else if (first_zero == 0) first_zero = k + 1;
        }
        __syncthreads();
        for (int j = first + warp; j < end; j += warps) {
          if (j == k) continue;
          T* c = s + j * ld;
          if (lane == 0) swap(c, k, pivots[k - first]);
          __syncwarp();
          const T top = c[k];
          for (int i = k + 1 + lane; j > k && i < m; i += LANES) c[i] = c[i] - column[i] * top;
        }
        __syncthreads();
      }
      for (int j = threadIdx.x; j < n; j += blockDim.x) {
        if (j >= first && j < end) continue;
        T* c = s + j * ld;
        for (int k = first; k < end; k++) swap(c, k, pivots[k - first]);
        for (int k = first + 1; j >= end && k < end; k++)
          for (int q = first; q < k; q++) c[k] = c[k] - s[k + q * ld] * c[q];
      }
      __syncthreads();
      if (end < m) update<false>(s, ld, first, m, n, [=](int q, int j) { return s[first + q + j * ld]; });
      __syncthreads();
    }
    if (threadIdx.x == 0) info[b] = first_zero;
    store(ab, s, ld, m, n);
  }
}

// The lower triangle of A, or of A^H where the upper one is given, is factored as L L^H, in panels. Until
// a panel is done its column k is L(:, k) L(k, k).
template <class T>
INLINE void potrf(T* a, int32_t* info, long long batch, int n, int lower, T* s) {
  using R = RealOf<T>;
  const int ld = n | 1, lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* ab = a + b * n * n;
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
      const int i = e % n, j = e / n;
      if (lower ? i >= j : i <= j) {
        if (lower) s[i + j * ld] = ab[e];
        else s[j + i * ld] = conj(ab[e]);
      }
    }
    __syncthreads();
    int failed = 0;
    for (int first = 0; first < n; first += PANEL) {
      const int end = min(first + PANEL, n);
      for (int k = first; k < end; k++) {
        const T* column = s + k * ld;
        const R d = real(column[k]);
        // False for NaN, too.
        if (!(d > R(0))) {
          failed = k + 1;
          break;
        }
        for (int j = k + 1 + warp; j < end; j += warps) {
          T* c = s + j * ld;
          const T multiple = make<T>(real(column[j]) / d, -imag(column[j]) / d);
          for (int i = j + lane; i < n; i += LANES) c[i] = c[i] - column[i] * multiple;
        }
        __syncthreads();
      }
      if (failed) break;
      for (int k = first + warp; k < end; k += warps) {
        T* c = s + k * ld;
        const R root = sqrt(real(c[k]));
        __syncwarp();
        for (int i = k + lane; i < n; i += LANES)
          c[i] = i == k ? make<T>(root) : make<T>(real(c[i]) / root, imag(c[i]) / root);
      }
      __syncthreads();
      if (end < n)
        update<true>(s, ld, first, n, n, [=](int q, int j) { return conj(s[j + (first + q) * ld]); });
      __syncthreads();
    }
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
