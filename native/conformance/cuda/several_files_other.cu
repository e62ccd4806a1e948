// The second file of several_files.cu; its kernel has the name of another one there.
#include <cuda_runtime.h>

static __global__ void fill(int *data, int n) {
    int i = threadIdx.x;
    if (i < n) data[i] = data[i] * 3 + 1;
}

int other_file(int *data, int n) {
    fill<<<1, n>>>(data, n);
    return cudaGetLastError();
}
