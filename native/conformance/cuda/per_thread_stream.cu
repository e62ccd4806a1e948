// nvcc --default-stream per-thread: each thread's work is in a stream of its own.
#include "check.h"
#include <thread>
#include <vector>

__global__ void count(int *data, int value) { atomicAdd(data + threadIdx.x, value); }

void work(int number) {
    int host[64], *data;
    CUDA(cudaMalloc(&data, sizeof(host)));
    CUDA(cudaMemsetAsync(data, 0, sizeof(host), 0));
    for (int i = 0; i < 20; i++) count<<<1, 64>>>(data, number);
    CUDA(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, 0));
    CUDA(cudaStreamSynchronize(0));
    for (int value : host) REQUIRE(value == 20 * number);
    CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
    unsigned long long own = 0, legacy = 0;
    CUDA(cudaStreamGetId(0, &own));
    CUDA(cudaStreamGetId(cudaStreamLegacy, &legacy));
    REQUIRE(own != legacy);
    CUDA(cudaFree(data));
}

int main() {
    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; i++) threads.emplace_back(work, i);
    for (auto &thread : threads) thread.join();
    return finish();
}
