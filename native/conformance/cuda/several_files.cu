// Kernels in two files, each with a fat binary of its own. Second file: several_files_other.cu
#include "check.h"

int other_file(int *data, int n);

__global__ void fill(int *data, int n) {
    int i = threadIdx.x;
    if (i < n) data[i] = i;
}

int main() {
    int host[64], *data;
    CUDA(cudaMalloc(&data, sizeof(host)));
    fill<<<1, 64>>>(data, 64);
    REQUIRE(other_file(data, 64) == 0);
    CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) REQUIRE(host[i] == i * 3 + 1);
    return finish();
}
