// What every kernel includes. Under nvcc the words below are CUDA's; the emulator, which compiles the
// same sources for the host, defines them in its own header first.
#pragma once
#if defined(__CUDACC__)
#include <cmath>
#include <cstdint>
// The dynamic shared memory of a block, aligned for every scalar.
#define SHARED_MEMORY(name) extern __shared__ __align__(16) unsigned char name[]
// Tells the emulator of a kernel. nvcc needs no telling.
#define KERNEL(name)
#endif

namespace {
constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int LANES = 32;
}  // namespace
