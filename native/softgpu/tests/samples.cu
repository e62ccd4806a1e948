// C++ inputs of the tests; compiled to PTX by generate.py.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <assert.h>
#include <stdio.h>

__constant__ float coefficients[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int counter = 5;
__device__ int *counter_pointer = &counter;

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float sa[16][16], sb[16][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float acc = 0;
  for (int t = 0; t < n; t += 16) {
    sa[threadIdx.y][threadIdx.x] = a[y * n + t + threadIdx.x];
    sb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + x];
    __syncthreads();
    for (int k = 0; k < 16; k++) acc += sa[threadIdx.y][k] * sb[k][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = acc;
}

extern "C" __global__ void softmax(const float *in, float *out, int columns) {
  extern __shared__ float scratch[];
  const float *row = in + blockIdx.x * columns;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) m = fmaxf(m, row[i]);
  scratch[threadIdx.x] = m;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + s]);
    __syncthreads();
  }
  m = scratch[0];
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - m);
  for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < blockDim.x / 32; i++) sum += scratch[i];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) out[blockIdx.x * columns + i] = expf(row[i] - m) / sum;
}

extern "C" __global__ void polynomial(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float r = 0;
    for (int k = 3; k >= 0; k--) r = r * x[i] + coefficients[k];
    y[i] = r;
    if (i == 0) *counter_pointer += 2;
  }
}

extern "C" __global__ void half_math(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    __half h = __float2half(x[i]);
    __half2 p = __halves2half2(h, __hmul(h, h));
    p = __hfma2(p, p, __float2half2_rn(0.5f));
    y[2 * i] = __half2float(__low2half(p)) + __half2float(__high2half(p));
    y[2 * i + 1] = __bfloat162float(__float2bfloat16(x[i]));
  }
}

extern "C" __global__ void switches(const int *x, int *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int r;
  switch (x[i]) {
    case 0: r = 17; break;
    case 1: r = y[i] * 3; break;
    case 2: r = __popc(y[i]); break;
    case 3: r = __clz(y[i]); break;
    case 4: r = __ffs(y[i]); break;
    case 5: r = __brev(y[i]); break;
    case 6: r = __byte_perm(y[i], 0x12345678, 0x3715); break;
    case 7: r = __funnelshift_l(y[i], 0x9abcdef0, 7); break;
    default: r = -1;
  }
  y[i] = r;
}

__device__ __noinline__ long long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void recurse(long long *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

extern "C" __global__ void check(const int *x) {
  printf("x[%d] = %d, %5.2f %s\n", (int)threadIdx.x, x[threadIdx.x], 1.5, "text");
  assert(x[threadIdx.x] != 7);
}

extern "C" __global__ void grid_sync(int *data, int rounds) {
  cooperative_groups::grid_group g = cooperative_groups::this_grid();
  int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < rounds; r++) {
    int v = data[(i + 1) % n];
    g.sync();
    data[i] = v;
    g.sync();
  }
}
extern "C" __global__ void lookback(unsigned *flags, unsigned *out) {
  __shared__ unsigned before;
  if (threadIdx.x == 0) {
    before = 0;
    if (blockIdx.x > 0) {
      while ((before = atomicAdd(&flags[blockIdx.x - 1], 0u)) == 0) {}
    }
    atomicExch(&flags[blockIdx.x], before + 1);
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = before;
}
typedef int (*operation)(int);
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ operation table[2] = {twice, square};
extern "C" __global__ void indirect(int *data) { data[threadIdx.x] = table[threadIdx.x & 1](data[threadIdx.x]); }
