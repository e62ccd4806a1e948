// Runtime and driver API in one program: one context, one address space. The driver's functions are looked up.
#include "check.h"
#include <cuda.h>

__global__ void fill(int *data, int value) { data[threadIdx.x] = value; }

template <typename Function> Function driver(const char *name) {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult status;
    CUDA(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status));
    REQUIRE(status == cudaDriverEntryPointSuccess && found != nullptr);
    return reinterpret_cast<Function>(found);
}

int main() {
    CUDA(cudaSetDevice(0));
    CUcontext context = nullptr;
    REQUIRE(driver<CUresult (*)(CUcontext *)>("cuCtxGetCurrent")(&context) == 0 && context != nullptr);
    CUdeviceptr data = 0;
    REQUIRE(driver<CUresult (*)(CUdeviceptr *, size_t)>("cuMemAlloc")(&data, 128) == 0);
    fill<<<1, 32>>>((int *)data, 9);
    int host[32];
    CUDA(cudaMemcpy(host, (void *)data, sizeof(host), cudaMemcpyDeviceToHost));
    for (int value : host) REQUIRE(value == 9);
    cudaKernel_t kernel;
    CUDA(cudaGetKernel(&kernel, (const void *)fill));
    int value = 11;
    void *arguments[] = {&data, &value};
    using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                CUstream, void **, void **);
    REQUIRE(driver<Launch>("cuLaunchKernel")((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) == 0);
    CUDA(cudaMemcpy(host, (void *)data, sizeof(host), cudaMemcpyDeviceToHost));
    for (int value : host) REQUIRE(value == 11);
    void *none = &none;
    cudaDriverEntryPointQueryResult status;
    CUDA(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &none, 12000, cudaEnableDefault, &status));
    REQUIRE(status == cudaDriverEntryPointSymbolNotFound);
    // The status may be left out.
    CUDA(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &none, 12000, cudaEnableDefault, nullptr));
    REQUIRE(none == nullptr);
    size_t free_bytes = 0, total_bytes = 0;
    CUDA(cudaMemGetInfo(&free_bytes, nullptr));
    CUDA(cudaMemGetInfo(nullptr, &total_bytes));
    REQUIRE(free_bytes > 0 && free_bytes <= total_bytes);
    CUDA(cudaFree((void *)data));
    return finish();
}
