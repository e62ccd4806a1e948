// A box out of a volume.
#include "check.h"
#include <vector>

int main() {
    const int width = 40, height = 12, depth = 6;
    std::vector<int> in(width * height * depth), out(10 * 5 * 3, -1);
    for (size_t i = 0; i < in.size(); i++) in[i] = int(i);
    cudaPitchedPtr volume;
    CUDA(cudaMalloc3D(&volume, make_cudaExtent(width * sizeof(int), height, depth)));
    cudaMemcpy3DParms up = {};
    up.srcPtr = make_cudaPitchedPtr(in.data(), width * sizeof(int), width * sizeof(int), height);
    up.dstPtr = volume;
    up.extent = make_cudaExtent(width * sizeof(int), height, depth);
    up.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&up));
    cudaMemcpy3DParms down = {};
    down.srcPtr = volume;
    down.srcPos = make_cudaPos(7 * sizeof(int), 4, 2);
    down.dstPtr = make_cudaPitchedPtr(out.data(), 10 * sizeof(int), 10 * sizeof(int), 5);
    down.extent = make_cudaExtent(10 * sizeof(int), 5, 3);
    down.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaMemcpy3D(&down));
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 10; x++)
                REQUIRE(out[(z * 5 + y) * 10 + x] == ((z + 2) * height + y + 4) * width + x + 7);
    CUDA(cudaMemset3D(volume, 0, make_cudaExtent(width * sizeof(int), height, depth)));
    CUDA(cudaMemcpy3DAsync(&down, nullptr));
    CUDA(cudaDeviceSynchronize());
    for (int value : out) REQUIRE(value == 0);
    return finish();
}
