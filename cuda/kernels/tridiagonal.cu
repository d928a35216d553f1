// Tridiagonal systems A X = B by elimination with row interchanges, the serial order of LAPACK's.
//
// Row i of A is dl[i], d[i], du[i] in columns i - 1, i, i + 1; dl[0] and du[m - 1] are not read.
// dl, d, du: [batch, m]; b and x: [batch, nrhs, m], each right-hand side contiguous, or [batch, m, nrhs] for
// solve_rows; they may be the same memory.
//
// A group of `width` lanes, a power of two up to 32, has one system: its lanes find the same U and have
// a right-hand side each. U's three diagonals go to scratch [3, m, batch], so that neighbouring groups
// write neighbours. blockDim is a multiple of 32.
//
// solve: partial pivoting (after xGTSV); a zero pivot gives what the division gives, inf and NaN.
// solve_rows: the same, but x is NaN where a pivot is zero.
// solve_perturbed: rows are compared relative to their sizes, and a pivot p too small for its
// right-hand side becomes p + sign(re p) delta, delta doubled from eps max|U| until the quotient is safe
// (after xLAGTF and xLAGTS).
#include "scalar.cuh"

namespace {
template <class T> struct Row {
  T diagonal, first, second;
};

// One step with partial pivoting: `row` is row i - 1 as it has become, `next` row i as given.
template <class T>
INLINE Row<T> step(Row<T>& row, T below, T d, T du, T& above_rhs, T& rhs) {
  // A NaN is not kept as the pivot: it must reach the multipliers.
  if (abs1(row.diagonal) >= abs1(below)) {
    const T multiplier = divide(below, row.diagonal);
    row.second = make<T>(0);
    rhs = rhs - multiplier * above_rhs;
    return {d - multiplier * row.first, du, make<T>(0)};
  }
  const T multiplier = divide(row.diagonal, below), first = row.first;
  row = {below, d, du};
  const T kept = above_rhs;
  above_rhs = rhs;
  rhs = kept - multiplier * above_rhs;
  return {first - multiplier * d, -(multiplier * du), make<T>(0)};
}

// One step with pivoting relative to the rows' sizes; `size` is that of `row`.
template <class T>
INLINE Row<T> step_scaled(Row<T>& row, RealOf<T>& size, T below, T d, T du, T& above_rhs, T& rhs) {
  using R = RealOf<T>;
  const R below_size = modulus(below) + modulus(d) + modulus(du);
  const R here = is_zero(row.diagonal) ? R(0) : modulus(row.diagonal) / size;
  row.second = make<T>(0);
  if (is_zero(below)) {
    size = below_size;
    return {d, du, make<T>(0)};
  }
  if (modulus(below) / below_size > here) {
    const T multiplier = divide(row.diagonal, below), first = row.first;
    row = {below, d, du};
    const T kept = above_rhs;
    above_rhs = rhs;
    rhs = kept - multiplier * above_rhs;
    return {first - multiplier * d, -(multiplier * du), make<T>(0)};
  }
  const T multiplier = divide(below, row.diagonal);
  size = below_size;
  rhs = rhs - multiplier * above_rhs;
  return {d - multiplier * row.first, du, make<T>(0)};
}

// rhs / pivot, the pivot moved away from zero until the quotient is finite.
template <class T> INLINE T perturbed_quotient(T rhs, T pivot, RealOf<T> least) {
  using R = RealOf<T>;
  const R small = Machine<R>::SAFE_MIN, large = R(1) / small;
  R perturbation = copysign(least, real(pivot));
  for (;;) {
    const R size = modulus(pivot);
    if (size < R(1)) {
      const bool tiny = size < small;
      const bool too_small =
          tiny ? size == 0 || modulus(rhs) * small > size : modulus(rhs) > size * large;
      if (too_small) {
        pivot = pivot + make<T>(perturbation);
        perturbation += perturbation;
        continue;
      }
      if (tiny) {
        rhs = scale(rhs, large);
        pivot = scale(pivot, large);
      }
    }
    return divide(rhs, pivot);
  }
}

// Where a system and a right-hand side lie, whose elements are `apart`, and U's diagonals, whose elements are
// `stride` apart.
template <class T> struct System {
  const T *dl, *d, *du, *b;
  T *x, *diagonal, *first, *second;
  size_t stride, apart;
  int m;
};

enum class Kind { PLAIN, ROWS, PERTURBED };

// U, and in x the right-hand side after the same steps; returns the least perturbation of a pivot. `singular`
// becomes true where a pivot is zero.
template <class T, Kind KIND> INLINE RealOf<T> eliminate(const System<T>& s, bool writes, bool& singular) {
  using R = RealOf<T>;
  constexpr bool PERTURBED = KIND == Kind::PERTURBED;
  Row<T> row = {s.d[0], s.m > 1 ? s.du[0] : make<T>(0), make<T>(0)};
  R size = modulus(row.diagonal) + modulus(row.first), largest = 0;
  T rhs = s.b[0];
  for (int i = 1; i <= s.m; i++) {
    T above = rhs;
    Row<T> next = {make<T>(0), make<T>(0), make<T>(0)};
    if (i < s.m) {
      const T beyond = i + 1 < s.m ? s.du[i] : make<T>(0);
      rhs = s.b[i * s.apart];
      next = PERTURBED ? step_scaled(row, size, s.dl[i], s.d[i], beyond, above, rhs)
                       : step(row, s.dl[i], s.d[i], beyond, above, rhs);
    }
    if (writes) {
      const size_t at = (i - 1) * s.stride;
      s.diagonal[at] = row.diagonal;
      s.first[at] = row.first;
      s.second[at] = row.second;
    }
    if (PERTURBED) {
      const R here = fmax(modulus(row.diagonal), fmax(modulus(row.first), modulus(row.second)));
      largest = fmax(largest, here);
    }
    s.x[(i - 1) * s.apart] = above;
    singular = singular || is_zero(row.diagonal);
    row = next;
  }
  const R least = largest * Machine<R>::EPSILON;
  return least == 0 ? Machine<R>::EPSILON : least;
}

template <class T, bool PERTURBED> INLINE void substitute(const System<T>& s, RealOf<T> least) {
  T one = make<T>(0), two = make<T>(0);
  for (int i = s.m - 1; i >= 0; i--) {
    T rest = s.x[i * s.apart];
    const size_t at = i * s.stride;
    if (i + 1 < s.m) rest = rest - s.first[at] * one;
    if (i + 2 < s.m) rest = rest - s.second[at] * two;
    const T pivot = s.diagonal[at];
    const T quotient = PERTURBED ? perturbed_quotient(rest, pivot, least) : divide(rest, pivot);
    two = one;
    one = quotient;
    s.x[i * s.apart] = quotient;
  }
}

// All lanes of a warp go through as many systems and right-hand sides, so that they meet.
template <class T, Kind KIND>
INLINE void solve_all(const T* dl, const T* d, const T* du, const T* b, T* x, T* scratch,
                      long long batch, int m, long long nrhs, int width) {
  const int groups = blockDim.x / width, lane = threadIdx.x % width;
  const long long stride = (long long)gridDim.x * groups;
  const long long own = (long long)blockIdx.x * groups + threadIdx.x / width;
  const size_t diagonal = (size_t)m * batch;
  for (long long start = 0; start < batch; start += stride) {
    const long long system = start + own;
    for (long long column = 0; column < nrhs; column += width) {
      const bool there = system < batch && column + lane < nrhs;
      const long long a = there ? system * m : 0;
      const long long beside = column + lane;
      const long long of_columns = (system * nrhs + beside) * m, of_rows = system * m * nrhs + beside;
      const long long at = !there ? 0 : KIND == Kind::ROWS ? of_rows : of_columns;
      T* u = scratch + (there ? system : 0);
      const System<T> s = {dl + a, d + a, du + a, b + at, x + at, u, u + diagonal, u + 2 * diagonal,
                           (size_t)batch, KIND == Kind::ROWS ? (size_t)nrhs : 1, m};
      RealOf<T> least = 0;
      bool singular = false;
      if (there) least = eliminate<T, KIND>(s, lane == 0, singular);
      __syncwarp();
      if (there) substitute<T, KIND == Kind::PERTURBED>(s, least);
      for (int i = 0; KIND == Kind::ROWS && singular && i < m; i++) s.x[i * s.apart] = not_a_number<T>();
      __syncwarp();
    }
  }
}
}  // namespace

#define SOLVE(name, kind, suffix, T)                                                              \
  extern "C" __global__ void __launch_bounds__(128)                                               \
      name##_##suffix(const T* dl, const T* d, const T* du, const T* b, T* x, T* scratch,         \
                      long long batch, int m, long long nrhs, int width) {                        \
    solve_all<T, kind>(dl, d, du, b, x, scratch, batch, m, nrhs, width);                          \
  }                                                                                               \
  KERNEL(name##_##suffix);
#define INSTANCE(suffix, T)                                             \
  SOLVE(tridiagonal_solve, Kind::PLAIN, suffix, T)                      \
  SOLVE(tridiagonal_solve_rows, Kind::ROWS, suffix, T)                  \
  SOLVE(tridiagonal_solve_perturbed, Kind::PERTURBED, suffix, T)
FOR_SCALARS(INSTANCE)
