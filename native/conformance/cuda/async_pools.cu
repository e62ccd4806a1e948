// Allocation in stream order, from the default pool and from one of the program's own.
#include "check.h"

__global__ void fill(int *data, int n, int value) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = value;
}

int main() {
    int supported = 0, host[1000];
    CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    REQUIRE(supported == 1);
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    cudaMemPool_t pool;
    CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    unsigned long long threshold = ~0ull, read = 0;
    CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read));
    REQUIRE(read == threshold);
    for (int round = 0; round < 10; round++) {
        int *data;
        CUDA(cudaMallocAsync(&data, sizeof(host), stream));
        fill<<<1, 128, 0, stream>>>(data, 1000, round);
        CUDA(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, stream));
        CUDA(cudaFreeAsync(data, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (int value : host) REQUIRE(value == round);
    }
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t own;
    int *data;
    CUDA(cudaMemPoolCreate(&own, &properties));
    CUDA(cudaMallocFromPoolAsync(&data, 4000, own, stream));
    fill<<<1, 128, 0, stream>>>(data, 1000, 77);
    CUDA(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaFreeAsync(data, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int value : host) REQUIRE(value == 77);
    CUDA(cudaMemPoolTrimTo(own, 0));
    CUDA(cudaMemPoolDestroy(own));
    CUDA(cudaStreamDestroy(stream));
    return finish();
}
