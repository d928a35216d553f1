// Batches of small row-major matrices: Hessenberg form A = Q H Q^H, and Schur form A = Z T Z^H. A warp has a
// matrix, in shared memory all the while (francis.cuh).
//
// a, t, z: [n, n], t may lie where a does. H and Q, or T and Z, the latter with the phases of phase.cuh's
// rule and T with Z; real 2 x 2 blocks in LAPACK's standard form (xLANV2). Of a matrix that is not finite,
// or does not converge, T and Z are NaN; H on and above its subdiagonal, and Q but for its first row and
// column, which are the identity's.
//
// Shared memory for each warp: (2 n' + 1) n elements, n' = n | 1 so that neither rows nor columns collide in a
// bank.
#include "phase.cuh"
#include "francis.cuh"

namespace {
enum Task { HESSENBERG, SCHUR };

template <class T> struct SchurCall {
  const T* a;
  T *t, *z;
  long long batch;
  int n, task;

  INLINE int count() const { return (2 * (n | 1) + 1) * n; }
};

template <class T> INLINE void fail(const SchurCall<T>& call, T* t, T* z) {
  const bool whole = call.task == SCHUR;
  for (int e = threadIdx.x % LANES; e < call.n * call.n; e += LANES) {
    const int i = e / call.n, j = e % call.n;
    t[e] = whole || i <= j + 1 ? not_a_number<T>() : make<T>(0);
    z[e] = whole || (i > 0 && j > 0) ? not_a_number<T>() : make<T>(i == j ? 1 : 0);
  }
}

// One matrix of a warp's.
template <class T> INLINE void decompose(const SchurCall<T>& call, long long b, T* s) {
  const int n = call.n, lane = threadIdx.x % LANES, ld = n | 1;
  const long long first = b * n * n;
  const Form<T> form = {s, s + n * ld, n, ld};
  T* const factors = s + 2 * n * ld;
  int power;
  if (!form.load(call.a + first, power)) return fail(call, call.t + first, call.z + first);
  form.reduce();
  if (call.task == SCHUR && !form.converge()) return fail(call, call.t + first, call.z + first);
  form.shift(-power);
  if (call.task == SCHUR) {
    // What vanishes then may be an element of a block.
    for (int k = 0; k + 1 < n; k++)
      if (!form.COMPLEX && !is_zero(form.at(k + 1, k))) form.split(k);
    for (int k = 0; k < n; k++) {
      T* const x = form.z + k * ld;
      const Turn<T> turn = turn_of(x, n, RealOf<T>(1));
      __syncwarp();
      for (int i = lane; i < n; i += LANES) x[i] = turn.of(x[i], i);
      if (lane == 0) factors[k] = turn.factor;
    }
    __syncwarp();
  }
  for (int e = lane; e < n * n; e += LANES) {
    const int i = e / n, j = e % n;
    const T x = i <= j + 1 ? form.at(i, j) : make<T>(0);
    const bool turned = call.task == SCHUR && i != j;
    call.t[first + e] = turned ? conj(factors[i]) * x * factors[j] : x;
    call.z[first + e] = form.z[i + j * ld];
  }
}
}  // namespace

#define INSTANCE(suffix, T)                                                                          \
  extern "C" __global__ void __launch_bounds__(128, 4)                                               \
      schur_##suffix(const __grid_constant__ SchurCall<T> call) {                                    \
    SHARED_MEMORY(raw);                                                                              \
    const int warps = blockDim.x / LANES, warp = threadIdx.x / LANES;                                \
    T* s = reinterpret_cast<T*>(raw) + warp * call.count();                                          \
    for (long long b = (long long)blockIdx.x * warps + warp; b < call.batch; b += gridDim.x * warps) { \
      decompose<T>(call, b, s);                                                                      \
      __syncwarp();                                                                                  \
    }                                                                                                \
  }                                                                                                  \
  KERNEL(schur_##suffix);
FOR_SCALARS(INSTANCE)
