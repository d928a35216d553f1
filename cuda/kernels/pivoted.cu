// QR with column pivoting, A P = Q R, of column-major matrices, in place, as xGEQP3: columns whose jpvt is not
// zero come first, in their order; of the others always the one of largest norm of what is left, the first of
// several, and one that holds NaN or inf before finite ones.
//
// geqp3: a block per matrix, in shared memory: m' n elements, m' = m | 1, then 2 n real ones.
//
// Larger ones lie in memory, and are factored by panels of PANEL reflectors (Quintana-Orti, Sun, Bischof 1998;
// LAPACK's xLAQPS): within a panel a column is brought up to date when its turn comes, and of the rows only the
// one that norms need; all else waits for one product at the panel's end. For column j of a panel:
//
//   geqp3_pivot: a block per matrix finds the column, brings it up to date and makes its reflector
//   geqp3_columns: a warp per column behind j: what the reflector makes of it, goes to G; row j; norms
//
// before the first of which geqp3_start has put fixed columns in front and geqp3_norms has the norms. A norm that
// is no longer known to half its digits (Drmac, Bujanovic 2008) is computed anew at once, from the column as it
// will be, so that panels need not end early, nor the host look.
#include "reflectors.cuh"

namespace {
constexpr int THREADS = 512;
constexpr int PANEL = 32;

// g: conj(F) of xLAQPS, for each column its PANEL elements; products: those of a panel's earlier reflectors with
// the new one; norms: of what is left of each column, then as computed last; fixed: columns that are not pivoted.
template <class T> struct PivotedCall {
  T* a;
  int32_t* jpvt;
  T* tau;
  T *g, *products;
  RealOf<T>* norms;
  int32_t* fixed;
  long long batch;
  int m, n, first, column;
};

template <class T> struct Pivoted {
  T *a, *tau, *g, *products;
  RealOf<T>*norms, *exact;
  int32_t *jpvt, *fixed;

  INLINE Pivoted(const PivotedCall<T>& call, long long b)
      : a(call.a + b * call.m * call.n), tau(call.tau + b * min(call.m, call.n)),
        g(call.g + b * call.n * PANEL), products(call.products + b * PANEL),
        norms(call.norms + b * 2 * call.n), exact(norms + call.n), jpvt(call.jpvt + b * call.n),
        fixed(call.fixed + b) {}
};

// What op makes of everybody's `own`, in every thread of the block.
template <class V, class F> INLINE V of_block(V own, F op) {
  __shared__ V all[THREADS / LANES];
  for (int flip = LANES / 2; flip > 0; flip /= 2) own = op(own, Traits<V>::shuffle_xor(own, flip));
  __syncthreads();
  if (threadIdx.x % LANES == 0) all[threadIdx.x / LANES] = own;
  __syncthreads();
  V found = all[0];
  const int warps = blockDim.x / LANES;
  for (int warp = 1; warp < warps; warp++) found = op(found, all[warp]);
  return found;
}

template <class T> INLINE void exchange(T& x, T& y) {
  const T kept = x;
  x = y;
  y = kept;
}

// Columns c and d of m rows, and their numbers, change places; by all threads of a block, which meet after it.
template <class T> INLINE void exchange_columns(T* a, int ld, int m, int32_t* jpvt, int c, int d) {
  for (int i = threadIdx.x; i < m; i += blockDim.x) exchange(a[i + c * (long long)ld], a[i + d * (long long)ld]);
  if (threadIdx.x == 0) exchange(jpvt[c], jpvt[d]);
}

// Numbers the columns from 1 in the order in which those that are fixed come first. Returns how many these are. The
// block meets before it returns.
template <class T> INLINE int arrange(T* a, int ld, int m, int n, int32_t* jpvt) {
  bool any = false;
  for (int j = threadIdx.x; j < n; j += blockDim.x) any = any || jpvt[j] != 0;
  any = __syncthreads_or(any);
  int fixed = 0;
  for (int j = 0; any && j < n; j++) {
    const bool here = jpvt[j] != 0;
    __syncthreads();
    if (threadIdx.x == 0) jpvt[j] = j + 1;
    __syncthreads();
    if (here && j != fixed) exchange_columns(a, ld, m, jpvt, j, fixed);
    fixed += here;
    __syncthreads();
  }
  for (int j = threadIdx.x; !any && j < n; j += blockDim.x) jpvt[j] = j + 1;
  return fixed;
}

// The column of largest norm from `first` on. The block meets.
template <class R> INLINE int largest_column(const R* norms, int first, int n) {
  R size = R(-1);
  for (int c = first + threadIdx.x; c < n; c += blockDim.x)
    size = fmax(size, norms[c] <= Machine<R>::LARGEST ? norms[c] : R(INFINITY));
  size = of_block(size, [](R x, R y) { return fmax(x, y); });
  int column = n;
  for (int c = first + threadIdx.x; c < n; c += blockDim.x) {
    const R here = norms[c] <= Machine<R>::LARGEST ? norms[c] : R(INFINITY);
    if (here == size) column = min(column, c);
  }
  return of_block(column, [](int x, int y) { return min(x, y); });
}

// The norm of what is left of a column, element(0) to element(m - 1), when `top` above it belongs to R; by a warp.
template <class T, class F>
INLINE void downdate(RealOf<T>& norm, RealOf<T>& exact, T top, int m, F element) {
  using R = RealOf<T>;
  const R before = norm, part = modulus(top) / before, ratio = before / exact;
  if (before == 0) return;
  const R left = fmax(R(0), R(1) - part * part);
  const bool lost = left * ratio * ratio <= sqrt(Machine<R>::EPSILON);
  const R after = lost ? warp_norm_of<T>(m, element) : before * sqrt(left);
  __syncwarp();
  if (threadIdx.x % LANES == 0) {
    norm = after;
    if (lost) exact = after;
  }
}

template <class T>
INLINE void geqp3(T* a, int32_t* jpvt, T* tau, long long batch, int m, int n, T* s) {
  using R = RealOf<T>;
  const int ld = m | 1, k_end = min(m, n);
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  R* const norms = reinterpret_cast<R*>(s + ld * n);
  R* const exact = norms + n;
  __shared__ T shared_tau;
  for (long long b = blockIdx.x; b < batch; b += gridDim.x) {
    T* const ab = a + b * m * n;
    int32_t* const jb = jpvt + b * n;
    for (int e = threadIdx.x; e < m * n; e += blockDim.x) s[e % m + e / m * ld] = ab[e];
    const int fixed = arrange(s, ld, m, n, jb);
    for (int c = warp; c < n; c += warps) {
      const R norm = warp_norm(s + c * ld, m);
      if (lane == 0) norms[c] = exact[c] = norm;
    }
    __syncthreads();
    for (int k = 0; k < k_end; k++) {
      const int p = k < fixed ? k : largest_column(norms, k, n);
      if (p != k) {
        __syncthreads();
        exchange_columns(s, ld, m, jb, k, p);
        if (threadIdx.x == 0) norms[p] = norms[k], exact[p] = exact[k];
        __syncthreads();
      }
      if (warp == 0) {
        T own;
        reflector(s + k * ld, k, m, own);
        if (lane == 0) shared_tau = tau[b * k_end + k] = own;
      }
      __syncthreads();
      reflect(s, ld, k, m, conj(shared_tau), k + 1, n, warp, warps);
      __syncwarp();
      for (int c = k + 1 + warp; c < n; c += warps) {
        const T* below = s + c * ld + k + 1;
        downdate(norms[c], exact[c], s[c * ld + k], m - k - 1, [=](int i) { return below[i]; });
      }
      __syncthreads();
    }
    for (int e = threadIdx.x; e < m * n; e += blockDim.x) ab[e] = s[e % m + e / m * ld];
    __syncthreads();
  }
}

template <class T> INLINE void start(const PivotedCall<T>& call) {
  for (long long b = blockIdx.x; b < call.batch; b += gridDim.x) {
    const Pivoted<T> p(call, b);
    const int fixed = arrange(p.a, call.m, call.m, call.n, p.jpvt);
    if (threadIdx.x == 0) *p.fixed = fixed;
  }
}

template <class T, class F> INLINE void by_columns(const PivotedCall<T>& call, int first, F body) {
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  const long long columns = call.n - first, all = call.batch * columns;
  for (long long at = (long long)blockIdx.x * warps + warp; at < all; at += (long long)gridDim.x * warps)
    body(Pivoted<T>(call, at / columns), first + (int)(at % columns), lane);
}

template <class T> INLINE void norms(const PivotedCall<T>& call) {
  by_columns(call, 0, [&](const Pivoted<T>& p, int c, int lane) {
    const RealOf<T> norm = warp_norm(p.a + (long long)c * call.m, call.m);
    if (lane == 0) p.norms[c] = p.exact[c] = norm;
  });
}

template <class T> INLINE void pivot(const PivotedCall<T>& call) {
  using R = RealOf<T>;
  const int m = call.m, n = call.n, j = call.column, known = j - call.first;
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
  const auto larger = [](R x, R y) { return fmax(x, y); };
  const auto sum_of = [](R x, R y) { return x + y; };
  for (long long b = blockIdx.x; b < call.batch; b += gridDim.x) {
    const Pivoted<T> p(call, b);
    const int chosen = j < *p.fixed ? j : largest_column(p.norms, j, n);
    if (chosen != j) {
      __syncthreads();
      exchange_columns(p.a, m, m, p.jpvt, j, chosen);
      for (int t = threadIdx.x; t < known; t += blockDim.x)
        exchange(p.g[(long long)j * PANEL + t], p.g[(long long)chosen * PANEL + t]);
      if (threadIdx.x == 0) p.norms[chosen] = p.norms[j], p.exact[chosen] = p.exact[j];
      __syncthreads();
    }
    T* const column = p.a + (long long)j * m;
    const T* const panel = p.a + (long long)call.first * m;
    const T* const g = p.g + (long long)j * PANEL;
    // The column as the panel's reflectors have made it, and its reflector, after xLARFG.
    R largest = 0;
    bool odd = false;
    for (int i = j + threadIdx.x; i < m; i += blockDim.x) {
      T x = column[i];
      for (int t = 0; t < known; t++) x = x - panel[i + (long long)t * m] * g[t];
      column[i] = x;
      if (i == j) continue;
      const R here = fmax(fabs(real(x)), fabs(imag(x)));
      odd = odd || real(x) != real(x) || imag(x) != imag(x);
      largest = fmax(largest, here);
    }
    odd = __syncthreads_or(odd);
    largest = of_block(largest, larger);
    R sum = 0;
    const bool scaled = largest > 0 && largest <= Machine<R>::LARGEST;
    for (int i = j + 1 + threadIdx.x; scaled && i < m; i += blockDim.x)
      sum += square(make<T>(real(column[i]) / largest, imag(column[i]) / largest));
    sum = of_block(sum, sum_of);
    const R norm = odd ? R(NAN) : scaled ? largest * sqrt(sum) : largest;
    const T alpha = column[j];
    const bool nothing = norm == 0 && imag(alpha) == 0;
    const R beta = -copysign(hypot(modulus(alpha), norm), real(alpha));
    const T tau = nothing ? make<T>(0) : make<T>((beta - real(alpha)) / beta, -imag(alpha) / beta);
    const T lead = alpha - make<T>(beta);
    __syncthreads();
    for (int i = j + 1 + threadIdx.x; !nothing && i < m; i += blockDim.x)
      column[i] = divide(column[i], lead);
    if (threadIdx.x == 0) {
      p.tau[j] = tau;
      if (!nothing) column[j] = make<T>(beta);
    }
    __syncthreads();
    for (int t = warp; t < known; t += warps) {
      const T* const v = panel + (long long)t * m;
      T dot = make<T>(0);
      for (int i = j + lane; i < m; i += LANES) dot = dot + (i == j ? conj(v[i]) : conj(v[i]) * column[i]);
      dot = warp_sum(dot);
      if (lane == 0) p.products[t] = -(tau * dot);
    }
    __syncthreads();
  }
}

template <class T> INLINE void columns(const PivotedCall<T>& call) {
  const int m = call.m, j = call.column, known = j - call.first;
  by_columns(call, j + 1, [&](const Pivoted<T>& p, int c, int lane) {
    const T* const v = p.a + (long long)j * m;
    const T* const panel = p.a + (long long)call.first * m;
    T* const column = p.a + (long long)c * m;
    T* const g = p.g + (long long)c * PANEL;
    T dot = make<T>(0);
    for (int i = j + lane; i < m; i += LANES) dot = dot + (i == j ? conj(column[i]) : conj(column[i]) * v[i]);
    const bool earlier = lane < known;
    const T own = earlier ? g[lane] : make<T>(0);
    const T correction = earlier ? conj(own) * p.products[lane] : make<T>(0);
    const T fresh = conj(p.tau[j] * warp_sum(dot) + warp_sum(correction));
    const T row = earlier ? panel[j + (long long)lane * m] * own : make<T>(0);
    const T top = column[j] - warp_sum(row) - fresh;
    __syncwarp();
    if (lane == 0) {
      g[known] = fresh;
      column[j] = top;
    }
    __syncwarp();
    downdate(p.norms[c], p.exact[c], top, m - j - 1, [=](int i) {
      T x = column[j + 1 + i];
      for (int t = 0; t <= known; t++) x = x - panel[j + 1 + i + (long long)t * m] * g[t];
      return x;
    });
  });
}
}  // namespace

#define STEP(name, suffix, T)                                            \
  extern "C" __global__ void __launch_bounds__(THREADS, 2)               \
      geqp3_##name##_##suffix(const __grid_constant__ PivotedCall<T> call) { \
    name<T>(call);                                                       \
  }                                                                      \
  KERNEL(geqp3_##name##_##suffix);
#define INSTANCE(suffix, T)                                                                  \
  extern "C" __global__ void __launch_bounds__(THREADS, 1)                                   \
      geqp3_block_##suffix(T* a, int32_t* jpvt, T* tau, long long batch, int m, int n) {     \
    SHARED_MEMORY(raw);                                                                      \
    geqp3<T>(a, jpvt, tau, batch, m, n, reinterpret_cast<T*>(raw));                          \
  }                                                                                          \
  KERNEL(geqp3_block_##suffix);                                                              \
  STEP(start, suffix, T)                                                                     \
  STEP(norms, suffix, T)                                                                     \
  STEP(pivot, suffix, T)                                                                     \
  STEP(columns, suffix, T)
FOR_SCALARS(INSTANCE)
