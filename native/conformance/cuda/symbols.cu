// Variables of the program on the device, and constant memory.
#include "check.h"

__device__ int counter = 5;
__device__ float table[16];
__constant__ float coefficients[4] = {1, 2, 3, 4};

__global__ void polynomial(const float *x, int n) {
    int i = threadIdx.x;
    if (i < n) {
        float value = 0;
        for (int k = 3; k >= 0; k--) value = value * x[i] + coefficients[k];
        table[i] = value;
        atomicAdd(&counter, 1);
    }
}

int main() {
    float x[16], result[16], *dx;
    for (int i = 0; i < 16; i++) x[i] = float(i);
    CUDA(cudaMalloc(&dx, sizeof(x)));
    CUDA(cudaMemcpy(dx, x, sizeof(x), cudaMemcpyHostToDevice));
    polynomial<<<1, 32>>>(dx, 16);
    CUDA(cudaMemcpyFromSymbol(result, table, sizeof(result)));
    for (int i = 0; i < 16; i++) REQUIRE(result[i] == 1 + x[i] * (2 + x[i] * (3 + x[i] * 4)));
    const float other[2] = {10, 0};
    CUDA(cudaMemcpyToSymbol(coefficients, other, sizeof(other), 2 * sizeof(float)));
    polynomial<<<1, 32>>>(dx, 16);
    CUDA(cudaMemcpyFromSymbolAsync(result, table, sizeof(result), 0, cudaMemcpyDeviceToHost, nullptr));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++) REQUIRE(result[i] == 1 + x[i] * (2 + x[i] * 10));
    int count = 0;
    void *address = nullptr;
    size_t bytes = 0;
    CUDA(cudaGetSymbolAddress(&address, counter));
    CUDA(cudaGetSymbolSize(&bytes, table));
    REQUIRE(bytes == sizeof(table));
    CUDA(cudaMemcpy(&count, address, sizeof(count), cudaMemcpyDeviceToHost));
    REQUIRE(count == 37);
    FAILS(cudaMemcpyToSymbol(coefficients, other, sizeof(other), 3 * sizeof(float)), cudaErrorInvalidValue);
    FAILS(cudaGetSymbolAddress(&address, (const void *)x), cudaErrorInvalidSymbol);
    return finish();
}
