// Batches of small row-major Hermitian matrices: A V = V diag(w) by two-sided Jacobi rotations, in one
// launch.
//
// a: [n, n], of which a triangle is read, or the mean with the adjoint; w: [count], the eigenvalues from
// place `start` on of all in ascending order; v: [n, count], their vectors as columns, or null where the
// values alone are wanted. v may be a where it is as large. A vector has the phase of docs/numerics.md. w and
// v are NaN where what is read is not finite, or rotations do not end.
//
// A sweep meets each pair of rows once, in rounds of pairs that have no row in common (Brent and Luk, SIAM J.
// Sci. Stat. Comput. 6, 1985): a round finds the rotation of each pair, J, then A is J^H A J, by squares of
// two pairs each, and V is V J. Sweeps end where all that is beside the diagonal is below the roundoff of A's
// largest entry. A rotation for less would be none, so that a matrix that is done waits for its neighbours.
//
// `group` lanes of a warp have a matrix (eigh_warp), or a block (eigh_block): no fewer than n. Each has
// `bytes` of shared memory, a multiple of 16, for what `Workspace` says.
#include "scalar.cuh"

namespace {
// As many as LAPACK's xGESVJ allows.
constexpr int SWEEPS = 30;
// Threads of a block at the most, and the blocks for which a processor shall have registers: as in svd.cu.
constexpr int THREADS = 512;
template <class T> constexpr int BLOCKS = sizeof(T) == sizeof(float) ? 2 : 1;
// The same of blocks of 128: so nvcc 13.0 spills no register for sm_75 to sm_120. Unsaid it spills three words
// of f64 for sm_100 and of c64 for sm_90, and as many of f64 if there shall be 8. A processor of sm_75 has no
// more than 8; from order 8 on shared memory leaves room for fewer in f64.
template <class T> constexpr int BLOCKS_OF_WARPS = sizeof(RealOf<T>) == sizeof(float) ? 8 : 7;
// Of the root of a vector's mean square, the least modulus of the component that is made real and positive.
constexpr double PART = 0.4869;

template <class T> struct EighCall {
  const T* a;
  T* v;
  RealOf<T>* w;
  long long batch;
  int n, start, count, group, upper, mean, bytes;
};

// The threads that have a matrix.
template <bool BLOCK> struct Team {
  int thread, size;

  explicit INLINE Team(int group)
      : thread(BLOCK ? threadIdx.x : threadIdx.x % group), size(BLOCK ? blockDim.x : group) {}

  static INLINE void meet() {
    if (BLOCK) __syncthreads();
    else __syncwarp();
  }
  // The largest of what the threads have, none of it NaN. They meet.
  template <class R> INLINE R largest(R x) const {
    for (int flip = (BLOCK ? LANES : size) / 2; flip > 0; flip /= 2)
      x = fmax(x, __shfl_xor_sync(ALL_LANES, x, flip));
    if constexpr (BLOCK) {
      __shared__ R parts[THREADS / LANES];
      if (thread % LANES == 0) parts[thread / LANES] = x;
      __syncthreads();
      for (int warp = 0; warp < size / LANES; warp++) x = fmax(x, parts[warp]);
    }
    meet();
    return x;
  }
  // Whether it holds for a matrix of those that threads which meet have.
  static INLINE bool any(bool here) { return BLOCK ? here : __any_sync(ALL_LANES, here); }
};

INLINE int row(int i) { return i * (i + 1) / 2; }

// A matrix in shared memory: the lower triangle by rows, of order `players`, an even number, for which a row
// of zeros is added; V by columns; the rotations of a round, and which rows they are of; for each place among
// all eigenvalues which one has it, and for each vector which component has its phase.
template <class T> struct Workspace {
  using R = RealOf<T>;
  int n, players, pairs, ld;
  T *a, *v, *sigma;
  R* tau;
  int *first, *second, *place, *lead;

  INLINE Workspace(unsigned char* s, int order, bool vectors)
      : n(order), players(order + order % 2), pairs(players / 2), ld(order | 1),
        a(reinterpret_cast<T*>(s)), v(a + row(players)), sigma(v + (vectors ? ld * n : 0)),
        tau(reinterpret_cast<R*>(sigma + pairs)), first(reinterpret_cast<int*>(tau + pairs)),
        second(first + pairs), place(second + pairs), lead(place + n) {}

  INLINE T at(int i, int j) const { return i >= j ? a[row(i) + j] : conj(a[row(j) + i]); }
  INLINE void set(int i, int j, T x) const {
    if (i >= j) a[row(i) + j] = x;
    else a[row(j) + i] = conj(x);
  }
};

// x' = c x - sigma y, y' = conj(sigma) x + c y, c = 1 - tau, as Rutishauser has it (Numer. Math. 9, 1966):
// what is added is as small as the angle, so that norms do not drift.
template <class T> INLINE void rotate(T& x, T& y, T sigma, RealOf<T> tau) {
  const T kept = x;
  x = x - (scale(x, tau) + sigma * y);
  y = y + (conj(sigma) * kept - scale(y, tau));
}

// The lower triangle of A, its largest part scaled to at least one and less than two, and V = I. Returns by
// which power of two; `fine` says whether all is finite, for what is not is zero from here on.
template <class T, bool BLOCK>
INLINE int fetch(const EighCall<T>& call, const T* from, bool there, const Team<BLOCK>& team,
                 const Workspace<T>& s, bool& fine) {
  using R = RealOf<T>;
  const int n = s.n;
  R largest = 0;
  for (int e = team.thread; there && e < n * n; e += team.size) {
    const int i = e / n, j = e % n;
    if (call.upper ? j < i : j > i) continue;
    T x = from[e];
    if (call.mean) x = scale(x + conj(from[j * n + i]), R(0.5));
    if (i == j) x = make<T>(real(x));
    s.set(i, j, x);
    const R re = fabs(real(x)), im = fabs(imag(x));
    const bool finite = re <= Machine<R>::LARGEST && im <= Machine<R>::LARGEST;
    largest = fmax(largest, finite ? fmax(re, im) : R(INFINITY));
  }
  largest = team.largest(largest);
  fine = largest <= Machine<R>::LARGEST;
  const int power = fine && largest > 0 ? -ilogb(largest) : 0;
  for (int e = team.thread; e < row(s.players); e += team.size) {
    const bool known = there && fine && e < row(n);
    s.a[e] = known ? make<T>(scalbn(real(s.a[e]), power), scalbn(imag(s.a[e]), power)) : make<T>(0);
  }
  for (int e = team.thread; call.v && e < n * n; e += team.size)
    s.v[e % n + e / n * s.ld] = make<T>(e % n == e / n);
  Team<BLOCK>::meet();
  return power;
}

// The largest |re| + |im| beside the diagonal.
template <class T, bool BLOCK>
INLINE RealOf<T> largest_beside(const Team<BLOCK>& team, const Workspace<T>& s) {
  RealOf<T> largest = 0;
  for (int e = team.thread; e < s.n * s.n; e += team.size) {
    const int i = e / s.n, j = e % s.n;
    if (i > j) largest = fmax(largest, abs1(s.a[row(i) + j]));
  }
  return team.largest(largest);
}

// The rotation of a pair in a round, by the tournament in which the last player stays and the others go
// round.
template <class T> INLINE void find_rotation(const Workspace<T>& s, int round, int pair) {
  using R = RealOf<T>;
  const int turns = s.players - 1, after = round + pair, before = round - pair;
  const int one = pair == 0 ? turns : after < turns ? after : after - turns;
  const int other = before < 0 ? before + turns : before;
  const int p = min(one, other), q = max(one, other);
  T &pp = s.a[row(p) + p], &qq = s.a[row(q) + q], &qp = s.a[row(q) + p];
  T sigma = make<T>(0);
  R tau = 0;
  if (abs1(qp) > Machine<R>::EPSILON) {
    const R size = sqrt(square(qp)), z = (real(qq) - real(pp)) / (2 * size);
    // t = s / c solves t^2 + 2 z t = 1; of two solutions the smaller one.
    const R t = copysign(1 / (fabs(z) + sqrt(1 + z * z)), z);
    const R c = 1 / sqrt(1 + t * t), sine = c * t;
    tau = sine * (sine / (1 + c));
    sigma = scale(qp, sine / size);
    pp = make<T>(real(pp) - t * size);
    qq = make<T>(real(qq) + t * size);
    qp = make<T>(0);
  }
  s.sigma[pair] = sigma;
  s.tau[pair] = tau;
  s.first[pair] = p;
  s.second[pair] = q;
}

// J^H A J where the rows of one pair meet the columns of another.
template <class T> INLINE void rotate_square(const Workspace<T>& s, int one, int other) {
  const T down = conj(s.sigma[one]), across = s.sigma[other];
  if (is_zero(down) && is_zero(across)) return;
  const int p = s.first[one], q = s.second[one], k = s.first[other], l = s.second[other];
  T pk = s.at(p, k), pl = s.at(p, l), qk = s.at(q, k), ql = s.at(q, l);
  rotate(pk, pl, across, s.tau[other]);
  rotate(qk, ql, across, s.tau[other]);
  rotate(pk, qk, down, s.tau[one]);
  rotate(pl, ql, down, s.tau[one]);
  s.set(p, k, pk);
  s.set(p, l, pl);
  s.set(q, k, qk);
  s.set(q, l, ql);
}

template <class T, bool BLOCK>
INLINE void sweep(const Team<BLOCK>& team, const Workspace<T>& s, bool vectors) {
  const int n = s.n, pairs = s.pairs, together = team.size / n, i = team.thread % n;
  for (int round = 0; round < s.players - 1; round++) {
    for (int pair = team.thread; pair < pairs; pair += team.size) find_rotation(s, round, pair);
    Team<BLOCK>::meet();
    // Each pair with the next ones, as far as those have not met it.
    for (int at = team.thread; at < pairs * (pairs - 1) / 2; at += team.size) {
      const int one = at % pairs, other = one + 1 + at / pairs;
      rotate_square(s, one, other < pairs ? other : other - pairs);
    }
    const bool turns = vectors && team.thread < together * n;
    for (int pair = team.thread / n; turns && pair < pairs; pair += together) {
      const T sigma = s.sigma[pair];
      if (is_zero(sigma)) continue;
      rotate(s.v[i + s.first[pair] * s.ld], s.v[i + s.second[pair] * s.ld], sigma, s.tau[pair]);
    }
    Team<BLOCK>::meet();
  }
}

// Those eigenvalues that are wanted, NaN where there are none, and the place of all.
template <class T, bool BLOCK>
INLINE void put_values(const EighCall<T>& call, const Team<BLOCK>& team, const Workspace<T>& s, int power,
                       bool known, RealOf<T>* w) {
  using R = RealOf<T>;
  for (int k = team.thread; k < s.n; k += team.size) {
    const R value = real(s.a[row(k) + k]);
    int before = 0;
    for (int other = 0; other < s.n; other++) {
      const R there = real(s.a[row(other) + other]);
      before += there < value || (there == value && other < k);
    }
    s.place[before] = k;
    const int at = before - call.start;
    if (at >= 0 && at < call.count) w[at] = known ? scalbn(value, -power) : R(NAN);
  }
}

// Their vectors: the first component that is not small is real and positive.
template <class T, bool BLOCK>
INLINE void put_vectors(const EighCall<T>& call, const Team<BLOCK>& team, const Workspace<T>& s, bool there,
                        bool known, T* v) {
  using R = RealOf<T>;
  const int n = s.n, count = call.count;
  const R least = R(PART / sqrt((double)n));
  // In the place of A.
  T* factor = s.a;
  for (int k = team.thread; k < n; k += team.size) {
    const T* x = s.v + k * s.ld;
    int i = 0;
    while (i < n - 1 && square(x[i]) < least * least) i++;
    const R size = sqrt(square(x[i]));
    factor[k] = make<T>(real(x[i]) / size, -imag(x[i]) / size);
    s.lead[k] = i;
  }
  Team<BLOCK>::meet();
  for (int e = team.thread; there && e < n * count; e += team.size) {
    const int i = e / count, k = s.place[call.start + e % count];
    const T x = factor[k] * s.v[i + k * s.ld];
    v[e] = !known ? not_a_number<T>() : i == s.lead[k] ? make<T>(real(x)) : x;
  }
}

// Matrix b of the batch, or none, by a team that meets others, before this and after it.
template <class T, bool BLOCK>
INLINE void decompose(const EighCall<T>& call, long long b, const Workspace<T>& s) {
  using R = RealOf<T>;
  const Team<BLOCK> team(call.group);
  const bool there = b < call.batch;
  bool fine;
  const int power = fetch(call, call.a + (there ? b * call.n * call.n : 0), there, team, s, fine);
  R beside = largest_beside(team, s);
  for (int sweeps = 0; sweeps < SWEEPS && Team<BLOCK>::any(beside > Machine<R>::EPSILON); sweeps++) {
    sweep(team, s, call.v != nullptr);
    beside = largest_beside(team, s);
  }
  const bool known = fine && beside <= Machine<R>::EPSILON;
  if (there) put_values(call, team, s, power, known, call.w + b * call.count);
  Team<BLOCK>::meet();
  const long long vectors = there ? b * call.n * call.count : 0;
  if (call.v != nullptr) put_vectors(call, team, s, there, known, call.v + vectors);
  Team<BLOCK>::meet();
}
}  // namespace

#define INSTANCE(suffix, T)                                                                         \
  extern "C" __global__ void __launch_bounds__(128, BLOCKS_OF_WARPS<T>)                             \
      eigh_warp_##suffix(const __grid_constant__ EighCall<T> call) {                                \
    SHARED_MEMORY(raw);                                                                             \
    const int groups = blockDim.x / call.group, own = threadIdx.x / call.group;                     \
    const Workspace<T> s(raw + own * call.bytes, call.n, call.v != nullptr);                        \
    for (long long first = (long long)blockIdx.x * groups; first < call.batch;                      \
         first += (long long)gridDim.x * groups)                                                    \
      decompose<T, false>(call, first + own, s);                                                    \
  }                                                                                                 \
  KERNEL(eigh_warp_##suffix);                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS<T>)                                  \
      eigh_block_##suffix(const __grid_constant__ EighCall<T> call) {                               \
    SHARED_MEMORY(raw);                                                                             \
    const Workspace<T> s(raw, call.n, call.v != nullptr);                                           \
    for (long long b = blockIdx.x; b < call.batch; b += gridDim.x) decompose<T, true>(call, b, s);  \
  }                                                                                                 \
  KERNEL(eigh_block_##suffix);
FOR_SCALARS(INSTANCE)
