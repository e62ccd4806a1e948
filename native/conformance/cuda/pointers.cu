// What kind of memory an address is, and copies that find out by themselves.
#include "check.h"
#include <cstring>

int main() {
    char ordinary[64] = "from the host", back[64] = "", *pinned, *device, *other;
    CUDA(cudaHostAlloc(&pinned, 64, cudaHostAllocPortable));
    CUDA(cudaMalloc(&device, 64));
    CUDA(cudaMalloc(&other, 64));
    cudaPointerAttributes attributes;
    CUDA(cudaPointerGetAttributes(&attributes, device + 10));
    REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 && attributes.devicePointer == device + 10);
    CUDA(cudaPointerGetAttributes(&attributes, pinned));
    REQUIRE(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
    CUDA(cudaPointerGetAttributes(&attributes, ordinary));
    REQUIRE(attributes.type == cudaMemoryTypeUnregistered && attributes.hostPointer == ordinary);
    CUDA(cudaMemcpy(device, ordinary, 64, cudaMemcpyDefault));
    CUDA(cudaMemcpy(other, device, 64, cudaMemcpyDefault));
    CUDA(cudaMemcpyPeer(device, 0, other, 0, 64));
    CUDA(cudaMemcpy(pinned, device, 64, cudaMemcpyDefault));
    CUDA(cudaMemcpy(back, pinned, 64, cudaMemcpyDefault));
    REQUIRE(std::strcmp(back, "from the host") == 0);
    unsigned flags = 9;
    CUDA(cudaHostGetFlags(&flags, pinned));
    REQUIRE((flags & cudaHostAllocPortable) != 0);
    CUDA(cudaHostRegister(ordinary, 64, cudaHostRegisterDefault));
    FAILS(cudaHostRegister(ordinary, 64, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
    CUDA(cudaHostUnregister(ordinary));
    CUDA(cudaFreeHost(pinned));
    void *empty = device;
    CUDA(cudaMalloc(&empty, 0));
    REQUIRE(empty == nullptr);
    return finish();
}
