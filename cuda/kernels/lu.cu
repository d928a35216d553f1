// Batches of small row-major matrices: LU with partial pivoting, A = P L U, and what it is for, each in one
// pass over memory. `call.task`:
//
//   FACTOR:      x = L and U, [m, n]; pivots from 0, [min(m, n)]; permutation, [m]
//   DETERMINANT: sign and logabs, det A = sign exp(logabs)
//   SOLVE:       A X = B; b, x: [n, nrhs]
//   INVERSE:     A X = I; x: [n, n]
//   SUBSTITUTE:  op(A) X = B, from a = L and U, and the permutation; op: A, A^T, A^H
//
// lu_N: matrices of at most N x N, in registers (rows.cuh); 128 threads; shared memory: Slots' elements for
// each warp. lu_block: a block for each, in shared memory (panels.cuh): (m | 1) n elements, `columns` n more
// for right-hand sides, then m integers. Right-hand sides are dealt to `pieces` groups or blocks, each of
// which factors for itself. a and x may be the same memory where the task is FACTOR.
#include "panels.cuh"
#include "rows.cuh"

namespace {
enum Task { FACTOR, DETERMINANT, SOLVE, INVERSE, SUBSTITUTE };
enum Op { PLAIN, TRANSPOSE, ADJOINT };

template <class T> struct LuCall {
  const T *a, *b;
  T* x;
  int32_t *pivots, *permutation;
  T* sign;
  RealOf<T>* logabs;
  long long batch, nrhs;
  int m, n, task, op, columns, pieces;
};

// The part of a determinant that is one entry of U: its phase, and the logarithm of its size, of which
// neither part overflows or vanishes.
template <class T> INLINE void determinant_part(T u, T& phase, RealOf<T>& logarithm) {
  using R = RealOf<T>;
  const R largest = fmax(fabs(real(u)), fabs(imag(u)));
  phase = make<T>(0);
  logarithm = -R(INFINITY);
  if (is_zero(u)) return;
  const T scaled = make<T>(real(u) / largest, imag(u) / largest);
  const R size = modulus(scaled);
  // A real number's phase is a sign also where it is infinite.
  const bool whole = sizeof(T) == sizeof(R);
  phase = whole ? make<T>(copysign(R(1), real(u))) : make<T>(real(scaled) / size, imag(scaled) / size);
  logarithm = whole ? log(largest) : log(largest) + log(size);
  if (real(u) != real(u) || imag(u) != imag(u)) logarithm = R(NAN);
}

template <class T, int N, int W> struct Registers {
  using Group = Rows<T, N, W>;
  static constexpr int OWN = Group::OWN;
  // Right-hand sides at a time: with more the quotients' code spills registers.
  static constexpr int TOGETHER = 16 / sizeof(T);

  const LuCall<T>& call;
  const Slots<T, W> slots;
  int order[OWN], swaps[OWN];

  INLINE Registers(const LuCall<T>& call, T* shared) : call(call), slots(shared, call.m, call.n) {}

  // The pieces from `first` on, a group's each. All lanes of a warp take the same way.
  INLINE void run(long long first) {
    const int m = call.m, n = call.n, steps = min(m, n);
    const long long all = call.batch * call.pieces, piece = first + threadIdx.x % LANES / W;
    const int there = (int)min((long long)(LANES / W), all - first);
    const long long own = piece / call.pieces;
    const bool writes = piece < all;
    T* s = slots.of_group();
    slots.fetch(call.a, first, there, call.pieces);
    __syncwarp();
    if (call.task != SUBSTITUTE) {
      Group lu;
      int places[OWN];
      lu.fill(writes ? m : 0, n, [&](int i, int j) { return s[i * slots.ld + j]; });
      // Rows go back to places that other lanes have read.
      __syncwarp();
      lu.factor_lu(m, n, places, order, swaps);
      lu.store(s, slots.ld, writes ? m : 0, n, places);
      __syncwarp();
    }
    if (call.task == FACTOR) {
#pragma unroll
      for (int slot = 0; slot < OWN; slot++) {
        const int i = Group::row(slot);
        if (writes && i < m) call.permutation[own * m + i] = order[slot];
        if (writes && i < steps) call.pivots[own * steps + i] = swaps[slot];
      }
      slots.put(call.x + first * m * n, there);
    } else if (call.task == DETERMINANT) {
      determinant(own, writes, s);
    } else {
      solve(own, (int)(piece % call.pieces), writes, s);
    }
    __syncwarp();
  }

  INLINE void determinant(long long own, bool writes, const T* s) const {
    using R = RealOf<T>;
    T phase[OWN];
    R logarithm[OWN];
#pragma unroll
    for (int slot = 0; slot < OWN; slot++) {
      const int i = Group::row(slot);
      const bool there = writes && i < call.n;
      determinant_part(there ? s[i * slots.ld + i] : make<T>(1), phase[slot], logarithm[slot]);
      if (there && swaps[slot] != i) phase[slot] = -phase[slot];
    }
    const T sign = Group::of_all(phase, [](T x, T y) { return x * y; });
    const R sum = Group::of_all(logarithm, [](R x, R y) { return x + y; });
    if (writes && Group::lane() == 0) {
      call.sign[own] = is_zero(sign) ? make<T>(0) : sign;
      call.logabs[own] = sum;
    }
  }

  INLINE void solve(long long own, int piece, bool writes, const T* s) {
    const int n = call.n, ld = slots.ld;
    const long long all = call.task == INVERSE ? n : call.nrhs;
    const T* b = call.b + own * n * all;
    T* x = call.x + own * n * all;
    const bool turned = call.task == SUBSTITUTE && call.op != PLAIN, adjoint = call.op == ADJOINT;
    // Where the permutation has a row; none: it does not name it.
    int found[OWN] = {};
    if (call.task == SUBSTITUTE) read_permutation(own, writes, found);
    const auto element = [&](int i, int k) {
      if (!writes) return make<T>(1);
      const T value = turned ? s[k * ld + i] : s[i * ld + k];
      return turned && adjoint ? conj(value) : value;
    };
    // All groups go through as many columns, so that they meet.
    for (long long start = 0; start < all; start += TOGETHER * call.pieces) {
      const long long c = start + TOGETHER * piece;
      Columns<T, N, W, TOGETHER> columns;
#pragma unroll
      for (int slot = 0; slot < OWN; slot++) {
        const int i = Group::row(slot), from = turned ? i : order[slot];
        const bool named = from >= 0 && from < n;
#pragma unroll
        for (int q = 0; q < TOGETHER; q++) {
          T value = make<T>(from == c + q);
          if (call.task != INVERSE && writes && i < n && c + q < all)
            value = named ? b[from * all + c + q] : not_a_number<T>();
          columns.y[slot][q] = value;
        }
      }
      columns.solve_lower(n, !turned, element);
      columns.solve_upper(n, turned, element);
#pragma unroll
      for (int q = 0; q < TOGETHER; q++) {
        T column[OWN];
#pragma unroll
        for (int slot = 0; slot < OWN; slot++) column[slot] = columns.y[slot][q];
#pragma unroll
        for (int slot = 0; slot < OWN; slot++) {
          T value = column[slot];
          if (turned) {
            const T back = Group::of_row(column, max(found[slot], 0));
            value = found[slot] < 0 ? not_a_number<T>() : back;
          }
          const int i = Group::row(slot);
          if (writes && i < n && c + q < all) x[i * all + c + q] = value;
        }
      }
    }
  }

  INLINE void read_permutation(long long own, bool writes, int (&found)[OWN]) {
#pragma unroll
    for (int slot = 0; slot < OWN; slot++) {
      const int i = Group::row(slot);
      order[slot] = writes && i < call.n ? call.permutation[own * call.n + i] : -1;
      found[slot] = -1;
    }
#pragma unroll (W == 1 ? N : 1)
    for (int q = 0; q < N; q++) {
      const int row = Group::of_row(order, q);
#pragma unroll
      for (int slot = 0; slot < OWN; slot++)
        if (row == Group::row(slot)) found[slot] = q;
    }
  }
};

template <class T> struct Block {
  const LuCall<T>& call;
  T *s, *y;
  int32_t* order;
  int ld;

  INLINE Block(const LuCall<T>& call, T* shared)
      : call(call), s(shared), y(s + (call.m | 1) * call.n),
        order(reinterpret_cast<int32_t*>(y + call.columns * call.n)), ld(call.m | 1) {}

  INLINE void run(long long b, int piece) {
    const int m = call.m, n = call.n, steps = min(m, n);
    const T* a = call.a + b * m * n;
    for (int e = threadIdx.x; e < m * n; e += blockDim.x) s[e / n + e % n * ld] = a[e];
    for (int i = threadIdx.x; i < m; i += blockDim.x)
      order[i] = call.task == SUBSTITUTE ? call.permutation[b * m + i] : i;
    __syncthreads();
    int exchanges = 0;
    if (call.task != SUBSTITUTE)
      lu_by_panels(s, ld, m, n, [&](int k, int row) {
        if (call.task == FACTOR) call.pivots[b * steps + k] = row;
        swap(order, k, row);
        exchanges += k != row;
      });
    if (call.task == FACTOR) {
      for (int e = threadIdx.x; e < m * n; e += blockDim.x) call.x[b * m * n + e] = s[e / n + e % n * ld];
      for (int i = threadIdx.x; i < m; i += blockDim.x) call.permutation[b * m + i] = order[i];
    } else if (call.task == DETERMINANT) {
      if (threadIdx.x < LANES) determinant(b, exchanges % 2 != 0);
    } else {
      const long long all = call.task == INVERSE ? n : call.nrhs;
      for (long long c = (long long)call.columns * piece; c < all; c += (long long)call.columns * call.pieces)
        solve(b, c, (int)min((long long)call.columns, all - c), all);
    }
    __syncthreads();
  }

  // By the first warp; its first lane alone has counted exchanges, and may be `odd`.
  INLINE void determinant(long long b, bool odd) {
    using R = RealOf<T>;
    T sign = make<T>(odd ? R(-1) : R(1));
    R sum = 0;
    for (int i = threadIdx.x; i < call.n; i += LANES) {
      T phase;
      R logarithm;
      determinant_part(s[i + i * ld], phase, logarithm);
      sign = sign * phase;
      sum = sum + logarithm;
    }
    for (int flip = LANES / 2; flip > 0; flip /= 2) sign = sign * Traits<T>::shuffle_xor(sign, flip);
    sum = warp_sum(sum);
    if (threadIdx.x == 0) {
      call.sign[b] = is_zero(sign) ? make<T>(0) : sign;
      call.logabs[b] = sum;
    }
  }

  // Columns c, ..., c + k - 1 of `all`, a warp for each.
  INLINE void solve(long long b, long long c, int k, long long all) {
    const int n = call.n;
    const T* right = call.b + b * n * all + c;
    T* x = call.x + b * n * all + c;
    const bool turned = call.task == SUBSTITUTE && call.op != PLAIN, adjoint = call.op == ADJOINT;
    for (int e = threadIdx.x; e < n * k; e += blockDim.x) {
      const int i = e / k, q = e % k, row = turned ? i : order[i];
      T& there = y[q * n + i];
      if (call.task == INVERSE) there = make<T>(row == c + q);
      else there = row >= 0 && row < n ? right[row * all + q] : not_a_number<T>();
      if (turned) x[i * all + q] = not_a_number<T>();
    }
    __syncthreads();
    for (int q = threadIdx.x / LANES; q < k; q += blockDim.x / LANES) {
      const auto plain = [&](int i, int j) { return s[i + j * ld]; };
      const auto other = [&](int i, int j) { return adjoint ? conj(s[j + i * ld]) : s[j + i * ld]; };
      if (turned) {
        solve_lower(y + q * n, n, false, other);
        solve_upper(y + q * n, n, true, other);
      } else {
        solve_lower(y + q * n, n, true, plain);
        solve_upper(y + q * n, n, false, plain);
      }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < n * k; e += blockDim.x) {
      const int i = e / k, q = e % k, row = turned ? order[i] : i;
      if (row >= 0 && row < n) x[row * all + q] = y[q * n + i];
    }
    __syncthreads();
  }
};
}  // namespace

#define INSTANCE(suffix, T) BY_ROWS(lu, LuCall, suffix, T)
FOR_SCALARS(INSTANCE)
BY_32_ROWS(lu, LuCall)
