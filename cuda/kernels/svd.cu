// Singular value decompositions A = U S V^H of batches of small column-major matrices, by one-sided Jacobi
// rotations (Hestenes; de Rijk; Demmel and Veselic, LAPACK working note 15; Drmac and Veselic, 169 and
// 170). A block per matrix, which lies in shared memory all the while.
//
// W, A or A^H so that it has no fewer rows than columns, becomes Y S: pairs of columns are rotated until
// all are orthogonal to working precision, and J collects the rotations, W J = Y S. Pairs of a step have
// no column in common; a group of lanes takes a pair. Columns of Y that W does not determine, because a
// value vanishes or Y is square, are unit vectors made orthogonal to the others.
//
// Values are scaled by a power of two, so that squares neither overflow nor vanish. s descends; v holds V,
// or V^H with `adjoint`. info: 0, `not_finite` where A is not (all results are NaN then), else the number
// of columns where rotations did not end; without info all results are NaN there.
//
// With `turned` the columns of V have the phases of phase.cuh's rule, U's follow by A V = U S, and those of
// either beyond min(m, n) have the rule of their own. A row-major matrix is its transpose by columns, of
// which V is the conjugate of its own U: so `adjoint` writes U by rows, and u is V^H by rows.
//
// Shared memory, for rows x columns = W's sizes: rows' columns, with vectors columns' columns and 2 rows
// elements, ' = | 1 so that neither rows nor columns collide in a bank; 2 max(rows, 32) numbers of the real
// type; 2 columns int32_t. The group has 8 or 32 lanes.
#include "phase.cuh"

