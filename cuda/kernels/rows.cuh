// A small matrix of a group of lanes, by rows: in registers while it is factored, in shared memory before and
// after.
//
// Rows<T, N, W>: W lanes of a warp have a matrix of at most N x N: each a row (W is N), or a thread has all
// (W is 1). Row i is slot i / W of the group's lane i % W. Loops over rows and columns are unrolled, so that
// all indices into registers are known; what lies beyond the matrix is zero, and meets nobody.
//
// Slots: matrices are row-major and follow each other in memory. A warp brings those of its groups through
// shared memory, for which its accesses to memory are contiguous, and where solving with factors needs no
// registers: unrolled, it would take ten times the code of the factorisation.
#pragma once
#include "scalar.cuh"

namespace {
// Where a warp's matrices are in shared memory. Rows are an odd number apart where lanes have a row each,
// and matrices where they have a matrix each, so that their accesses do not collide in a bank.
template <class T, int W> struct Slots {
  T* s;
  int rows, columns, ld, stride;

  // `block` has count(rows, columns) elements for each warp of a block.
  INLINE Slots(T* block, int m, int n)
      : s(block + threadIdx.x / LANES * count(m, n)), rows(m), columns(n), ld(apart(n)),
        stride((m * ld) | 1) {}

  static INLINE int apart(int n) { return W == 1 ? n : n | 1; }
  static INLINE int count(int m, int n) { return LANES / W * ((m * apart(n)) | 1); }

  INLINE T* of_group() const { return s + threadIdx.x % LANES / W * stride; }

  // Matrix first / pieces of a batch in memory for the first group, (first + 1) / pieces for the next; of
  // `count` groups.
  INLINE void fetch(const T* batch, long long first, int count, int pieces) const {
    each(count, [&](int group, int e, int place) {
      s[place] = batch[(first + group) / pieces * (rows * columns) + e];
    });
  }
  // The groups' matrices, one after the other.
  INLINE void put(T* to, int count) const {
    each(count, [&](int group, int e, int place) { to[group * (rows * columns) + e] = s[place]; });
  }

 private:
  template <class F> INLINE void each(int count, F element) const {
    const int size = rows * columns;
    for (int at = threadIdx.x % LANES; at < count * size; at += LANES) {
      const int group = at / size, e = at % size;
      element(group, e, group * stride + e / columns * ld + e % columns);
    }
  }
};

template <class T, int N, int W> struct Rows {
  static_assert(W == 1 || W == N, "rows lie in one lane, or in a lane each");
  using R = RealOf<T>;
  // Rows of a lane.
  static constexpr int OWN = N / W;

  T a[OWN][N];

  // The lane among its group's, and the first of these among the warp's.
  static INLINE int lane() { return threadIdx.x % W; }
  static INLINE int base() { return threadIdx.x % LANES / W * W; }
  static INLINE int row(int slot) { return slot * W + lane(); }

  // What row i has of `x`, of which each lane has that of its rows. All lanes of the warp ask.
  template <class V> static INLINE V of_row(const V (&x)[OWN], int i) {
    if constexpr (W == 1) {
      V found = x[0];
#pragma unroll
      for (int slot = 1; slot < OWN; slot++)
        if (slot == i) found = x[slot];
      return found;
    } else {
      return Traits<V>::shuffle(x[0], base() + i);
    }
  }
  // A(i, j).
  INLINE T at(int i, int j) const {
    T column[OWN];
#pragma unroll
    for (int slot = 0; slot < OWN; slot++) column[slot] = a[slot][j];
    return of_row(column, i);
  }
  // What op makes of all that the rows have.
  template <class V, class F> static INLINE V of_all(const V (&x)[OWN], F op) {
    V all = x[0];
#pragma unroll
    for (int slot = 1; slot < OWN; slot++) all = op(all, x[slot]);
#pragma unroll
    for (int flip = W / 2; flip > 0; flip /= 2) all = op(all, Traits<V>::shuffle_xor(all, flip));
    return all;
  }

  // A(i, j) = element(i, j) of m x n.
  template <class F> INLINE void fill(int m, int n, F element) {
#pragma unroll
    for (int slot = 0; slot < OWN; slot++)
#pragma unroll
      for (int j = 0; j < N; j++)
        a[slot][j] = row(slot) < m && j < n ? element(row(slot), j) : make<T>(0);
  }
  // A as m x n in shared memory, each row in the place that it is told.
  INLINE void store(T* s, int ld, int m, int n, const int (&places)[OWN]) const {
#pragma unroll
    for (int slot = 0; slot < OWN; slot++)
#pragma unroll
      for (int j = 0; j < N; j++)
        if (row(slot) < m && j < n) s[places[slot] * ld + j] = a[slot][j];
  }

  // A = P L U with partial pivoting, of m x n; the factors replace A, but for the order of rows, which stay
  // where they are. places: which row of L and U a row has become; order, the reverse: of which row of A
  // row i of P^-1 A is; swaps: the row that was swapped with row k in step k.
  INLINE void factor_lu(int m, int n, int (&places)[OWN], int (&order)[OWN], int (&swaps)[OWN]) {
#pragma unroll
    for (int slot = 0; slot < OWN; slot++) places[slot] = order[slot] = swaps[slot] = row(slot);
    const int steps = min(m, n);
#pragma unroll
    for (int k = 0; k < N; k++) {
      if (k < steps) {
        const int where = pivot(k, m, places);
        const int top_row = of_row(order, where), kept = of_row(order, k);
        const T top = at(top_row, k);
        T multiplier[OWN];
        bool below[OWN];
#pragma unroll
        for (int slot = 0; slot < OWN; slot++) {
          if (row(slot) == where) order[slot] = kept;
          if (row(slot) == k) order[slot] = top_row;
          if (row(slot) == k) swaps[slot] = where;
          if (row(slot) == kept) places[slot] = where;
          if (row(slot) == top_row) places[slot] = k;
          below[slot] = places[slot] > k;
          multiplier[slot] = is_zero(top) ? a[slot][k] : divide(a[slot][k], top);
          if (below[slot]) a[slot][k] = multiplier[slot];
        }
        // Not from k + 1 on: that nvcc 13.0 does not unroll for sm_100, and rows go to memory.
#pragma unroll
        for (int j = 1; j < N; j++) {
          if (j > k) {
            const T u = at(top_row, j);
#pragma unroll
            for (int slot = 0; slot < OWN; slot++)
              if (below[slot]) a[slot][j] = a[slot][j] - multiplier[slot] * u;
          }
        }
      }
    }
  }

  // A = L L^H, of the lower triangle, which L replaces; what is above it is anything. Returns whether A
  // is not positive definite, NaN included.
  INLINE bool factor_cholesky(int n) {
    bool failed = false;
#pragma unroll
    for (int k = 0; k < N; k++) {
      if (k < n) {
        const R d = real(at(k, k));
        // True for NaN, too. No lane leaves: all meet in every step.
        if (!(d > R(0))) failed = true;
        const R root = sqrt(d), inverse = R(1) / root;
        T column[OWN];
#pragma unroll
        for (int slot = 0; slot < OWN; slot++) {
          column[slot] = row(slot) == k ? make<T>(root) : scale(a[slot][k], inverse);
          a[slot][k] = column[slot];
        }
#pragma unroll
        for (int j = k + 1; j < N; j++) {
          const T l = conj(of_row(column, j));
#pragma unroll
          for (int slot = 0; slot < OWN; slot++) a[slot][j] = a[slot][j] - column[slot] * l;
        }
      }
    }
    return failed;
  }

 private:
  // The place, from k on, of the entry of largest |re| + |im| in column k, the first of several. NaN counts
  // as infinite.
  INLINE int pivot(int k, int m, const int (&places)[OWN]) const {
    R size = R(-1);
    int where = N;
#pragma unroll
    for (int slot = 0; slot < OWN; slot++) {
      R here = abs1(a[slot][k]);
      if (here != here) here = R(INFINITY);
      if (places[slot] >= k && places[slot] < m) larger(here, places[slot], size, where);
    }
#pragma unroll
    for (int flip = W / 2; flip > 0; flip /= 2) {
      const R other = __shfl_xor_sync(ALL_LANES, size, flip);
      const int there = __shfl_xor_sync(ALL_LANES, where, flip);
      larger(other, there, size, where);
    }
    return where;
  }
  static INLINE void larger(R other, int there, R& size, int& where) {
    if (other > size || (other == size && there < where)) {
      size = other;
      where = there;
    }
  }
};

// The solution of two systems of n equations in turn, L Y = B and U X = Y, for the right-hand sides of a
// group: each lane of it has those of its rows (Rows<T, N, W>). The matrix is element(i, k); its diagonal is
// one if `unit`.
template <class T, int N, int W, int C> struct Columns {
  using Group = Rows<T, N, W>;
  static constexpr int OWN = Group::OWN;
  T y[OWN][C];

  template <class F> INLINE void solve_lower(int n, bool unit, F element) {
#pragma unroll (W == 1 ? N : 1)
    for (int k = 0; k < (W == 1 ? N : n); k++)
      if (k < n) step(k, unit, element, [&](int i) { return i > k && i < n; });
  }
  template <class F> INLINE void solve_upper(int n, bool unit, F element) {
#pragma unroll (W == 1 ? N : 1)
    for (int k = (W == 1 ? N : n) - 1; k >= 0; k--)
      if (k < n) step(k, unit, element, [&](int i) { return i < k; });
  }

 private:
  // x(k), which is y(k) / A(k, k), and its multiples off the rows that wait for it.
  template <class F, class G> INLINE void step(int k, bool unit, F element, G waits) {
    T own[OWN];
#pragma unroll
    for (int slot = 0; slot < OWN; slot++) {
      const int i = Group::row(slot);
      const bool here = i == k && !unit;
      own[slot] = here || waits(i) ? element(i, k) : make<T>(0);
#pragma unroll
      for (int c = 0; c < C; c++)
        if (here) y[slot][c] = divide(y[slot][c], own[slot]);
    }
#pragma unroll
    for (int c = 0; c < C; c++) {
      T column[OWN];
#pragma unroll
      for (int slot = 0; slot < OWN; slot++) column[slot] = y[slot][c];
      const T x = Group::of_row(column, k);
#pragma unroll
      for (int slot = 0; slot < OWN; slot++)
        if (waits(Group::row(slot))) y[slot][c] = y[slot][c] - own[slot] * x;
    }
  }
};

// What a family has to say, for T one of its scalars: Registers<T, N, W>(call, shared memory), whose
// run(first) does the pieces first, first + 1, ... of a warp's groups, all of whose lanes take the same way;
// and Block<T>(call, shared memory), whose run(matrix, piece) is a block's.
template <int W, class R> INLINE void by_groups(R registers, long long pieces) {
  constexpr int GROUPS = LANES / W;
  const int warps = blockDim.x / LANES, warp = threadIdx.x / LANES;
  const long long stride = (long long)gridDim.x * warps * GROUPS;
  for (long long first = ((long long)blockIdx.x * warps + warp) * GROUPS; first < pieces; first += stride)
    registers.run(first);
}
template <class B> INLINE void by_blocks(B block, long long pieces, int of_a_matrix) {
  for (long long at = blockIdx.x; at < pieces; at += gridDim.x)
    block.run(at / of_a_matrix, (int)(at % of_a_matrix));
}
}  // namespace

