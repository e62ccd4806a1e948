// Atomics in shared and global memory. Tolerance: none, it counts.
#include "check.h"
#include <vector>

__global__ void histogram(const unsigned char *in, int n, unsigned *bins) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

int main() {
    const int n = 100000;
    std::vector<unsigned char> in(n);
    unsigned expected[256] = {}, result[256], state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        expected[in[i] = (unsigned char)(state >> 24)]++;
    }
    unsigned char *data;
    unsigned *bins;
    CUDA(cudaMalloc(&data, n));
    CUDA(cudaMalloc(&bins, sizeof(result)));
    CUDA(cudaMemcpy(data, in.data(), n, cudaMemcpyHostToDevice));
    CUDA(cudaMemset(bins, 0, sizeof(result)));
    histogram<<<8, 256>>>(data, n, bins);
    CUDA(cudaMemcpy(result, bins, sizeof(result), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) REQUIRE(result[i] == expected[i]);
    return finish();
}
