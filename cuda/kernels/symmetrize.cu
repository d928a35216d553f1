// The Hermitian part of row-major matrices, S = (A + A^H) / 2; a, s: [batch, n, n], apart from each other.
//
// A block of 256 threads makes a tile of 32 x 32 at a time, of a tile of A and its mirror, which is turned in
// shared memory: all memory is read and written along rows.
#include "scalar.cuh"

namespace {
template <class T> INLINE void symmetrize(const T* a, T* s, long long batch, int n) {
  __shared__ T mirror[LANES][LANES + 1];
  const int lane = threadIdx.x % LANES, first = threadIdx.x / LANES, rows = blockDim.x / LANES;
  const int tiles = (n + LANES - 1) / LANES;
  for (long long at = blockIdx.x; at < batch * tiles * tiles; at += gridDim.x) {
    const int tile = at % (tiles * tiles), down = tile / tiles * LANES, across = tile % tiles * LANES;
    const long long matrix = at / (tiles * tiles) * n * n;
    for (int i = first; i < LANES; i += rows)
      if (across + i < n && down + lane < n)
        mirror[i][lane] = a[matrix + (long long)(across + i) * n + down + lane];
    __syncthreads();
    for (int i = first; i < LANES; i += rows) {
      if (down + i >= n || across + lane >= n) continue;
      const long long place = matrix + (long long)(down + i) * n + across + lane;
      s[place] = scale(a[place] + conj(mirror[lane][i]), RealOf<T>(0.5));
    }
    __syncthreads();
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                      \
  extern "C" __global__ void __launch_bounds__(256)                                              \
      symmetrize_##suffix(const T* a, T* s, long long batch, int n) {                            \
    symmetrize<T>(a, s, batch, n);                                                               \
  }                                                                                              \
  KERNEL(symmetrize_##suffix);
FOR_SCALARS(INSTANCE)
