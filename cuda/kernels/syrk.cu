// C = alpha A A^T + beta C, or A^T A for `transpose`, of batches of small row-major matrices: the lower triangle
// of C is read, where beta is not zero, and written. Without conjugation. a: [rows, columns]; c: [n, n]; alpha
// and beta: one number each, in memory.
//
// A block of 16 x 16 threads has a tile of C and an element each; A comes by strips through shared memory.
#include "scalar.cuh"

namespace {
constexpr int TILE = 16;

template <class T>
INLINE void syrk(const T* a, T* c, const T* alpha, const T* beta, long long batch, int n, int k,
                 int transpose) {
  __shared__ T left[TILE][TILE + 1], right[TILE][TILE + 1];
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE, across = (n + TILE - 1) / TILE;
  const long long tiles = (long long)across * (across + 1) / 2;
  const T by = *alpha, of_c = *beta;
  for (long long at = blockIdx.x; at < batch * tiles; at += gridDim.x) {
    const T* const own = a + at / tiles * n * k;
    // Tile (down, over) of the lower triangle, row by row.
    int down = 0, over = (int)(at % tiles);
    while (over > down) over -= ++down;
    T sum = make<T>(0);
    for (int first = 0; first < k; first += TILE) {
      // Neighbouring threads read neighbours: along a row of A.
      const auto strip = [&](T (&to)[TILE][TILE + 1], int tile) {
        const int i = tile * TILE + (transpose ? x : y), l = first + (transpose ? y : x);
        const T value = i < n && l < k ? own[transpose ? (long long)l * n + i : (long long)i * k + l] : make<T>(0);
        if (transpose) to[x][y] = value;
        else to[y][x] = value;
      };
      strip(left, down);
      strip(right, over);
      __syncthreads();
#pragma unroll
      for (int l = 0; l < TILE; l++) sum = sum + left[y][l] * right[x][l];
      __syncthreads();
    }
    const int i = down * TILE + y, j = over * TILE + x;
    if (i < n && j <= i) {
      T* const place = c + at / tiles * n * n + (long long)i * n + j;
      *place = is_zero(of_c) ? by * sum : by * sum + of_c * *place;
    }
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                              \
  extern "C" __global__ void __launch_bounds__(TILE* TILE)                                               \
      syrk_##suffix(const T* a, T* c, const T* alpha, const T* beta, long long batch, int n, int k,      \
                    int transpose) {                                                                     \
    syrk<T>(a, c, alpha, beta, batch, n, k, transpose);                                                  \
  }                                                                                                      \
  KERNEL(syrk_##suffix);
FOR_SCALARS(INSTANCE)