namespace {
constexpr int THREADS = 512;
// As many as LAPACK's xGESVJ allows.
constexpr int SWEEPS = 30;
// Blocks of so many threads for which a processor shall have registers. With two of them 1000 matrices of
// 33 x 33 take 1.14 ms on an H200 in f32, with one 1.64. In f64, 1.70 and 2.27, two of them spill.
template <class T> constexpr int BLOCKS = sizeof(T) == sizeof(float) ? 2 : 1;

template <int GROUP, class T> INLINE T group_sum(T a) {
  for (int mask = GROUP / 2; mask > 0; mask /= 2) a = a + Traits<T>::shuffle_xor(a, mask);
  return a;
}

// Squares that are smaller belong to columns of no consequence: the largest entry is at least one.
template <class R> INLINE R vanishing() {
  return Machine<R>::SAFE_MIN / (Machine<R>::EPSILON * Machine<R>::EPSILON);
}

// The rotation that makes columns p and q orthogonal: p' = c p - s q e, q' = s p + c q e, |e| = 1, as
// Rutishauser has it (Numer. Math. 9, 1966), h = s / (1 + c): what is added to a column is as small as the
// angle, so that norms do not drift. The larger one becomes p', whose place is q's if `exchange` says so.
template <class T> struct Rotation {
  RealOf<T> s, h;
  T phase;
  bool exchange;
};

template <class T, int GROUP> INLINE void rotate(T* p, T* q, int count, Rotation<T> by) {
  for (int i = threadIdx.x % GROUP; i < count; i += GROUP) {
    const T x = p[i], y = q[i] * by.phase;
    const T first = x - scale(y + scale(x, by.h), by.s), second = y + scale(x - scale(y, by.h), by.s);
    p[i] = by.exchange ? second : first;
    q[i] = by.exchange ? first : second;
  }
}

// Whether columns p and q, which lanes of a group share, are to be rotated, and how. All lanes of a warp
// call it; those of a group that has no pair with `there` false.
template <class T, int GROUP>
INLINE bool find_rotation(const T* p, const T* q, int rows, bool there, Rotation<T>& by) {
  using R = RealOf<T>;
  R pp = 0, qq = 0;
  T pq = make<T>(0);
  for (int i = threadIdx.x % GROUP; there && i < rows; i += GROUP) {
    const T x = p[i], y = q[i];
    pp += square(x);
    qq += square(y);
    pq = pq + conj(x) * y;
  }
  pp = group_sum<GROUP>(pp);
  qq = group_sum<GROUP>(qq);
  pq = group_sum<GROUP>(pq);
  const R size = modulus(pq), cosine = 4 * Machine<R>::EPSILON * sqrt(R(rows));
  if (fmin(pp, qq) <= vanishing<R>() || size <= cosine * sqrt(pp) * sqrt(qq)) return false;
  // t = s / c solves t^2 + 2 z t = 1; of two solutions the smaller one.
  const R z = (qq - pp) / (2 * size), far = fabs(z);
  const R root = far < 1 / Machine<R>::EPSILON ? sqrt(1 + z * z) : far;
  const R t = copysign(1 / (far + root), z);
  const R c = 1 / sqrt(1 + t * t);
  by.s = c * t;
  by.h = by.s / (1 + c);
  by.phase = make<T>(real(pq) / size, -imag(pq) / size);
  by.exchange = pp < qq;
  return true;
}

// A sweep: each pair of columns once, by the tournament in which the last player stays and the others go
// round. True where any was rotated.
template <class T, int GROUP>
INLINE bool sweep(T* w, int ld, int rows, int columns, T* j, int ldj) {
  const int players = columns + columns % 2, groups = blockDim.x / GROUP;
  bool rotated = false;
  for (int step = 0; step < players - 1; step++) {
    for (int first = 0; first < players / 2; first += groups) {
      const int pair = first + threadIdx.x / GROUP;
      const int after = step + pair, before = step - pair;
      const int one = pair == 0 ? players - 1 : after < players - 1 ? after : after - (players - 1);
      const int other = before < 0 ? before + players - 1 : before;
      const int p = min(one, other), q = max(one, other);
      Rotation<T> by;
      const bool there = pair < players / 2 && q < columns;
      if (find_rotation<T, GROUP>(w + p * ld, w + q * ld, rows, there, by)) {
        rotate<T, GROUP>(w + p * ld, w + q * ld, rows, by);
        if (j) rotate<T, GROUP>(j + p * ldj, j + q * ldj, columns, by);
        rotated = true;
      }
    }
    __syncthreads();
  }
  return __syncthreads_or(rotated);
}

// The largest part of any entry of W, whether all are finite, by the whole block; `parts` has a place for
// each warp.
template <class T>
INLINE RealOf<T> largest_part(const T* w, int ld, int rows, int columns, RealOf<T>* parts) {
  using R = RealOf<T>;
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  R largest = 0;
  bool finite = true;
  for (int j = warp; j < columns; j += warps)
    for (int i = lane; i < rows; i += LANES) {
      const T x = w[i + j * ld];
      const R re = fabs(real(x)), im = fabs(imag(x));
      finite = finite && re <= Machine<R>::LARGEST && im <= Machine<R>::LARGEST;
      largest = fmax(largest, fmax(re, im));
    }
  for (int mask = LANES / 2; mask > 0; mask /= 2)
    largest = fmax(largest, __shfl_xor_sync(ALL_LANES, largest, mask));
  if (__any_sync(ALL_LANES, !finite)) largest = R(INFINITY);
  if (lane == 0) parts[warp] = largest;
  __syncthreads();
  for (int other = 0; other < warps; other++) largest = fmax(largest, parts[other]);
  __syncthreads();
  return largest;
}

// Vectors in memory: columns, or the adjoint of them.
template <class T> struct Vectors {
  T* first;
  // Those of a block are few enough.
  int down, across;
  bool conjugated;

  static INLINE Vectors columns(T* of, int rows) { return {of, 1, rows, false}; }
  static INLINE Vectors adjoint(T* of, int columns) { return {of, columns, 1, true}; }

  // Element i of vector k.
  INLINE T at(int i, int k) const {
    const T x = first[i * down + k * across];
    return conjugated ? conj(x) : x;
  }
  INLINE void set(int i, int k, T x) const { first[i * down + k * across] = conjugated ? conj(x) : x; }
};

// Column `at` of Y, rows x rows at the most, of which those before are there: a unit vector in which they
// have least part, less what is theirs, twice. `parts` says for each row how much of its unit vector they
// span, and is kept.
template <class T>
INLINE void complete(Vectors<T> y, int at, int rows, bool turned, RealOf<T>* parts, T* x, T* inner) {
  using R = RealOf<T>;
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  // Every warp finds the same row.
  int row = 0;
  for (int i = 1; i < rows; i++)
    if (parts[i] < parts[row]) row = i;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) x[i] = make<T>(i == row ? 1 : 0);
  __syncthreads();
  for (int turn = 0; turn < 2; turn++) {
    for (int k = warp; k < at; k += warps) {
      T sum = make<T>(0);
      for (int i = lane; i < rows; i += LANES) sum = sum + conj(y.at(i, k)) * x[i];
      sum = warp_sum(sum);
      if (lane == 0) inner[k] = sum;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows; i += blockDim.x)
      for (int k = 0; k < at; k++) x[i] = x[i] - y.at(i, k) * inner[k];
    __syncthreads();
  }
  R sum = 0;
  for (int i = lane; i < rows; i += LANES) sum += square(x[i]);
  const R squares = warp_sum(sum), norm = sqrt(squares);
  // Every warp finds the same.
  const Turn<T> turn = turned ? turn_of(x, rows, squares) : Turn<T>::none();
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    const T here = turn.of(make<T>(real(x[i]) / norm, imag(x[i]) / norm), i);
    y.set(i, at, here);
    parts[i] += square(here);
  }
  __syncthreads();
}

