// RMS normalisation of rows of n numbers, forward and backward: a warp of 32 threads for each row.
#ifndef KERNEL
#define KERNEL(name)  // An emulator that tests the kernels wants to be told of them; nvcc does not.
#endif

namespace {
// The sum over a warp, in all its threads.
__device__ __forceinline__ float sum(float x) {
  for (int flip = 16; flip > 0; flip /= 2) x += __shfl_xor_sync(0xffffffffu, x, flip);
  return x;
}
}  // namespace

// y = x s with s = 1 / sqrt(mean(x^2) + eps).
extern "C" __global__ void rms_norm_rows(const float* x, float* y, float* s, long long n, float eps) {
  const long long row = blockIdx.x * n;
  float squares = 0;
  for (long long i = threadIdx.x; i < n; i += 32) squares += x[row + i] * x[row + i];
  const float scale = 1 / sqrt(sum(squares) / (float)n + eps);
  for (long long i = threadIdx.x; i < n; i += 32) y[row + i] = x[row + i] * scale;
  if (threadIdx.x == 0) s[blockIdx.x] = scale;
}
KERNEL(rms_norm_rows);

// The cotangent of x from that of y: s ct - s^3 x (x ct) / n.
extern "C" __global__ void rms_norm_backward_rows(const float* s, const float* x, const float* ct,
                                             float* ct_x, long long n) {
  const long long row = blockIdx.x * n;
  const float scale = s[blockIdx.x];
  float products = 0;
  for (long long i = threadIdx.x; i < n; i += 32) products += x[row + i] * ct[row + i];
  const float dot = sum(products) / (float)n;
  for (long long i = threadIdx.x; i < n; i += 32)
    ct_x[row + i] = scale * (ct[row + i] - scale * scale * x[row + i] * dot);
}
KERNEL(rms_norm_backward_rows);
