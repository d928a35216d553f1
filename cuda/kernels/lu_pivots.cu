// A sequence of row swaps (LU pivots, counted from 0) as the permutation that it makes.
//
//   perm = 0, 1, ..., n - 1;  for i = 0, ..., np - 1: swap perm[i], perm[piv[i]] if 0 <= piv[i] < n
//
// A warp composes 32 swaps at a time, in shared memory. Any pivots are right; those of an LU
// factorisation (piv[i] >= i) take the fast path. piv: [batch, np], perm: [batch, n], np <= n.
#include "device.cuh"

namespace {
// Swaps `first`, ..., `first` + 31, one by one, by lane 0.
__device__ __forceinline__ void swap_one_by_one(const int32_t* __restrict__ piv, int np, int n,
                                                int first, int lane, int32_t* perm) {
  if (lane == 0) {
    for (int k = first; k < first + LANES && k < np; k++) {
      const int q = piv[k];
      if (q < 0 || q >= n) continue;
      const int32_t kept = perm[k];
      perm[k] = perm[q];
      perm[q] = kept;
    }
  }
  __syncwarp();
}

// The same at once: lane l has swap i = first + l. Before swap i, row i holds what the last earlier
// swap j of this chunk with piv[j] = i put there, which is row j's content then, and so on: the root
// of that chain is found by pointer doubling. After all, row i holds what swap i brought, and row
// piv[i] what the last swap with it left there.
__device__ __forceinline__ void swap_chunk(const int32_t* __restrict__ piv, int np, int n, int first,
                                           int lane, int32_t* perm) {
  const int i = first + lane;
  const int p = i < np ? piv[i] : -1;
  const bool active = p >= 0 && p < n && p != i;
  // A swap backwards within the chunk has no such closed form.
  if (__any_sync(ALL_LANES, active && p >= first && p < i)) {
    swap_one_by_one(piv, np, n, first, lane, perm);
    return;
  }
  // Lanes that swap with the same row; an idle lane is alone.
  const unsigned same = __match_any_sync(ALL_LANES, active ? p : -1 - lane);
  const int previous = 31 - __clz((int)(same & ((1u << lane) - 1)));
  const bool last = (same >> lane) == 1u;
  const bool inside = active && p > i && p < first + LANES;
  const int32_t own = i < n ? perm[i] : 0;
  const int32_t other = active && !inside ? perm[p] : 0;
  int root = lane;
  if (__any_sync(ALL_LANES, inside)) {
    unsigned sources = __ballot_sync(ALL_LANES, inside && last);
    while (sources) {
      const int j = __ffs((int)sources) - 1;
      sources &= sources - 1;
      if (__shfl_sync(ALL_LANES, p, j) == i) root = j;
    }
    for (int round = 0; round < 5; round++) root = __shfl_sync(ALL_LANES, root, root);
  }
  const int32_t before = __shfl_sync(ALL_LANES, own, root);
  const int32_t left = __shfl_sync(ALL_LANES, before, previous < 0 ? lane : previous);
  const int32_t within = __shfl_sync(ALL_LANES, own, inside ? p - first : lane);
  const int32_t after = !active ? before : previous >= 0 ? left : inside ? within : other;
  __syncwarp();
  if (i < n && after != own) perm[i] = after;
  if (active && last && !inside) perm[p] = before;
  __syncwarp();
}
}  // namespace

// A warp per matrix, several to a block: blockDim = (32, warps), n integers of shared memory each.
extern "C" __global__ void __launch_bounds__(256)
    lu_pivots_warp(const int32_t* __restrict__ piv, int32_t* __restrict__ out, long long batch, int np,
                   int n) {
  SHARED_MEMORY(raw);
  const int lane = threadIdx.x;
  int32_t* perm = reinterpret_cast<int32_t*>(raw) + (size_t)threadIdx.y * n;
  const long long stride = (long long)gridDim.x * blockDim.y;
  for (long long b = (long long)blockIdx.x * blockDim.y + threadIdx.y; b < batch; b += stride) {
    for (int i = lane; i < n; i += LANES) perm[i] = i;
    __syncwarp();
    for (int c = 0; c < np; c += LANES) swap_chunk(piv + b * np, np, n, c, lane, perm);
    for (int i = lane; i < n; i += LANES) out[b * n + i] = perm[i];
    __syncwarp();
  }
}
KERNEL(lu_pivots_warp);

// A block per matrix: its first warp swaps, all write. The permutation is built in n integers of
// shared memory, or where these are too many (in_shared = 0) in `out` itself.
extern "C" __global__ void __launch_bounds__(256)
    lu_pivots_block(const int32_t* __restrict__ piv, int32_t* out, long long batch, int np, int n,
                    int in_shared) {
  SHARED_MEMORY(raw);
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    int32_t* perm = in_shared ? reinterpret_cast<int32_t*>(raw) : out + b * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) perm[i] = i;
    __syncthreads();
    if (threadIdx.x < LANES)
      for (int c = 0; c < np; c += LANES) swap_chunk(piv + b * np, np, n, c, threadIdx.x, perm);
    __syncthreads();
    if (in_shared) {
      for (int i = threadIdx.x; i < n; i += blockDim.x) out[b * n + i] = perm[i];
      __syncthreads();
    }
  }
}
KERNEL(lu_pivots_block);