// What a call asks for, beside its operands.
struct Job {
  int m, n, u_columns, v_columns;
  bool vectors, adjoint, turned;
  int not_finite;
};

// All results of a matrix are NaN.
template <class T> INLINE void fail(const Job& job, RealOf<T>* s, T* u, T* v) {
  for (int i = threadIdx.x; i < min(job.m, job.n); i += blockDim.x) s[i] = RealOf<T>(NAN);
  if (!job.vectors) return;
  for (int e = threadIdx.x; e < job.m * job.u_columns; e += blockDim.x) u[e] = not_a_number<T>();
  for (int e = threadIdx.x; e < job.n * job.v_columns; e += blockDim.x) v[e] = not_a_number<T>();
}

// One matrix of a block's.
template <class T, int GROUP>
INLINE void decompose(const Job& job, const T* a, RealOf<T>* s, T* u, T* v, int32_t* info, T* shared) {
  using R = RealOf<T>;
  const int m = job.m, n = job.n;
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  const bool tall = m >= n, vectors = job.vectors;
  const int rows = max(m, n), columns = min(m, n), ld = rows | 1, ldj = columns | 1;
  T *const w = shared, *const j = vectors ? w + ld * columns : nullptr;
  T *const x = vectors ? j + ldj * columns : w + ld * columns, *const inner = x + (vectors ? rows : 0);
  R *const size = reinterpret_cast<R*>(inner + (vectors ? rows : 0)), *const parts = size + max(rows, LANES);
  int *const place = reinterpret_cast<int*>(parts + max(rows, LANES)), *const lead = place + columns;
  for (int e = threadIdx.x; e < m * n; e += blockDim.x) {
    if (tall) w[e % m + e / m * ld] = a[e];
    else w[e / m + e % m * ld] = conj(a[e]);
  }
  if (vectors)
    for (int e = threadIdx.x; e < columns * columns; e += blockDim.x)
      j[e % columns + e / columns * ldj] = make<T>(e % columns == e / columns ? 1 : 0);
  __syncthreads();
  const R largest = largest_part(w, ld, rows, columns, parts);
  if (!(largest <= Machine<R>::LARGEST)) {
    fail(job, s, u, v);
    if (info && threadIdx.x == 0) *info = job.not_finite;
    return;
  }
  const int power = largest > 0 ? -ilogb(largest) : 0;
  for (int k = warp; k < columns; k += warps)
    for (int i = lane; i < rows; i += LANES) w[i + k * ld] = shifted(w[i + k * ld], power);
  __syncthreads();
  int sweeps = 0;
  while (sweeps < SWEEPS && sweep<T, GROUP>(w, ld, rows, columns, j, ldj)) sweeps++;
  if (!info && sweeps == SWEEPS) return fail(job, s, u, v);
  for (int k = warp; k < columns; k += warps) {
    R sum = 0;
    for (int i = lane; i < rows; i += LANES) sum += square(w[i + k * ld]);
    sum = warp_sum(sum);
    if (lane == 0) size[k] = sum;
    if (!job.turned) continue;
    // V's vectors are J's columns, or W's, which are as long as their values.
    const Turn<T> turn = tall                    ? turn_of(j + k * ldj, columns, R(1))
                         : sum > vanishing<R>() ? turn_of(w + k * ld, rows, sum)
                                                : Turn<T>::none();
    if (lane == 0) {
      x[k] = turn.factor;
      lead[k] = turn.place;
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < columns; k += blockDim.x) {
    int before = 0;
    for (int other = 0; other < columns; other++)
      before += size[other] > size[k] || (size[other] == size[k] && other < k);
    place[k] = before;
    s[before] = scalbn(sqrt(size[k]), -power);
  }
  if (info && threadIdx.x == 0) *info = sweeps < SWEEPS ? 0 : columns;
  __syncthreads();
  if (!vectors) return;
  const Vectors<T> left = Vectors<T>::columns(u, m);
  const Vectors<T> right = job.adjoint ? Vectors<T>::adjoint(v, job.v_columns) : Vectors<T>::columns(v, n);
  const Vectors<T> y = tall ? left : right, other = tall ? right : left;
  const auto turned = [&](T here, int i, int k, bool leads) {
    return job.turned ? Turn<T>{x[k], leads ? lead[k] : -1}.of(here, i) : here;
  };
  for (int e = threadIdx.x; e < columns * columns; e += blockDim.x) {
    const int i = e % columns, k = e / columns;
    other.set(i, place[k], turned(j[i + k * ldj], i, k, tall));
  }
  for (int k = warp; k < columns; k += warps) {
    const R norm = sqrt(size[k]);
    for (int i = lane; size[k] > vanishing<R>() && i < rows; i += LANES) {
      const T here = w[i + k * ld];
      y.set(i, place[k], turned(make<T>(real(here) / norm, imag(here) / norm), i, k, !tall));
    }
  }
  int known = 0;
  for (int k = 0; k < columns; k++) known += size[k] > vanishing<R>();
  __syncthreads();
  const int y_columns = tall ? job.u_columns : job.v_columns;
  if (known == y_columns) return;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    R sum = 0;
    for (int k = 0; k < known; k++) sum += square(y.at(i, k));
    parts[i] = sum;
  }
  __syncthreads();
  for (int at = known; at < y_columns; at++) complete(y, at, rows, job.turned, parts, x, inner);
}

