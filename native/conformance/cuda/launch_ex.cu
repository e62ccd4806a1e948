// Launches with attributes.
#include "check.h"

__global__ void fill(int *data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] = value + blockIdx.x; }

int main() {
    int host[128], *data;
    CUDA(cudaMalloc(&data, sizeof(host)));
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributePriority;
    attribute.val.priority = 0;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CUDA(cudaLaunchKernelEx(&config, fill, data, 7));
    CUDA(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < 128; i++) REQUIRE(host[i] == 7 + i / 32);
    config.blockDim = dim3(4096);
    cudaError_t wrong = cudaLaunchKernelEx(&config, fill, data, 7);
    // NVIDIA's runtime 13.0 calls it an invalid value.
    REQUIRE(wrong == cudaErrorInvalidConfiguration || wrong == cudaErrorInvalidValue);
    return finish();
}
