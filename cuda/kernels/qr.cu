// Batches of small row-major matrices: A = Q R by Householder reflectors, Q and R in one pass over memory.
//
// a: [m, n]; q: [m, c], or null where R alone is wanted; r: [c, n]; c is min(m, n) or m. A warp has a matrix
// (qr_warp), or a block (qr_block), in shared memory all the while: (m | 1) max(n, c) elements for its
// columns, of which Q's take the place of the reflectors, and min(m, n) for tau.
#include "reflectors.cuh"

namespace {
// Blocks of warps for which a processor shall have registers: so nvcc 13.0 spills none for sm_75 to sm_120. Unsaid
// it spills five words of f64 for sm_120, and of c128 if there shall be 7.
template <class T> constexpr int BLOCKS_OF_WARPS = sizeof(T) < 16 ? 8 : 6;

template <class T> struct QrCall {
  const T* a;
  T *q, *r;
  long long batch;
  int m, n, c;

  INLINE int count() const { return (m | 1) * max(n, c) + min(m, n); }
};

// The threads that have a matrix: a warp, or all of a block.
template <bool BLOCK> struct Team {
  static INLINE int size() { return BLOCK ? blockDim.x : LANES; }
  static INLINE int thread() { return BLOCK ? threadIdx.x : threadIdx.x % LANES; }
  static INLINE void meet() {
    if (BLOCK) __syncthreads();
    else __syncwarp();
  }
};

template <class T, bool BLOCK> INLINE void qr(const QrCall<T>& call, long long b, T* s) {
  using Threads = Team<BLOCK>;
  const int m = call.m, n = call.n, c = call.c, ld = m | 1, steps = min(m, n);
  const int thread = Threads::thread(), threads = Threads::size();
  const int warp = thread / LANES, warps = threads / LANES;
  T* tau = s + ld * max(n, c);
  for (int e = thread; e < m * n; e += threads) s[e / n + e % n * ld] = call.a[b * m * n + e];
  Threads::meet();
  for (int k = 0; k < steps; k++) {
    if (warp == 0) {
      T own;
      reflector(s + k * ld, k, m, own);
      if (thread == 0) tau[k] = own;
    }
    Threads::meet();
    reflect(s, ld, k, m, conj(tau[k]), k + 1, n, warp, warps);
    Threads::meet();
  }
  for (int e = thread; e < c * n; e += threads) {
    const int i = e / n, j = e % n;
    call.r[b * c * n + e] = i <= j ? s[i + j * ld] : make<T>(0);
  }
  Threads::meet();
  if (call.q == nullptr) return;
  // Q's columns beyond the reflectors start as the identity's; those before them are still to come.
  for (int e = thread; e < m * (c - steps); e += threads) {
    const int i = e % m, j = steps + e / m;
    s[i + j * ld] = make<T>(i == j);
  }
  Threads::meet();
  for (int k = steps - 1; k >= 0; k--) {
    reflect(s, ld, k, m, tau[k], k + 1, c, warp, warps);
    Threads::meet();
    T* column = s + k * ld;
    for (int i = thread; i < m; i += threads)
      column[i] = i < k ? make<T>(0) : i == k ? make<T>(1) - tau[k] : -(tau[k] * column[i]);
    Threads::meet();
  }
  for (int e = thread; e < m * c; e += threads) call.q[b * m * c + e] = s[e / c + e % c * ld];
  Threads::meet();
}
}  // namespace

#define INSTANCE(suffix, T)                                                                      \
  extern "C" __global__ void __launch_bounds__(128, BLOCKS_OF_WARPS<T>)                          \
      qr_warp_##suffix(const __grid_constant__ QrCall<T> call) {                                 \
    SHARED_MEMORY(raw);                                                                          \
    const int warps = blockDim.x / LANES, warp = threadIdx.x / LANES;                            \
    T* s = reinterpret_cast<T*>(raw) + warp * call.count();                                      \
    for (long long b = (long long)blockIdx.x * warps + warp; b < call.batch; b += gridDim.x * warps) \
      qr<T, false>(call, b, s);                                                                  \
  }                                                                                              \
  KERNEL(qr_warp_##suffix);                                                                      \
  extern "C" __global__ void __launch_bounds__(512, 1)                                           \
      qr_block_##suffix(const __grid_constant__ QrCall<T> call) {                                \
    SHARED_MEMORY(raw);                                                                          \
    for (long long b = blockIdx.x; b < call.batch; b += gridDim.x)                               \
      qr<T, true>(call, b, reinterpret_cast<T*>(raw));                                           \
  }                                                                                              \
  KERNEL(qr_block_##suffix);
FOR_SCALARS(INSTANCE)
