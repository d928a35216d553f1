// LU and Cholesky factors of a column-major matrix in shared memory, by all threads of a block, in panels of
// columns: each step reaches the panel alone, then the rest is updated. Columns are ld apart, an odd number,
// so that neither rows nor columns collide in a bank.
#pragma once
#include "scalar.cuh"

namespace {
// Columns that are factored before the rest is touched.
constexpr int PANEL = 8;

// The row of the first entry of largest |re| + |im| in x[0..m), by one warp, which has read all when it is
// known; a NaN is no larger than anything, but is kept where it comes first, as LAPACK does.
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
  // A shuffle orders no memory.
  __syncwarp();
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

// A = P L U with partial pivoting, in place. swapped(k, row) hears of each step, in thread 0. Returns the
// first k + 1 with U(k, k) = 0, or 0, to the first warp. Meets before it reads, and at its end.
template <class T, class F> INLINE int lu_by_panels(T* s, int ld, int m, int n, F swapped) {
  __shared__ int pivots[PANEL];
  const int k_end = min(m, n), lane = threadIdx.x % LANES;
  const int warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  int first_zero = 0;
  __syncthreads();
  for (int first = 0; first < k_end; first += PANEL) {
    const int end = min(first + PANEL, k_end);
    for (int k = first; k < end; k++) {
      T* column = s + k * ld;
      // The first warp finds the pivot, and finishes the column.
      if (warp == 0) {
        const int row = k + pivot_row(column + k, m - k);
        if (lane == 0) {
          pivots[k - first] = row;
          swapped(k, row);
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
  return first_zero;
}

// A = L L^H, of which the lower triangle is read and becomes L. Until a panel is done its column k is
// L(:, k) L(k, k). Returns the order of the first minor that is not positive definite, NaN included, or 0;
// what is left then is anything. Meets before it reads, and at its end.
template <class T> INLINE int cholesky_by_panels(T* s, int ld, int n) {
  using R = RealOf<T>;
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  int failed = 0;
  __syncthreads();
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
  __syncthreads();
  return failed;
}

// L y = y by one warp, where L(i, k) is element(i, k), and one on the diagonal if `unit`.
template <class T, class F> INLINE void solve_lower(T* y, int n, bool unit, F element) {
  const int lane = threadIdx.x % LANES;
  for (int k = 0; k < n; k++) {
    if (!unit && lane == 0) y[k] = divide(y[k], element(k, k));
    __syncwarp();
    const T x = y[k];
    for (int i = k + 1 + lane; i < n; i += LANES) y[i] = y[i] - element(i, k) * x;
    __syncwarp();
  }
}
// U y = y.
template <class T, class F> INLINE void solve_upper(T* y, int n, bool unit, F element) {
  const int lane = threadIdx.x % LANES;
  for (int k = n - 1; k >= 0; k--) {
    if (!unit && lane == 0) y[k] = divide(y[k], element(k, k));
    __syncwarp();
    const T x = y[k];
    for (int i = lane; i < k; i += LANES) y[i] = y[i] - element(i, k) * x;
    __syncwarp();
  }
}
}  // namespace