#define IN_REGISTERS(family, Call, suffix, T, N, W)                                              \
  extern "C" __global__ void __launch_bounds__(128, 3)                                           \
      family##_##N##_##suffix(const __grid_constant__ Call<T> call) {                            \
    SHARED_MEMORY(raw);                                                                          \
    const Registers<T, N, W> registers(call, reinterpret_cast<T*>(raw));                         \
    by_groups<W>(registers, call.batch * call.pieces);                                           \
  }                                                                                              \
  KERNEL(family##_##N##_##suffix);
#define IN_A_BLOCK(family, Call, suffix, T)                                                      \
  extern "C" __global__ void __launch_bounds__(512, 1)                                           \
      family##_block_##suffix(const __grid_constant__ Call<T> call) {                            \
    SHARED_MEMORY(raw);                                                                          \
    by_blocks(Block<T>(call, reinterpret_cast<T*>(raw)), call.batch * call.pieces, call.pieces); \
  }                                                                                              \
  KERNEL(family##_block_##suffix);

// The kernels of a family for a scalar; those of 32 rows are not for c128, of which a row would take half
// of a thread's registers.
#define BY_ROWS(family, Call, suffix, T)       \
  IN_REGISTERS(family, Call, suffix, T, 4, 1)   \
  IN_REGISTERS(family, Call, suffix, T, 8, 8)   \
  IN_REGISTERS(family, Call, suffix, T, 16, 16) \
  IN_A_BLOCK(family, Call, suffix, T)
#define BY_32_ROWS(family, Call)                   \
  IN_REGISTERS(family, Call, f32, float, 32, 32)   \
  IN_REGISTERS(family, Call, f64, double, 32, 32)  \
  IN_REGISTERS(family, Call, c64, Complex<float>, 32, 32)