template <class T, int GROUP>
INLINE void gesvdj(const Job& job, const T* a, RealOf<T>* s, T* u, T* v, int32_t* info, long long batch,
                   T* shared) {
  const int m = job.m, n = job.n;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    decompose<T, GROUP>(job, a + b * m * n, s + b * min(m, n), u + b * m * job.u_columns,
                        v + b * n * job.v_columns, info ? info + b : nullptr, shared);
    __syncthreads();
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                          \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS<T>)                                   \
      gesvdj_##suffix(const T* a, RealOf<T>* s, T* u, T* v, int32_t* info, long long batch, int m,   \
                      int n, int u_columns, int v_columns, int vectors, int adjoint, int turned,     \
                      int not_finite, int group) {                                                   \
    SHARED_MEMORY(raw);                                                                              \
    T* shared = reinterpret_cast<T*>(raw);                                                           \
    const Job job = {m,           n,           u_columns,   v_columns, vectors != 0,                 \
                     adjoint != 0, turned != 0, not_finite};                                         \
    if (group == 8) gesvdj<T, 8>(job, a, s, u, v, info, batch, shared);                              \
    else gesvdj<T, 32>(job, a, s, u, v, info, batch, shared);                                        \
  }                                                                                                  \
  KERNEL(gesvdj_##suffix);
FOR_SCALARS(INSTANCE)
