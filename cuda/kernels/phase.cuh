// The phase of a vector that its equation leaves free, as cpu/src/matrix/phase.rs has it: of a unit vector
// with n components the first with |x(i)| sqrt(n) >= PART is real and positive.
#pragma once
#include "scalar.cuh"

namespace {
constexpr double PART = 0.4869;

// What a vector is multiplied by, a number of modulus one, and the place of the component that it makes
// real; -1 where that is another vector's.
template <class T> struct Turn {
  T factor;
  int place;

  static INLINE Turn none() { return {make<T>(1), -1}; }

  // Component i after it.
  INLINE T of(T x, int i) const {
    const T y = x * factor;
    return i == place ? make<T>(real(y)) : y;
  }
};

// That of x[0..count), whose squares add up to so much, more than zero; by a warp, in every lane.
template <class T> INLINE Turn<T> turn_of(const T* x, int count, RealOf<T> squares) {
  using R = RealOf<T>;
  const R least = R(PART * PART) * squares / R(count);
  int first = -LANES;
  T own;
  unsigned found;
  do {
    first += LANES;
    const int i = first + threadIdx.x % LANES;
    own = i < count ? x[i] : make<T>(0);
    found = __ballot_sync(ALL_LANES, i < count && square(own) >= least);
  } while (found == 0 && first + LANES < count);  // There is one.
  const int source = __ffs((int)found) - 1;
  const T here = Traits<T>::shuffle(own, source);
  const R size = modulus(here);
  return {make<T>(real(here) / size, -imag(here) / size), first + source};
}
}  // namespace
