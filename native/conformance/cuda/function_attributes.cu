// What is known of a kernel, and more dynamic shared memory than without asking.
#include "check.h"

__global__ void __launch_bounds__(256) kernel(int *out, int n) {
    extern __shared__ int shared[];
    __shared__ int fixed[64];
    for (int i = threadIdx.x; i < n; i += blockDim.x) shared[i] = i;
    fixed[threadIdx.x % 64] = 1;
    __syncthreads();
    if (threadIdx.x == 0) *out = shared[n - 1] + fixed[0];
}

int main() {
    cudaFuncAttributes attributes = {};
    CUDA(cudaFuncGetAttributes(&attributes, kernel));
    REQUIRE(attributes.sharedSizeBytes >= 256 && attributes.maxThreadsPerBlock >= 256);
    REQUIRE(attributes.binaryVersion >= 50 && attributes.ptxVersion >= 50);
    const int words = 15 << 10;
    int *out, host = 0;
    CUDA(cudaMalloc(&out, sizeof(int)));
    kernel<<<1, 256, words * 4>>>(out, words);
    REQUIRE(cudaGetLastError() == cudaErrorInvalidValue);
    CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, words * 4));
    kernel<<<1, 256, words * 4>>>(out, words);
    CUDA(cudaGetLastError());
    CUDA(cudaMemcpy(&host, out, sizeof(host), cudaMemcpyDeviceToHost));
    REQUIRE(host == words);
    CUDA(cudaFuncGetAttributes(&attributes, kernel));
    REQUIRE(attributes.maxDynamicSharedSizeBytes == words * 4);
    const char *name = nullptr;
    CUDA(cudaFuncGetName(&name, (const void *)kernel));
    REQUIRE(name != nullptr && name[0] == '_');
    return finish();
}
