// A program as CUDA 12's compiler makes it: it registers its fat binary and launches by the address of a stub. The
// compiler on PyPI is that of 13, so the stub's calls are written out here. Fat binary: cuda12_kernel.cu
#include "check.h"
#include <cstring>
#include <vector>

asm(".section .nv_fatbin, \"a\"\n.align 8\nfat_binary:\n.incbin \"" FAT_BINARY "\"\n.previous\n");

extern "C" {
extern const unsigned long long fat_binary[];
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name, int limit, uint3 *thread,
                            uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp_size);
}

static struct {
    int magic, version;
    const void *data, *unused;
} wrapper = {0x466243b1, 1, fat_binary, nullptr};

static void stub() {}

int main() {
    char name[] = "saxpy";
    void **binary = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(binary, (const char *)stub, name, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFatBinaryEnd(binary);
    int n = 5000, version = 0;
    CUDA(cudaRuntimeGetVersion(&version));
    REQUIRE(version / 1000 == 12 && CUDART_VERSION / 1000 == 12);
    cudaDeviceProp properties;
    std::memset(&properties, 0xff, sizeof(properties));
    CUDA(cudaGetDeviceProperties(&properties, 0));
    REQUIRE(properties.warpSize == 32 && properties.major >= 7 && properties.computeMode == 0);
    REQUIRE(properties.maxBlocksPerMultiProcessor > 0 && properties.memoryPoolsSupported == 1);
    std::vector<float> x(n), y(n, 1);
    for (int i = 0; i < n; i++) x[i] = float(i);
    float a = 3, *dx, *dy;
    CUDA(cudaMalloc(&dx, n * sizeof(float)));
    CUDA(cudaMalloc(&dy, n * sizeof(float)));
    CUDA(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    void *arguments[] = {&n, &a, &dx, &dy};
    CUDA(cudaLaunchKernel((const void *)stub, dim3((n + 127) / 128), dim3(128), arguments, 0, nullptr));
    CUDA(cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) REQUIRE(y[i] == 3 * x[i] + 1);
    // 24 bytes in CUDA 12, 88 in 13.
    struct {
        cudaPointerAttributes attributes;
        int behind;
    } found = {{}, 4711};
    CUDA(cudaPointerGetAttributes(&found.attributes, dx));
    REQUIRE(found.attributes.type == cudaMemoryTypeDevice && found.behind == 4711);
    FAILS(cudaMemPrefetchAsync(dx, 4, 0, nullptr), cudaErrorNotSupported);
    __cudaUnregisterFatBinary(binary);
    return finish();
}
