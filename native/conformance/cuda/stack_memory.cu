// Memory on a thread's stack whose size is known only when the kernel runs.
#include "check.h"
#include <alloca.h>

__device__ int __noinline__ reverse_sum(const int *values, int count, int depth) {
    int *copy = static_cast<int *>(alloca(count * sizeof(int)));
    for (int i = 0; i < count; i++) copy[i] = values[count - 1 - i] + depth;
    int below = depth > 0 ? reverse_sum(copy, count, depth - 1) : 0;
    int sum = below;
    for (int i = 0; i < count; i++) sum += copy[i] * (i + 1);
    return sum;
}

static int expected(const int *values, int count, int depth) {
    int copy[64];
    for (int i = 0; i < count; i++) copy[i] = values[count - 1 - i] + depth;
    int sum = depth > 0 ? expected(copy, count, depth - 1) : 0;
    for (int i = 0; i < count; i++) sum += copy[i] * (i + 1);
    return sum;
}

__global__ void sums(const int *values, int *out) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    out[thread] = reverse_sum(values, 1 + thread % 64, thread % 5);
}

int main() {
    const int threads = 256;
    int values[64], out[threads], *device_values = nullptr, *device_out = nullptr;
    for (int i = 0; i < 64; i++) values[i] = i * 7 % 31;
    CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 16 << 10));
    CUDA(cudaMalloc(&device_values, sizeof(values)));
    CUDA(cudaMalloc(&device_out, sizeof(out)));
    CUDA(cudaMemcpy(device_values, values, sizeof(values), cudaMemcpyHostToDevice));
    sums<<<2, threads / 2>>>(device_values, device_out);
    CUDA(cudaMemcpy(out, device_out, sizeof(out), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i++) REQUIRE(out[i] == expected(values, 1 + i % 64, i % 5));
    return finish();
}
