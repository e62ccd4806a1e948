// Tiles in shared memory, as the programming guide does it. Tolerance: none, the sums are whole and
// below 2^24, so that nothing is rounded.
#include "check.h"
#include <vector>

const int TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n / TILE; tile++) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile * TILE + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile * TILE + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

int main() {
    const int n = 96;
    std::vector<float> a(n * n), b(n * n), c(n * n);
    for (int i = 0; i < n * n; i++) a[i] = float(i % 7), b[i] = float(i % 5);
    float *da, *db, *dc;
    size_t bytes = n * n * sizeof(float);
    CUDA(cudaMalloc(&da, bytes));
    CUDA(cudaMalloc(&db, bytes));
    CUDA(cudaMalloc(&dc, bytes));
    CUDA(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
    matmul<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(da, db, dc, n);
    CUDA(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
    for (int row = 0; row < n; row++)
        for (int column = 0; column < n; column++) {
            float sum = 0;
            for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
            REQUIRE(c[row * n + column] == sum);
        }
    return finish();
}
