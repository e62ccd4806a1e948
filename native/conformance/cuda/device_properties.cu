// Properties and attributes say the same, in this header's layout.
#include "check.h"
#include <cstring>

int main() {
    int count = 0, device = -1, value = 0;
    CUDA(cudaGetDeviceCount(&count));
    REQUIRE(count >= 1);
    CUDA(cudaGetDevice(&device));
    REQUIRE(device == 0);
    cudaDeviceProp properties;
    std::memset(&properties, 0xff, sizeof(properties));
    CUDA(cudaGetDeviceProperties(&properties, 0));
    REQUIRE(std::strlen(properties.name) > 0 && std::strlen(properties.name) < 256);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
    REQUIRE(properties.major == value);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
    REQUIRE(properties.maxThreadsPerBlock == value && value == 1024);
    REQUIRE(properties.warpSize == 32 && properties.maxThreadsDim[2] == 64 && properties.maxGridSize[1] == 65535);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    REQUIRE(properties.sharedMemPerBlockOptin == size_t(value));
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMaxBlocksPerMultiprocessor, 0));
    REQUIRE(properties.maxBlocksPerMultiProcessor == value);
    CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryPoolsSupported, 0));
    REQUIRE(properties.memoryPoolsSupported == value);
    // A program elsewhere shares no memory with the device.
    REQUIRE(properties.canMapHostMemory == 0 && properties.managedMemory == 0 && properties.unifiedAddressing == 0);
    REQUIRE(properties.totalGlobalMem > (1u << 20));
    int runtime = 0, driver = 0;
    CUDA(cudaRuntimeGetVersion(&runtime));
    CUDA(cudaDriverGetVersion(&driver));
    REQUIRE(runtime / 1000 == CUDART_VERSION / 1000 && driver >= 12000);
    char id[32];
    CUDA(cudaDeviceGetPCIBusId(id, sizeof(id), 0));
    CUDA(cudaDeviceGetByPCIBusId(&device, id));
    REQUIRE(device == 0);
    size_t available = 0, total = 0;
    CUDA(cudaMemGetInfo(&available, &total));
    REQUIRE(available <= total && total > 0);
    return finish();
}
