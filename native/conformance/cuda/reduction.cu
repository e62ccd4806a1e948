// A sum by shared memory and warp shuffles. Tolerance: none, integers do not round.
#include "check.h"
#include <vector>

__global__ void sum(const int *in, int n, unsigned long long *out) {
    __shared__ int warps[8];
    int value = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) value += in[i];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
        for (int step = 4; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
        if (threadIdx.x == 0) atomicAdd(out, (unsigned long long)value);
    }
}

int main() {
    const int n = 250000;
    std::vector<int> in(n);
    unsigned long long expected = 0, result = 0, *out;
    for (int i = 0; i < n; i++) expected += in[i] = i % 97;
    int *device;
    CUDA(cudaMalloc(&device, n * sizeof(int)));
    CUDA(cudaMalloc(&out, sizeof(*out)));
    CUDA(cudaMemcpy(device, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CUDA(cudaMemset(out, 0, sizeof(*out)));
    sum<<<16, 256>>>(device, n, out);
    CUDA(cudaMemcpy(&result, out, sizeof(result), cudaMemcpyDeviceToHost));
    REQUIRE(result == expected);
    return finish();
}
