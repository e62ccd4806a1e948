// What a remote GPU cannot do is refused with a reason, and hurts nothing.
#include "check.h"
#include <cstring>

// Said when the program begins; on the host nothing may read it.
__managed__ int counter;

__global__ void count() { counter++; }

int main() {
    void *data = nullptr;
    FAILS(cudaMallocManaged(&data, 64), cudaErrorNotSupported);
    REQUIRE(std::strstr(cudaGetErrorString(cudaErrorNotSupported), "host memory") != nullptr);
    void *host = nullptr, *mapped = nullptr;
    CUDA(cudaMallocHost(&host, 64));
    FAILS(cudaHostGetDevicePointer(&mapped, host, 0), cudaErrorNotSupported);
    CUDA(cudaFreeHost(host));
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    REQUIRE(format.x == 32 && format.f == cudaChannelFormatKindFloat);
    FAILS(cudaMallocArray(&array, &format, 16, 16), cudaErrorNotSupported);
    const void *table = nullptr;
    cudaUUID_t id = {};
    FAILS(cudaGetExportTable(&table, &id), cudaErrorNotSupported);
    (void)cudaGetLastError();
    CUDA(cudaMalloc(&data, 64));
    CUDA(cudaFree(data));
    return finish();
}
