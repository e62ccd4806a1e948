// After a reset of the device the program's kernels and variables are there again, as they were at first.
#include "check.h"

__device__ int total = 3;

__global__ void add(int value) { total += value; }

int main() {
    int result = 0;
    for (int round = 0; round < 3; round++) {
        add<<<1, 1>>>(10);
        CUDA(cudaMemcpyFromSymbol(&result, total, sizeof(result)));
        REQUIRE(result == 13);
        CUDA(cudaDeviceReset());
    }
    return finish();
}
