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
  // Right-hand sides at a time: with more the quotients' code spills registers.
  static constexpr int TOGETHER = 16 / sizeof(T);

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

template <class T> struct Block {
  const TriangularCall<T>& call;
  T *s, *y;
  int n, ld;

  INLINE Block(const TriangularCall<T>& call, T* shared)
      : call(call), s(shared), y(s + (call.n | 1) * call.n), n(call.n), ld(call.n | 1) {}

  INLINE void run(long long own, int piece) const {
    const T* a = call.a + own * n * n;
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
      const int i = e / n, k = e % n, row = call.turned ? k : i, column = call.turned ? i : k;
      if (call.lower ? column <= row : column >= row)
        s[row + column * ld] = call.conjugated ? conj(a[e]) : a[e];
    }
    for (long long c = (long long)call.columns * piece; c < call.count;
         c += (long long)call.columns * call.pieces)
      solve(own, c, (int)min((long long)call.columns, call.count - c));
  }

  // Columns c, ..., c + k - 1, a warp for each.
  INLINE void solve(long long own, long long c, int k) const {
    // Neighbours in memory to neighbouring threads.
    const bool down = call.down == 1;
    const auto row = [&](int e) { return down ? e % n : e / k; };
    const auto column = [&](int e) { return down ? e / n : e % k; };
    const auto element = [&](int i, int k) { return s[i + k * ld]; };
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
};
}  // namespace

#define INSTANCE(suffix, T) BY_ROWS(triangular, TriangularCall, suffix, T)
FOR_SCALARS(INSTANCE)
BY_32_ROWS(triangular, TriangularCall)
