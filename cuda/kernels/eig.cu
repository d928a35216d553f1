// Batches of small row-major matrices without symmetry: eigenvalues, and right eigenvectors A V = V diag(w). A
// warp has a matrix, in shared memory all the while (francis.cuh).
//
// a: [n, n]; w: [n] and v: [n, n] are complex, v null where values alone are wanted. Of a real matrix a
// conjugate pair is adjacent, the one with positive imaginary part first. Columns of V have 2-norm one, and
// their component of largest modulus, the first of those within TIE roundings of it, is real and positive. w
// and v are NaN where A is not finite or does not converge.
//
// A is scaled by powers of two on both sides, so that rows and columns are as long as each other (Parlett and
// Reinsch, Numer. Math. 13, 1969; in the 2-norm as James, Langou and Lowery, arXiv:1401.5766), and brought to
// Schur form. A lane has a vector of T, by back-substitution (xTREVC), which Z and the scaling bring to A's.
//
// Shared memory for each warp, n' = n | 1: n' n elements, with vectors twice as many and n' n complex numbers;
// n numbers of the real type; in all a multiple of 16 bytes.
#include "francis.cuh"

namespace {
constexpr int TIE = 128;
// Rounds of the scaling, of which each that goes on shortens a row and a column together by a twentieth.
constexpr int ROUNDS = 16;

template <class T> struct EigCall {
  using R = RealOf<T>;
  const T* a;
  Complex<R> *w, *v;
  long long batch;
  int n;

  INLINE int elements() const { return (n | 1) * n; }
  INLINE int bytes() const {
    const int vectors = v ? elements() * (int)(sizeof(T) + sizeof(Complex<R>)) : 0;
    return (vectors + elements() * (int)sizeof(T) + n * (int)sizeof(R) + 15) / 16 * 16;
  }
};

template <class R> INLINE Complex<R> wide(R x) { return {x, 0}; }
template <class R> INLINE Complex<R> wide(Complex<R> x) { return x; }

// A = D B D^-1: scales[i] is D's. Norms with the diagonal, or a small element is made as large as others
// are made small, and B has other eigenvalues by rounding (James, Langou and Lowery, arXiv:1401.5766).
template <class T> INLINE void balance(const Form<T>& form, RealOf<T>* scales) {
  using R = RealOf<T>;
  constexpr R FAR = 1 / (Machine<R>::EPSILON * Machine<R>::EPSILON);
  const int lane = form.lane(), n = form.n;
  for (int i = lane; i < n; i += LANES) scales[i] = 1;
  __syncwarp();
  bool more = true;
  for (int round = 0; more && round < ROUNDS; round++) {
    more = false;
    for (int i = 0; i < n; i++) {
      R column = 0, row = 0;
      for (int k = lane; k < n; k += LANES) {
        column += square(form.at(k, i));
        row += square(form.at(i, k));
      }
      column = sqrt(warp_sum(column));
      row = sqrt(warp_sum(row));
      if (column == 0 || row == 0) continue;
      const R before = column + row, own = scales[i];
      R factor = 1;
      for (; column < row / 2; column *= 2, row /= 2) factor *= 2;
      for (; row < column / 2; column /= 2, row *= 2) factor /= 2;
      const R scale_of_i = own * factor;
      if (column + row >= R(0.95) * before || scale_of_i > FAR || scale_of_i < 1 / FAR) continue;
      more = true;
      __syncwarp();
      for (int k = lane; k < n; k += LANES)
        if (k != i) {
          form.at(k, i) = scale(form.at(k, i), factor);
          form.at(i, k) = scale(form.at(i, k), 1 / factor);
        }
      if (lane == 0) scales[i] = scale_of_i;
      __syncwarp();
    }
  }
}

// What a lane needs for one vector.
template <class T> struct Vector {
  using R = RealOf<T>;
  using C = Complex<R>;
  static constexpr bool COMPLEX = Form<T>::COMPLEX;

  const Form<T>& form;
  C* x;
  C value;
  R smallest;

  // The row of the other of a pair of which row k is: k where it stands alone.
  static INLINE int partner(const Form<T>& form, int k) {
    if (COMPLEX) return k;
    if (k + 1 < form.n && !is_zero(form.at(k + 1, k))) return k + 1;
    return k > 0 && !is_zero(form.at(k, k - 1)) ? k - 1 : k;
  }
  static INLINE C value_of(const Form<T>& form, int k) {
    const int other = partner(form, k);
    if (other == k) return wide(form.at(k, k));
    const R size = sqrt(modulus(form.at(k, other))) * sqrt(modulus(form.at(other, k)));
    return {real(form.at(k, k)), other > k ? size : -size};
  }

  // That of T for the value in row k; returns its last row.
  INLINE int substitute(int k) {
    const int other = partner(form, k), last = max(k, other);
    for (int i = 0; i < form.n; i++) x[i] = {0, 0};
    int row = k - 1;
    x[k] = {1, 0};
    if (other != k) {
      const int top = min(k, other);
      const R b = real(form.at(top, top + 1)), c = real(form.at(top + 1, top));
      const bool upper = fabs(b) >= fabs(c);
      x[top] = upper ? C{1, 0} : C{-value.im / c, 0};
      x[top + 1] = upper ? C{0, value.im / b} : C{0, 1};
      row = top - 1;
    }
    for (; row >= 0; row--) {
      C right = rest(row, row + 1, last);
      const bool pair = !COMPLEX && row > 0 && !is_zero(form.at(row, row - 1));
      if (!pair) {
        const C pivot = wide(form.at(row, row)) - value;
        x[row] = quotient(right, pivot, right, last);
        continue;
      }
      // [d b; c d] [x; y] = [above; right], by elimination from the larger one of d and c.
      C above = rest(row - 1, row + 1, last);
      const C d = wide(form.at(row, row)) - value;
      const R b = real(form.at(row - 1, row)), c = real(form.at(row, row - 1));
      if (abs1(d) >= fabs(c)) {
        const C m = divide(C{c, 0}, d);
        C bottom = right - m * above;
        x[row] = quotient(bottom, d - scale(m, b), above, last);
        x[row - 1] = quotient(above - scale(x[row], b), d, above, last);
      } else {
        const C m = scale(d, 1 / c);
        C bottom = above - m * right;
        x[row] = quotient(bottom, C{b, 0} - m * d, right, last);
        x[row - 1] = quotient(right - d * x[row], C{c, 0}, right, last);
      }
      row--;
    }
    return last;
  }

 private:
  INLINE C rest(int row, int first, int last) const {
    C sum = {0, 0};
    for (int j = first; j <= last; j++) sum = sum - wide(form.at(row, j)) * x[j];
    return sum;
  }
  // a / by, where by is no less than what rounding makes of nothing. Where it were too large, all of the vector
  // and `beside` are made smaller.
  INLINE C quotient(C a, C by, C& beside, int last) {
    constexpr R LARGE = Machine<R>::EPSILON / Machine<R>::SAFE_MIN;
    if (abs1(by) < smallest) by = {smallest, 0};
    const R size = abs1(a);
    if (abs1(by) < 1 && size > abs1(by) * LARGE) {
      const R smaller = 1 / size;
      for (int i = 0; i <= last; i++) x[i] = scale(x[i], smaller);
      beside = scale(beside, smaller);
      a = scale(a, smaller);
    }
    return divide(a, by);
  }
};

// Column k of V, of which x has the vector of T, up to row `last`.
template <class T>
INLINE void finish(const Form<T>& form, const RealOf<T>* scales, Complex<RealOf<T>>* x, int last,
                   Complex<RealOf<T>>* v) {
  using R = RealOf<T>;
  using C = Complex<R>;
  const int n = form.n;
  R size = 0, squares = 0, largest = 0;
  for (int j = 0; j <= last; j++) size = fmax(size, abs1(x[j]));
  for (int j = 0; j <= last; j++) x[j] = {x[j].re / size, x[j].im / size};
  for (int i = 0; i < n; i++) {
    C sum = {0, 0};
    for (int j = 0; j <= last; j++) sum = sum + wide(form.z[i + j * form.ld]) * x[j];
    sum = scale(sum, scales[i]);
    v[i * n] = sum;
    squares += square(sum);
    largest = fmax(largest, square(sum));
  }
  const R least = sqrt(largest) * (1 - TIE * Machine<R>::EPSILON), norm = sqrt(squares);
  int place = 0;
  while (place + 1 < n && square(v[place * n]) < least * least) place++;
  const C lead = v[place * n];
  const R length = modulus(lead);
  const C factor = {lead.re / length, -lead.im / length};
  for (int i = 0; i < n; i++) {
    const C turned = v[i * n] * factor;
    v[i * n] = {turned.re / norm, i == place ? R(0) : turned.im / norm};
  }
}

// One matrix of a warp's.
template <class T> INLINE void decompose(const EigCall<T>& call, long long b, unsigned char* shared) {
  using R = RealOf<T>;
  using C = Complex<R>;
  const int n = call.n, lane = threadIdx.x % LANES, ld = n | 1, count = call.elements();
  C *const w = call.w + b * n, *const v = call.v ? call.v + b * n * n : nullptr;
  C* const x = reinterpret_cast<C*>(shared);
  T *const h = reinterpret_cast<T*>(x + (v ? count : 0)), *const z = v ? h + count : nullptr;
  R* const scales = reinterpret_cast<R*>(h + (v ? 2 * count : count));
  const Form<T> form = {h, z, n, ld};
  int power = 0;
  bool done = form.load(call.a + b * n * n, power);
  if (done) {
    balance(form, scales);
    form.reduce();
    done = form.converge();
  }
  if (!done) {
    for (int i = lane; i < n; i += LANES) w[i] = not_a_number<C>();
    for (int e = lane; v && e < n * n; e += LANES) v[e] = not_a_number<C>();
    return;
  }
  for (int k = lane; k < n; k += LANES) {
    const C value = Vector<T>::value_of(form, k);
    w[k] = shifted(value, -power);
    if (!v) continue;
    const R smallest = fmax(form.ULP * abs1(value), Machine<R>::SAFE_MIN * (R(n) / form.ULP));
    Vector<T> vector = {form, x + k * ld, value, smallest};
    finish(form, scales, vector.x, vector.substitute(k), v + k);
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                          \
  extern "C" __global__ void __launch_bounds__(128, 4)                                               \
      eig_##suffix(const __grid_constant__ EigCall<T> call) {                                        \
    SHARED_MEMORY(raw);                                                                              \
    const int warps = blockDim.x / LANES, warp = threadIdx.x / LANES;                                \
    for (long long b = (long long)blockIdx.x * warps + warp; b < call.batch; b += gridDim.x * warps) { \
      decompose<T>(call, b, raw + warp * call.bytes());                                              \
      __syncwarp();                                                                                  \
    }                                                                                                \
  }                                                                                                  \
  KERNEL(eig_##suffix);
FOR_SCALARS(INSTANCE)
