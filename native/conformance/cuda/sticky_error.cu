// After a fault on the device every call says so.
#include "check.h"

__global__ void fault(int *data) { data[threadIdx.x] = 1; }

int main() {
    fault<<<1, 32>>>((int *)64);
    cudaError_t first = cudaDeviceSynchronize();
    REQUIRE(first == cudaErrorIllegalAddress);
    REQUIRE(cudaGetLastError() == first);
    int *data;
    FAILS(cudaMalloc(&data, 64), first);
    FAILS(cudaDeviceSynchronize(), first);
    REQUIRE(cudaPeekAtLastError() == first && cudaGetLastError() == first);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    FAILS(cudaDeviceSynchronize(), first);
    return finish();
}
