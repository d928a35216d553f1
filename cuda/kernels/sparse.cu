// Sparse matrices: products with dense vectors and matrices, and to and from dense matrices.
//
// A has nnz entries. In compressed rows (CSR) row i has those at indptr[i], ..., indptr[i + 1] - 1, in
// the columns `indices`; as a list (COO) each entry has its row and column, in any order. Dense
// matrices are row-major. Entries that repeat add; those outside of A, or of the entries there are,
// count for nothing: whatever the integers are, nothing else is read or written.
//
// Kernels that add into their result want it to be zero. The order in which they add is not fixed.
#include "scalar.cuh"

namespace {
INLINE long long thread_of_grid() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
INLINE long long threads_of_grid() { return (long long)gridDim.x * blockDim.x; }

template <class R> INLINE void add_to(R* place, R value) { atomicAdd(place, value); }
template <class R> INLINE void add_to(Complex<R>* place, Complex<R> value) {
  atomicAdd(&place->re, value.re);
  atomicAdd(&place->im, value.im);
}

INLINE bool inside(int index, int size) { return index >= 0 && index < size; }

// The entries of a row: first, ..., last - 1.
struct Range {
  long long first, last;
};
INLINE Range entries_of_row(const int32_t* __restrict__ indptr, long long row, int nnz) {
  return {max(indptr[row], 0), min(indptr[row + 1], nnz)};
}

// y = A x. `group` lanes, a power of two up to 32, share a row; a sum has the same order each time.
template <class T>
INLINE void csr_vector(const T* __restrict__ data, const int32_t* __restrict__ indices,
                       const int32_t* __restrict__ indptr, const T* __restrict__ x, T* y, int rows,
                       int columns, int nnz, int group) {
  const int lane = threadIdx.x % LANES, at_once = LANES / group;
  const long long warp = thread_of_grid() / LANES, warps = threads_of_grid() / LANES;
  for (long long base = warp * at_once; base < rows; base += warps * at_once) {
    const long long row = base + lane / group;
    T sum = make<T>(0);
    if (row < rows) {
      const Range range = entries_of_row(indptr, row, nnz);
      for (long long e = range.first + lane % group; e < range.last; e += group)
        if (inside(indices[e], columns)) sum = sum + data[e] * x[indices[e]];
    }
    for (int mask = group / 2; mask > 0; mask /= 2) sum = sum + Traits<T>::shuffle_xor(sum, mask);
    if (row < rows && lane % group == 0) y[row] = sum;
  }
}

// Y = A X, X with n columns: a thread per element of Y, so that neighbours read a row of X.
template <class T>
INLINE void csr_matrix(const T* __restrict__ data, const int32_t* __restrict__ indices,
                       const int32_t* __restrict__ indptr, const T* __restrict__ x, T* y, int rows,
                       int columns, int n, int nnz) {
  const long long count = (long long)rows * n;
  for (long long i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const Range range = entries_of_row(indptr, i / n, nnz);
    T sum = make<T>(0);
    for (long long e = range.first; e < range.last; e++)
      if (inside(indices[e], columns)) sum = sum + data[e] * x[(long long)indices[e] * n + i % n];
    y[i] = sum;
  }
}

// Adds the transpose of A times X to Y, X with n columns: a warp per row of A.
template <class T>
INLINE void csr_transposed(const T* __restrict__ data, const int32_t* __restrict__ indices,
                           const int32_t* __restrict__ indptr, const T* __restrict__ x, T* y,
                           int rows, int columns, int n, int nnz) {
  const long long warp = thread_of_grid() / LANES, warps = threads_of_grid() / LANES;
  for (long long row = warp; row < rows; row += warps) {
    const Range range = entries_of_row(indptr, row, nnz);
    const long long count = (range.last - range.first) * n;
    for (long long t = threadIdx.x % LANES; t < count; t += LANES) {
      const long long e = range.first + t / n;
      if (inside(indices[e], columns))
        add_to(&y[(long long)indices[e] * n + t % n], data[e] * x[row * n + t % n]);
    }
  }
}

// Adds A x to y, A a list: entry e is in row to[e], column from[e]. A warp takes 32 entries; what
// neighbours add to the same row is summed first.
template <class T>
INLINE void coo_vector(const T* __restrict__ data, const int32_t* __restrict__ to,
                       const int32_t* __restrict__ from, const T* __restrict__ x, T* y, int rows,
                       int columns, int nnz) {
  const int lane = threadIdx.x % LANES;
  const long long warp = thread_of_grid() / LANES, warps = threads_of_grid() / LANES;
  for (long long base = warp * LANES; base < nnz; base += warps * LANES) {
    const long long e = base + lane;
    int row = -1;
    T sum = make<T>(0);
    if (e < nnz && inside(to[e], rows) && inside(from[e], columns)) {
      row = to[e];
      sum = data[e] * x[from[e]];
    }
    const int before = __shfl_sync(ALL_LANES, row, lane == 0 ? 0 : lane - 1);
    const bool first = lane == 0 || before != row;
    const unsigned later = __ballot_sync(ALL_LANES, first) & ~((2u << lane) - 1);
    const int last = later ? __ffs((int)later) - 2 : LANES - 1;
    for (int step = 1; step < LANES; step *= 2) {
      const T next = Traits<T>::shuffle(sum, (lane + step) % LANES);
      if (lane + step <= last) sum = sum + next;
    }
    if (first && row >= 0) add_to(&y[row], sum);
  }
}

// Adds A X to Y, X with n columns: a thread takes one column and 32 entries.
template <class T>
INLINE void coo_matrix(const T* __restrict__ data, const int32_t* __restrict__ to,
                       const int32_t* __restrict__ from, const T* __restrict__ x, T* y, int rows,
                       int columns, int n, int nnz) {
  const long long count = ((long long)nnz + LANES - 1) / LANES * n;
  for (long long i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const long long first = i / n * LANES, last = min(first + LANES, (long long)nnz);
    int row = -1;
    T sum = make<T>(0);
    for (long long e = first; e < last; e++) {
      if (!inside(to[e], rows) || !inside(from[e], columns)) continue;
      if (to[e] != row) {
        if (row >= 0) add_to(&y[(long long)row * n + i % n], sum);
        row = to[e];
        sum = make<T>(0);
      }
      sum = sum + data[e] * x[(long long)from[e] * n + i % n];
    }
    if (row >= 0) add_to(&y[(long long)row * n + i % n], sum);
  }
}

// Adds A to a dense matrix: a warp per row.
template <class T>
INLINE void csr_dense(const T* __restrict__ data, const int32_t* __restrict__ indices,
                      const int32_t* __restrict__ indptr, T* dense, int rows, int columns, int nnz) {
  const long long warp = thread_of_grid() / LANES, warps = threads_of_grid() / LANES;
  for (long long row = warp; row < rows; row += warps) {
    const Range range = entries_of_row(indptr, row, nnz);
    for (long long e = range.first + threadIdx.x % LANES; e < range.last; e += LANES)
      if (inside(indices[e], columns)) add_to(&dense[row * columns + indices[e]], data[e]);
  }
}

// Adds A, a list, to a dense matrix: a thread per entry.
template <class T>
INLINE void coo_dense(const T* __restrict__ data, const int32_t* __restrict__ row,
                      const int32_t* __restrict__ column, T* dense, int rows, int columns, int nnz) {
  for (long long e = thread_of_grid(); e < nnz; e += threads_of_grid())
    if (inside(row[e], rows) && inside(column[e], columns))
      add_to(&dense[(long long)row[e] * columns + column[e]], data[e]);
}

// ends[i + 1] = the number of elements of row i that are not zero; NaN is none of those that are.
template <class T>
INLINE void count_entries(const T* __restrict__ dense, int32_t* ends, int rows, int columns) {
  const int lane = threadIdx.x % LANES;
  const long long warp = thread_of_grid() / LANES, warps = threads_of_grid() / LANES;
  for (long long row = warp; row < rows; row += warps) {
    int count = 0;
    for (int j = lane; j < columns; j += LANES) count += !is_zero(dense[row * columns + j]);
    count = warp_sum(count);
    if (lane == 0) ends[row + 1] = count;
  }
}

// The elements that are not zero, by rows, from the offsets that add_up makes; the nnz-th is the last.
// Places that are left get zeros in row 0 and column 0. `row` may be null.
template <class T>
INLINE void take_entries(const T* __restrict__ dense, const int32_t* __restrict__ offsets, T* data,
                         int32_t* row, int32_t* column, int rows, int columns, int nnz) {
  const int lane = threadIdx.x % LANES;
  const long long warp = thread_of_grid() / LANES, warps = threads_of_grid() / LANES;
  for (long long i = warp; i < rows; i += warps) {
    long long at = offsets[i];
    for (int base = 0; base < columns && at < nnz; base += LANES) {
      const int j = base + lane;
      const T value = j < columns ? dense[i * columns + j] : make<T>(0);
      const unsigned found = __ballot_sync(ALL_LANES, !is_zero(value));
      const long long place = at + __popc(found & ((1u << lane) - 1));
      if (!is_zero(value) && place < nnz) {
        data[place] = value;
        column[place] = j;
        if (row) row[place] = (int32_t)i;
      }
      at += __popc(found);
    }
  }
  for (long long e = offsets[rows] + thread_of_grid(); e < nnz; e += threads_of_grid()) {
    data[e] = make<T>(0);
    column[e] = 0;
    if (row) row[e] = 0;
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                           \
  extern "C" __global__ void __launch_bounds__(256) csr_vector_##suffix(                              \
      const T* __restrict__ data, const int32_t* __restrict__ indices,                                \
      const int32_t* __restrict__ indptr, const T* __restrict__ x, T* y, int rows, int columns,       \
      int nnz, int group) {                                                                           \
    csr_vector(data, indices, indptr, x, y, rows, columns, nnz, group);                               \
  }                                                                                                   \
  KERNEL(csr_vector_##suffix);                                                                        \
  extern "C" __global__ void __launch_bounds__(256) csr_matrix_##suffix(                              \
      const T* __restrict__ data, const int32_t* __restrict__ indices,                                \
      const int32_t* __restrict__ indptr, const T* __restrict__ x, T* y, int rows, int columns,       \
      int n, int nnz) {                                                                               \
    csr_matrix(data, indices, indptr, x, y, rows, columns, n, nnz);                                   \
  }                                                                                                   \
  KERNEL(csr_matrix_##suffix);                                                                        \
  extern "C" __global__ void __launch_bounds__(256) csr_transposed_##suffix(                          \
      const T* __restrict__ data, const int32_t* __restrict__ indices,                                \
      const int32_t* __restrict__ indptr, const T* __restrict__ x, T* y, int rows, int columns,       \
      int n, int nnz) {                                                                               \
    csr_transposed(data, indices, indptr, x, y, rows, columns, n, nnz);                               \
  }                                                                                                   \
  KERNEL(csr_transposed_##suffix);                                                                    \
  extern "C" __global__ void __launch_bounds__(256) coo_vector_##suffix(                              \
      const T* __restrict__ data, const int32_t* __restrict__ to, const int32_t* __restrict__ from,   \
      const T* __restrict__ x, T* y, int rows, int columns, int nnz) {                                \
    coo_vector(data, to, from, x, y, rows, columns, nnz);                                             \
  }                                                                                                   \
  KERNEL(coo_vector_##suffix);                                                                        \
  extern "C" __global__ void __launch_bounds__(256) coo_matrix_##suffix(                              \
      const T* __restrict__ data, const int32_t* __restrict__ to, const int32_t* __restrict__ from,   \
      const T* __restrict__ x, T* y, int rows, int columns, int n, int nnz) {                         \
    coo_matrix(data, to, from, x, y, rows, columns, n, nnz);                                          \
  }                                                                                                   \
  KERNEL(coo_matrix_##suffix);                                                                        \
  extern "C" __global__ void __launch_bounds__(256) csr_dense_##suffix(                               \
      const T* __restrict__ data, const int32_t* __restrict__ indices,                                \
      const int32_t* __restrict__ indptr, T* dense, int rows, int columns, int nnz) {                 \
    csr_dense(data, indices, indptr, dense, rows, columns, nnz);                                      \
  }                                                                                                   \
  KERNEL(csr_dense_##suffix);                                                                         \
  extern "C" __global__ void __launch_bounds__(256) coo_dense_##suffix(                               \
      const T* __restrict__ data, const int32_t* __restrict__ row,                                    \
      const int32_t* __restrict__ column, T* dense, int rows, int columns, int nnz) {                 \
    coo_dense(data, row, column, dense, rows, columns, nnz);                                          \
  }                                                                                                   \
  KERNEL(coo_dense_##suffix);                                                                         \
  extern "C" __global__ void __launch_bounds__(256) count_entries_##suffix(                           \
      const T* __restrict__ dense, int32_t* ends, int rows, int columns) {                            \
    count_entries(dense, ends, rows, columns);                                                        \
  }                                                                                                   \
  KERNEL(count_entries_##suffix);                                                                     \
  extern "C" __global__ void __launch_bounds__(256) take_entries_##suffix(                            \
      const T* __restrict__ dense, const int32_t* __restrict__ offsets, T* data, int32_t* row,        \
      int32_t* column, int rows, int columns, int nnz) {                                              \
    take_entries(dense, offsets, data, row, column, rows, columns, nnz);                              \
  }                                                                                                   \
  KERNEL(take_entries_##suffix);
FOR_SCALARS(INSTANCE)

// Counts in ends[1], ..., ends[rows] become offsets: ends[i] = the counts of the rows before i, nnz at
// most. One block, a piece of the rows for each thread; 8 bytes of shared memory each.
extern "C" __global__ void __launch_bounds__(1024) add_up(int32_t* ends, int rows, int nnz) {
  SHARED_MEMORY(raw);
  long long* sums = reinterpret_cast<long long*>(raw);
  const int own = threadIdx.x, threads = blockDim.x;
  const long long piece = ((long long)rows + threads - 1) / threads;
  const long long first = min(own * piece, (long long)rows) + 1;
  const long long last = min((own + 1) * piece, (long long)rows) + 1;
  long long sum = 0;
  for (long long i = first; i < last; i++) sum += ends[i];
  sums[own] = sum;
  __syncthreads();
  for (int step = 1; step < threads; step *= 2) {
    const long long before = own >= step ? sums[own - step] : 0;
    __syncthreads();
    sums[own] += before;
    __syncthreads();
  }
  sum = sums[own] - sum;
  for (long long i = first; i < last; i++) {
    sum += ends[i];
    ends[i] = (int32_t)min(sum, (long long)nnz);
  }
  if (own == 0) ends[0] = 0;
}
KERNEL(add_up);
