// A cooperative launch, and one that is too large for the device.
#include "check.h"

__global__ void mark(int *data) { data[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x; }

int main() {
    int host[128], *data, supported = 0;
    CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    CUDA(cudaMalloc(&data, sizeof(host)));
    void *arguments[] = {&data};
    cudaError_t result = cudaLaunchCooperativeKernel((const void *)mark, dim3(2), dim3(64), arguments, 0, nullptr);
    if (!supported) {
        REQUIRE(result == cudaErrorNotSupported || result == cudaSuccess);
        return finish();
    }
    CUDA(result);
    CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 128; i++) REQUIRE(host[i] == i / 64);
    return finish();
}
