// Work in two streams, ordered by an event; times between events.
#include "check.h"

__global__ void add(int *data, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * 2 + value;
}

int main() {
    const int n = 4096;
    int *data, host[n];
    cudaStream_t first, second;
    cudaEvent_t begin, ready, end;
    CUDA(cudaMalloc(&data, sizeof(host)));
    CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaEventRecord(begin, first));
    CUDA(cudaMemsetAsync(data, 0, sizeof(host), first));
    for (int i = 1; i <= 5; i++) add<<<n / 256, 256, 0, first>>>(data, n, i);
    CUDA(cudaEventRecord(ready, first));
    CUDA(cudaStreamWaitEvent(second, ready, 0));
    add<<<n / 256, 256, 0, second>>>(data, n, 100);
    CUDA(cudaEventRecord(end, second));
    CUDA(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, second));
    CUDA(cudaStreamSynchronize(second));
    for (int i = 0; i < n; i++) REQUIRE(host[i] == 214);
    CUDA(cudaEventSynchronize(end));
    CUDA(cudaEventQuery(end));
    CUDA(cudaStreamQuery(second));
    float milliseconds = -1;
    CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    REQUIRE(milliseconds >= 0 && milliseconds < 60000);
    FAILS(cudaEventElapsedTime(&milliseconds, begin, ready), cudaErrorInvalidResourceHandle);
    unsigned flags = 0;
    CUDA(cudaStreamGetFlags(first, &flags));
    REQUIRE(flags == cudaStreamNonBlocking);
    int least = 1, greatest = 1, priority = 1;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA(cudaStreamGetPriority(second, &priority));
    REQUIRE(least >= greatest && priority == -1);
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(ready));
    CUDA(cudaEventDestroy(end));
    CUDA(cudaStreamDestroy(first));
    CUDA(cudaStreamDestroy(second));
    return finish();
}
