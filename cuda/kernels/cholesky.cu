// Batches of small row-major Hermitian positive definite matrices, A = L L^H, each in one pass over memory.
// `call.task`:
//
//   FACTOR:      factor = L, zero above the diagonal
//   SOLVE:       A X = B; b, x: [n, nrhs]
//   KEEP:        the same, and factor = L, or U = L^H if `upper`, zero beside; logdet = ln det A
//   SUBSTITUTE:  A X = B, from a = L, or U if `upper`
//
// Of A the lower triangle is read, or the upper if `upper`; if `mean`, A is the mean of a and a^H. Where A
// is not positive definite, NaN included, X, logdet and the factor's triangle are NaN.
//
// cholesky_N: matrices of at most N x N, in registers (rows.cuh); 128 threads; shared memory: Slots' elements
// for each warp. cholesky_block: a block for each, in shared memory (panels.cuh): (n | 1) n elements, and
// `columns` n more for right-hand sides. Right-hand sides are dealt to `pieces` groups or blocks, each of
// which factors for itself. a and factor may be the same memory where the task is FACTOR.
#include "panels.cuh"
#include "rows.cuh"

namespace {
enum Task { FACTOR, SOLVE, KEEP, SUBSTITUTE };

template <class T> struct CholeskyCall {
  const T *a, *b;
  T *x, *factor;
  RealOf<T>* logdet;
  long long batch, nrhs;
  int n, task, upper, mean, columns, pieces;

  // L(i, j) of the matrix or of the factor that is given; a(i, j) is what lies there.
  template <class F> INLINE T lower(int i, int j, F a) const {
    if (mean && task != SUBSTITUTE) {
      const T sum = a(i, j) + conj(a(j, i));
      return make<T>(real(sum) / 2, imag(sum) / 2);
    }
    return upper ? conj(a(j, i)) : a(i, j);
  }
};

template <class T, int N, int W> struct Registers {
  using Group = Rows<T, N, W>;
  static constexpr int OWN = Group::OWN;
  // Right-hand sides at a time: with more the quotients' code spills registers.
  static constexpr int TOGETHER = 16 / sizeof(T);

  const CholeskyCall<T>& call;
  const Slots<T, W> slots;

  INLINE Registers(const CholeskyCall<T>& call, T* shared) : call(call), slots(shared, call.n, call.n) {}

  // The pieces from `first` on, a group's each. All lanes of a warp take the same way.
  INLINE void run(long long first) {
    const long long all = call.batch * call.pieces, piece = first + threadIdx.x % LANES / W;
    const int there = (int)min((long long)(LANES / W), all - first);
    const long long own = piece / call.pieces;
    const bool writes = piece < all;
    T* s = slots.of_group();
    slots.fetch(call.a, first, there, call.pieces);
    __syncwarp();
    if (call.task != SUBSTITUTE) factor(writes ? call.n : 0, s);
    if (call.task == FACTOR) slots.put(call.factor + first * call.n * call.n, there);
    else solve(own, (int)(piece % call.pieces), writes, s);
    if (call.task == KEEP) keep(own, writes && piece % call.pieces == 0, s);
    __syncwarp();
  }

  // The factor in the place of A; n is 0 where there is none.
  INLINE void factor(int n, T* s) const {
    const auto given = [&](int i, int j) { return s[i * slots.ld + j]; };
    // Where A is not what lies in the lower triangle it is put there, of which nobody else reads.
    if (call.mean || call.upper)
      for (int e = Group::lane(); e < n * n; e += W)
        if (e % n <= e / n) s[e / n * slots.ld + e % n] = call.lower(e / n, e % n, given);
    __syncwarp();
    Group l;
    l.fill(n, n, given);
    const bool failed = l.factor_cholesky(call.n);
    __syncwarp();
#pragma unroll
    for (int slot = 0; slot < OWN; slot++)
#pragma unroll
      for (int j = 0; j < N; j++) {
        const int i = Group::row(slot);
        if (i < n && j < n)
          s[i * slots.ld + j] = j > i ? make<T>(0) : failed ? not_a_number<T>() : l.a[slot][j];
      }
    __syncwarp();
  }

  INLINE void solve(long long own, int piece, bool writes, const T* s) const {
    const int n = call.n, ld = slots.ld;
    const bool turned = call.task == SUBSTITUTE && call.upper;
    const T* b = call.b + own * n * call.nrhs;
    T* x = call.x + own * n * call.nrhs;
    const auto lower = [&](int i, int k) {
      if (!writes) return make<T>(1);
      return turned ? conj(s[k * ld + i]) : s[i * ld + k];
    };
    // All groups go through as many columns, so that they meet.
    for (long long start = 0; start < call.nrhs; start += TOGETHER * call.pieces) {
      const long long c = start + TOGETHER * piece;
      Columns<T, N, W, TOGETHER> columns;
      each(c, writes, columns, [&](long long at, T& y) { y = b[at]; });
      columns.solve_lower(n, false, lower);
      columns.solve_upper(n, false, [&](int i, int k) { return conj(lower(k, i)); });
      each(c, writes, columns, [&](long long at, T& y) { x[at] = y; });
    }
  }

  // What is there of the columns from c on, with its place in B and X.
  template <class F>
  INLINE void each(long long c, bool there, Columns<T, N, W, TOGETHER>& columns, F body) const {
#pragma unroll
    for (int slot = 0; slot < OWN; slot++)
#pragma unroll
      for (int q = 0; q < TOGETHER; q++) {
        const int i = Group::row(slot);
        if (there && i < call.n && c + q < call.nrhs) body(i * call.nrhs + c + q, columns.y[slot][q]);
      }
  }

  INLINE void keep(long long own, bool writes, const T* s) const {
    using R = RealOf<T>;
    const int n = call.n, ld = slots.ld;
    R logarithm[OWN];
#pragma unroll
    for (int slot = 0; slot < OWN; slot++) {
      const int i = Group::row(slot);
      logarithm[slot] = writes && i < n ? log(real(s[i * ld + i])) : R(0);
    }
    const R sum = Group::of_all(logarithm, [](R x, R y) { return x + y; });
    if (writes && Group::lane() == 0) call.logdet[own] = 2 * sum;
    T* factor = call.factor + own * n * n;
    for (int e = Group::lane(); writes && e < n * n; e += W) {
      const int i = e / n, j = e % n;
      factor[e] = call.upper ? conj(s[j * ld + i]) : s[i * ld + j];
    }
  }
};

template <class T> struct Block {
  const CholeskyCall<T>& call;
  T *s, *y;
  int ld;

  INLINE Block(const CholeskyCall<T>& call, T* shared)
      : call(call), s(shared), y(s + (call.n | 1) * call.n), ld(call.n | 1) {}

  INLINE void run(long long b, int piece) const {
    const int n = call.n;
    const T* a = call.a + b * n * n;
    const auto given = [&](int i, int j) { return a[i * n + j]; };
    for (int e = threadIdx.x; e < n * n; e += blockDim.x)
      if (e % n <= e / n) s[e / n + e % n * ld] = call.lower(e / n, e % n, given);
    __syncthreads();
    if (call.task != SUBSTITUTE && cholesky_by_panels(s, ld, n))
      for (int e = threadIdx.x; e < n * n; e += blockDim.x) s[e / n + e % n * ld] = not_a_number<T>();
    __syncthreads();
    if (call.task == FACTOR || (call.task == KEEP && piece == 0)) keep(b);
    for (long long c = (long long)call.columns * piece; c < call.nrhs && call.task != FACTOR;
         c += (long long)call.columns * call.pieces)
      solve(b, c, (int)min((long long)call.columns, call.nrhs - c));
    __syncthreads();
  }

  INLINE void keep(long long b) const {
    const int n = call.n;
    const bool upper = call.task == KEEP && call.upper;
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
      const int i = e / n, j = e % n, row = upper ? j : i, column = upper ? i : j;
      const T value = column <= row ? s[row + column * ld] : make<T>(0);
      call.factor[b * n * n + e] = upper ? conj(value) : value;
    }
    if (call.task == FACTOR || threadIdx.x >= LANES) return;
    RealOf<T> sum = 0;
    for (int i = threadIdx.x; i < n; i += LANES) sum = sum + log(real(s[i + i * ld]));
    sum = warp_sum(sum);
    if (threadIdx.x == 0) call.logdet[b] = 2 * sum;
  }

  // Columns c, ..., c + k - 1, a warp for each.
  INLINE void solve(long long b, long long c, int k) const {
    const int n = call.n;
    const T* right = call.b + b * n * call.nrhs + c;
    T* x = call.x + b * n * call.nrhs + c;
    for (int e = threadIdx.x; e < n * k; e += blockDim.x)
      y[e % k * n + e / k] = right[e / k * call.nrhs + e % k];
    __syncthreads();
    for (int q = threadIdx.x / LANES; q < k; q += blockDim.x / LANES) {
      solve_lower(y + q * n, n, false, [&](int i, int j) { return s[i + j * ld]; });
      solve_upper(y + q * n, n, false, [&](int i, int j) { return conj(s[j + i * ld]); });
    }
    __syncthreads();
    for (int e = threadIdx.x; e < n * k; e += blockDim.x)
      x[e / k * call.nrhs + e % k] = y[e % k * n + e / k];
    __syncthreads();
  }
};
}  // namespace

#define INSTANCE(suffix, T) BY_ROWS(cholesky, CholeskyCall, suffix, T)
FOR_SCALARS(INSTANCE)
BY_32_ROWS(cholesky, CholeskyCall)
