// One kernel template, three types.
#include "check.h"

template <typename T, int N> __global__ void power(T *data) {
    T value = 1;
    for (int i = 0; i < N; i++) value *= data[threadIdx.x];
    data[threadIdx.x] = value;
}

template <typename T> void run() {
    T host[32], *data;
    for (int i = 0; i < 32; i++) host[i] = T(i);
    CUDA(cudaMalloc(&data, sizeof(host)));
    CUDA(cudaMemcpy(data, host, sizeof(host), cudaMemcpyHostToDevice));
    power<T, 3><<<1, 32>>>(data);
    CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) REQUIRE(host[i] == T(i * i * i));
    CUDA(cudaFree(data));
}

int main() {
    run<float>();
    run<double>();
    run<long long>();
    run<unsigned short>();
    return finish();
}
