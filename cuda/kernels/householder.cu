// Q = H_1 ... H_t from its reflectors, and products with it, for batches of small column-major matrices.
//
// H_i = I - tau_i v v^H, v zero above row i, one in it, stored below it in column i (as xGEQRF leaves
// it). A block per matrix: the t columns of V lie in shared memory (order x t elements); each warp has a
// column of the result in registers, order <= 256, and applies all reflectors to it without meeting
// others. H_i acts on rows from i on alone.
//
//   orgqr: the first n columns of Q, in the memory of the reflectors
//   ormqr: Q C, Q^H C, C Q or C Q^H, in C's memory; from the right as the adjoint: C Q = (Q^H C^H)^H
#include "scalar.cuh"

namespace {
constexpr int THREADS = 512;

template <class T> INLINE void load(T* s, const T* a, int count) {
  for (int e = threadIdx.x; e < count; e += blockDim.x) s[e] = a[e];
  __syncthreads();
}

// x = H_first ... x: the reflectors from `first` by `step`, `count` of them; their adjoints if `adjoint`.
// Lane l has rows l, l + 32, ... of x.
template <class T, int E>
INLINE void apply(T (&x)[E], const T* v, const T* tau, int order, int first, int step, int count,
                  bool adjoint) {
  const int lane = threadIdx.x % LANES;
  for (int turn = 0, i = first; turn < count; turn++, i += step) {
    const T* column = v + (size_t)i * order;
    T own[E], sum = make<T>(0);
    for (int e = 0; e < E; e++) {
      const int row = lane + LANES * e;
      own[e] = row > i && row < order ? column[row] : make<T>(row == i ? 1 : 0);
      sum = sum + conj(own[e]) * x[e];
    }
    const T w = (adjoint ? conj(tau[i]) : tau[i]) * warp_sum(sum);
    for (int e = 0; e < E; e++) x[e] = x[e] - own[e] * w;
  }
}

template <class T, int E>
INLINE void orgqr(T* a, const T* tau, long long batch, int m, int n, int t, T* s) {
  const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* ab = a + b * m * n;
    load(s, ab, m * t);
    for (int j = threadIdx.x / LANES; j < n; j += warps) {
      T x[E];
      for (int e = 0; e < E; e++) x[e] = make<T>(lane + LANES * e == j ? 1 : 0);
      // Those after the j-th leave a unit vector alone.
      const int last = min(j, t - 1);
      apply<T, E>(x, s, tau + b * t, m, last, -1, last + 1, false);
      for (int e = 0; e < E; e++)
        if (lane + LANES * e < m) ab[(size_t)j * m + lane + LANES * e] = x[e];
    }
    __syncthreads();
  }
}

template <class T, int E>
INLINE void ormqr(const T* a, const T* tau, T* c, long long batch, int m, int n, int p, int t, int left,
                  int adjoint, T* s) {
  const int lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
  const int order = left ? m : n, count = left ? n : m;
  // A column of C, or the adjoint of a row: its elements are `stride` apart.
  const size_t stride = left ? 1 : m, next = left ? m : 1;
  // Q^H x applies adjoints from the first reflector on, Q x from the last one back.
  const bool forward = left ? adjoint : !adjoint;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    load(s, a + b * order * p, order * t);
    for (int j = threadIdx.x / LANES; j < count; j += warps) {
      T* at = c + b * m * n + j * next;
      T x[E];
      for (int e = 0; e < E; e++) {
        const int row = lane + LANES * e;
        const T here = row < order ? at[row * stride] : make<T>(0);
        x[e] = left ? here : conj(here);
      }
      apply<T, E>(x, s, tau + b * t, order, forward ? 0 : t - 1, forward ? 1 : -1, t, forward);
      for (int e = 0; e < E; e++) {
        const int row = lane + LANES * e;
        if (row < order) at[row * stride] = left ? x[e] : conj(x[e]);
      }
    }
    __syncthreads();
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, 1)                                        \
      orgqr_##suffix(T* a, const T* tau, long long batch, int m, int n, int t) {                  \
    SHARED_MEMORY(raw);                                                                           \
    T* s = reinterpret_cast<T*>(raw);                                                             \
    if (m <= LANES) orgqr<T, 1>(a, tau, batch, m, n, t, s);                                       \
    else if (m <= 4 * LANES) orgqr<T, 4>(a, tau, batch, m, n, t, s);                              \
    else orgqr<T, 8>(a, tau, batch, m, n, t, s);                                                  \
  }                                                                                               \
  KERNEL(orgqr_##suffix);                                                                         \
  extern "C" __global__ void __launch_bounds__(THREADS, 1)                                        \
      ormqr_##suffix(const T* a, const T* tau, T* c, long long batch, int m, int n, int p, int t, \
                     int left, int adjoint) {                                                     \
    SHARED_MEMORY(raw);                                                                           \
    T* s = reinterpret_cast<T*>(raw);                                                             \
    if ((left ? m : n) <= LANES)                                                                  \
      ormqr<T, 1>(a, tau, c, batch, m, n, p, t, left, adjoint, s);                                \
    else if ((left ? m : n) <= 4 * LANES)                                                         \
      ormqr<T, 4>(a, tau, c, batch, m, n, p, t, left, adjoint, s);                                \
    else                                                                                          \
      ormqr<T, 8>(a, tau, c, batch, m, n, p, t, left, adjoint, s);                                \
  }                                                                                               \
  KERNEL(ormqr_##suffix);
FOR_SCALARS(INSTANCE)
