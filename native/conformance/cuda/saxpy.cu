// y = a x + y, the first program of every introduction. Tolerance: none, the numbers are
// whole and below 2^24, so that nothing is rounded.
#include "check.h"
#include <vector>

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
    const int n = 100003;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; i++) x[i] = float(i % 1000), y[i] = 1;
    float *dx, *dy;
    CUDA(cudaMalloc(&dx, n * sizeof(float)));
    CUDA(cudaMalloc(&dy, n * sizeof(float)));
    CUDA(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    saxpy<<<(n + 255) / 256, 256>>>(n, 2, dx, dy);
    CUDA(cudaGetLastError());
    CUDA(cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) REQUIRE(y[i] == 2 * x[i] + 1);
    CUDA(cudaFree(dx));
    CUDA(cudaFree(dy));
    CUDA(cudaFree(nullptr));
    return finish();
}
