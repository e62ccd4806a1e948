// More than the lease has is an error like any other; what follows works.
#include "check.h"

int main() {
    size_t available = 0, total = 0;
    CUDA(cudaMemGetInfo(&available, &total));
    char *data = nullptr;
    FAILS(cudaMalloc(&data, total + (1 << 20)), cudaErrorMemoryAllocation);
    REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation);
    CUDA(cudaMalloc(&data, 1 << 20));
    CUDA(cudaMemset(data, 1, 1 << 20));
    CUDA(cudaFree(data));
    return finish();
}
