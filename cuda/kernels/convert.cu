// Integers of cuSOLVER's 64-bit functions as the 32-bit ones of a result. They count rows, which are
// known to be 32-bit.
#include "device.cuh"

extern "C" __global__ void __launch_bounds__(256)
    narrow(const long long* __restrict__ from, int32_t* __restrict__ to, long long count) {
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
    to[i] = (int32_t)from[i];
}
KERNEL(narrow);
