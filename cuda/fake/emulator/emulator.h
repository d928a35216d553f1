// Runs CUDA kernels on the CPU: the unmodified .cu, compiled for the host with this header in front.
// Every CUDA thread is a fiber, a block runs at a time.
//
// Beyond the algorithm it checks that all threads meet at the same barrier, that lanes named in a mask
// take part in its operation, and that nothing waits for ever. Threads run in an order shuffled by a
// seed, and shared memory is poisoned before each block. Under ThreadSanitizer each CUDA thread is one
// of its fibers and only barriers, __syncwarp and atomics order memory: a race checker for shared and
// global memory. Under AddressSanitizer buffers are bounds-checked.
#pragma once
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

struct uint3 {
  unsigned x, y, z;
};

namespace emulator {
struct Thread {
  uint3 index, block, block_size, grid_size;
  unsigned lane;
  unsigned char* shared;
};
extern thread_local Thread* current;

using Invoke = void (*)(void** arguments);
struct Kernel {
  Kernel(const char* name, Invoke invoke);
};

// What a barrier of the whole block, and a warp's exchange of 64-bit words, wait for. Each lane of
// `mask` gives `value` and gets everybody's in all[0..32]; `all` may be null.
enum class Meeting { SYNC, EXCHANGE };
bool meet_block(bool vote, const char* file, int line);
void meet_warp(Meeting kind, unsigned mask, uint64_t value, uint64_t* all, const char* file, int line);
[[noreturn]] void fail(const char* file, int line, const char* why);

template <class T> uint64_t to_word(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t word = 0;
  memcpy(&word, &value, sizeof(T));
  return word;
}
template <class T> T from_word(uint64_t word) {
  T value;
  memcpy(&value, &word, sizeof(T));
  return value;
}
template <class T> T shuffle(unsigned mask, T value, int source, const char* file, int line) {
  uint64_t all[32];
  meet_warp(Meeting::EXCHANGE, mask, to_word(value), all, file, line);
  source &= 31;
  if (!(mask >> source & 1)) fail(file, line, "a shuffle reads a lane that is not in the mask");
  return from_word<T>(all[source]);
}
inline unsigned ballot(unsigned mask, bool predicate, const char* file, int line) {
  uint64_t all[32];
  meet_warp(Meeting::EXCHANGE, mask, predicate, all, file, line);
  unsigned votes = 0;
  for (int i = 0; i < 32; i++)
    if ((mask >> i & 1) && all[i]) votes |= 1u << i;
  return votes;
}
template <class T> unsigned match_any(unsigned mask, T value, const char* file, int line) {
  uint64_t all[32];
  const uint64_t own = to_word(value);
  meet_warp(Meeting::EXCHANGE, mask, own, all, file, line);
  unsigned same = 0;
  for (int i = 0; i < 32; i++)
    if ((mask >> i & 1) && all[i] == own) same |= 1u << i;
  return same;
}

// A kernel with its arguments taken from cuLaunchKernel's array of pointers.
template <auto KERNEL_FUNCTION> struct Call;
template <class... A, void (*F)(A...)> struct Call<F> {
  template <size_t... I> static void spread(void** arguments, std::index_sequence<I...>) {
    F(*static_cast<std::remove_cv_t<A>*>(arguments[I])...);
  }
  static void invoke(void** arguments) { spread(arguments, std::index_sequence_for<A...>{}); }
};
}  // namespace emulator

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define __restrict__ __restrict
#define __grid_constant__
#define threadIdx (emulator::current->index)
#define blockIdx (emulator::current->block)
#define blockDim (emulator::current->block_size)
#define gridDim (emulator::current->grid_size)
#define SHARED_MEMORY(name) unsigned char* name = emulator::current->shared
#define KERNEL(name) \
  static ::emulator::Kernel emulator_##name(#name, &::emulator::Call<&name>::invoke)
#define __syncthreads() emulator::meet_block(false, __FILE__, __LINE__)
#define __syncthreads_or(predicate) emulator::meet_block((predicate) != 0, __FILE__, __LINE__)
#define __syncwarp() \
  emulator::meet_warp(emulator::Meeting::SYNC, ~0u, 0, nullptr, __FILE__, __LINE__)
#define __shfl_sync(mask, value, lane) emulator::shuffle(mask, value, lane, __FILE__, __LINE__)
#define __shfl_xor_sync(mask, value, flip) \
  emulator::shuffle(mask, value, (int)emulator::current->lane ^ (flip), __FILE__, __LINE__)
#define __ballot_sync(mask, predicate) emulator::ballot(mask, predicate, __FILE__, __LINE__)
#define __any_sync(mask, predicate) (emulator::ballot(mask, predicate, __FILE__, __LINE__) != 0)
#define __match_any_sync(mask, value) emulator::match_any(mask, value, __FILE__, __LINE__)
inline int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
template <class T> inline T atomicAdd(T* place, T value) {
  return std::atomic_ref<T>(*place).fetch_add(value, std::memory_order_relaxed);
}
// CUDA has these for both precisions under one name, as the C++ library has.
using std::copysign;
using std::fabs;
using std::fmax;
using std::hypot;
using std::ilogb;
using std::log;
using std::scalbn;
using std::sqrt;
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }
