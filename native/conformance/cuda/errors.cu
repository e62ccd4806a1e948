// Errors come when and where CUDA says, and the last one is each thread's own.
#include "check.h"
#include <cstring>
#include <thread>

__global__ void nothing() {}

int main() {
    int *data, host = 0;
    CUDA(cudaMalloc(&data, 256));
    nothing<<<1, 2048>>>();
    cudaError_t wrong = cudaPeekAtLastError();
    // NVIDIA's runtime 13.0 calls it an invalid value.
    REQUIRE(wrong == cudaErrorInvalidConfiguration || wrong == cudaErrorInvalidValue);
    REQUIRE(cudaGetLastError() == wrong);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    nothing<<<0, 32>>>();
    wrong = cudaGetLastError();
    REQUIRE(wrong == cudaErrorInvalidConfiguration || wrong == cudaErrorInvalidValue);
    nothing<<<1, 32, 1 << 20>>>();
    REQUIRE(cudaGetLastError() == cudaErrorInvalidValue);
    FAILS(cudaMemcpy(data, &host, 512, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    FAILS(cudaMemcpy(data, &host, 4, (cudaMemcpyKind)17), cudaErrorInvalidMemcpyDirection);
    std::thread([] { REQUIRE(cudaGetLastError() == cudaSuccess); }).join();
    REQUIRE(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
    FAILS(cudaSetDevice(99), cudaErrorInvalidDevice);
    FAILS(cudaFree(data + 1), cudaErrorInvalidValue);
    FAILS(cudaStreamSynchronize((cudaStream_t)0x1234), cudaErrorInvalidResourceHandle);
    FAILS(cudaLaunchKernel((const void *)&host, 1, 1, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
    (void)cudaGetLastError();
    REQUIRE(std::strcmp(cudaGetErrorName(cudaErrorInvalidPitchValue), "cudaErrorInvalidPitchValue") == 0);
    REQUIRE(std::strlen(cudaGetErrorString(cudaErrorIllegalAddress)) > 0);
    // None of it hurts what follows.
    nothing<<<1, 32>>>();
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    return finish();
}
