// Batches of small triangular systems M X = B, each in one pass over memory. M is [n, n], of a or of its
// transpose if `turned`, conjugated if `conjugated`; its lower triangle if `lower`, else the upper one; its
// diagonal is one if `unit`. Nothing else of a is read. B and X have `count` columns; a column's elements are
// `down` apart, its neighbour is `across` away. b and x may be the same memory.
//
// triangular_N: matrices of at most N x N (rows.cuh); 128 threads; shared memory: Slots' elements for each
// warp. triangular_block: a block for each, in shared memory: (n | 1) n elements, and `columns` n more for
// right-hand sides. These are dealt to `pieces` groups or blocks.
#include "panels.cuh"
#include "rows.cuh"

namespace {
template <class T> struct TriangularCall {
  const T *a, *b;
  T* x;
  long long batch, count, down, across;
  int n, turned, conjugated, lower, unit, columns, pieces;

  // M(i, k), where a(i, k) is what lies there.
  template <class F> INLINE T element(int i, int k, F a) const {
    const T value = turned ? a(k, i) : a(i, k);
    return conjugated ? conj(value) : value;
  }
  // Where element i of column c of matrix m is.
  INLINE long long place(long long m, long long i, long long c) const {
    return m * n * count + i * down + c * across;
  }
};

template <class T, int N, int W> struct Registers {
  using Group = Rows<T, N, W>;
  static constexpr int OWN = Group::OWN;
  // Right-hand sides at a time, as registers allow.
  static constexpr int TOGETHER = sizeof(T) == 16 ? 1 : 4;

  const TriangularCall<T>& call;
  const Slots<T, W> slots;

  INLINE Registers(const TriangularCall<T>& call, T* shared) : call(call), slots(shared, call.n, call.n) {}

  // The pieces from `first` on, a group's each. All lanes of a warp take the same way.
  INLINE void run(long long first) const {
    const long long all = call.batch * call.pieces, piece = first + threadIdx.x % LANES / W;
    const int there = (int)min((long long)(LANES / W), all - first);
    const bool writes = piece < all;
    const T* s = slots.of_group();
    slots.fetch(call.a, first, there, call.pieces);
    __syncwarp();
    const auto given = [&](int i, int k) { return s[i * slots.ld + k]; };
    const auto element = [&](int i, int k) { return writes ? call.element(i, k, given) : make<T>(1); };
    // All groups go through as many columns, so that they meet.
    for (long long start = 0; start < call.count; start += TOGETHER * call.pieces) {
      const long long c = start + TOGETHER * (piece % call.pieces), own = piece / call.pieces;
      Columns<T, N, W, TOGETHER> columns;
      each(own, c, writes, columns, [&](long long at, T& y) { y = call.b[at]; });
      if (call.lower) columns.solve_lower(call.n, call.unit, element);
      else columns.solve_upper(call.n, call.unit, element);
      each(own, c, writes, columns, [&](long long at, T& y) { call.x[at] = y; });
    }
    __syncwarp();
  }

  // What is there of the columns from c on, with its place in B and X.
  template <class F>
  INLINE void each(long long own, long long c, bool there, Columns<T, N, W, TOGETHER>& columns,
                   F body) const {
#pragma unroll
    for (int slot = 0; slot < OWN; slot++)
#pragma unroll
      for (int q = 0; q < TOGETHER; q++) {
        const int i = Group::row(slot);
        if (there && i < call.n && c + q < call.count) body(call.place(own, i, c + q), columns.y[slot][q]);
      }
  }
};

template <class T, int N, int W> INLINE void in_registers(const TriangularCall<T>& call, T* shared) {
  constexpr int GROUPS = LANES / W;
  const int warps = blockDim.x / LANES, warp = threadIdx.x / LANES;
  const Registers<T, N, W> registers(call, shared);
  const long long stride = (long long)gridDim.x * warps * GROUPS;
  for (long long first = ((long long)blockIdx.x * warps + warp) * GROUPS;
       first < call.batch * call.pieces; first += stride)
    registers.run(first);
}

template <class T> INLINE void solve_piece(const TriangularCall<T>& call, T* s, long long own, int piece) {
  const int n = call.n, ld = n | 1;
  const T* a = call.a + own * n * n;
  T* y = s + ld * n;
  for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
    const int i = e / n, k = e % n, row = call.turned ? k : i, column = call.turned ? i : k;
    if (call.lower ? column <= row : column >= row) s[row + column * ld] = call.conjugated ? conj(a[e]) : a[e];
  }
  const auto element = [&](int i, int k) { return s[i + k * ld]; };
  for (long long c = (long long)call.columns * piece; c < call.count;
       c += (long long)call.columns * call.pieces) {
    const int k = (int)min((long long)call.columns, call.count - c);
    // Neighbours in memory to neighbouring threads.
    const bool down = call.down == 1;
    const auto row = [&](int e) { return down ? e % n : e / k; };
    const auto column = [&](int e) { return down ? e / n : e % k; };
    for (int e = threadIdx.x; e < n * k; e += blockDim.x)
      y[column(e) * n + row(e)] = call.b[call.place(own, row(e), c + column(e))];
    __syncthreads();
    for (int q = threadIdx.x / LANES; q < k; q += blockDim.x / LANES) {
      if (call.lower) solve_lower(y + q * n, n, call.unit, element);
      else solve_upper(y + q * n, n, call.unit, element);
    }
    __syncthreads();
    for (int e = threadIdx.x; e < n * k; e += blockDim.x)
      call.x[call.place(own, row(e), c + column(e))] = y[column(e) * n + row(e)];
    __syncthreads();
  }
}

template <class T> INLINE void by_block(const TriangularCall<T>& call, T* shared) {
  for (long long at = blockIdx.x; at < call.batch * call.pieces; at += gridDim.x)
    solve_piece(call, shared, at / call.pieces, (int)(at % call.pieces));
}
}  // namespace

#define IN_REGISTERS(suffix, T, N, W)                                                             \
  extern "C" __global__ void __launch_bounds__(128)                                               \
      triangular_##N##_##suffix(const __grid_constant__ TriangularCall<T> call) {                 \
    SHARED_MEMORY(raw);                                                                           \
    in_registers<T, N, W>(call, reinterpret_cast<T*>(raw));                                       \
  }                                                                                               \
  KERNEL(triangular_##N##_##suffix);
#define INSTANCE(suffix, T)                                                                       \
  IN_REGISTERS(suffix, T, 4, 1)                                                                   \
  IN_REGISTERS(suffix, T, 8, 8)                                                                   \
  IN_REGISTERS(suffix, T, 16, 16)                                                                 \
  extern "C" __global__ void __launch_bounds__(512)                                               \
      triangular_block_##suffix(const __grid_constant__ TriangularCall<T> call) {                 \
    SHARED_MEMORY(raw);                                                                           \
    by_block<T>(call, reinterpret_cast<T*>(raw));                                                 \
  }                                                                                               \
  KERNEL(triangular_block_##suffix);
FOR_SCALARS(INSTANCE)
// As the factors that these systems are of have it.
IN_REGISTERS(f32, float, 32, 32)
IN_REGISTERS(f64, double, 32, 32)
IN_REGISTERS(c64, Complex<float>, 32, 32)
