// Fills: bytes, rows with gaps, in stream order.
#include "check.h"
#include <vector>

int main() {
    std::vector<unsigned char> host(64 * 16);
    unsigned char *data;
    CUDA(cudaMalloc(&data, host.size()));
    CUDA(cudaMemset(data, 0x11, host.size()));
    CUDA(cudaMemset2D(data + 4, 64, 0x22, 10, 16));
    CUDA(cudaMemset2DAsync(data + 32, 64, 0x133, 32, 2, cudaStreamPerThread));
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    CUDA(cudaMemsetAsync(data + 64 * 15, 0x44, 64));
    CUDA(cudaMemcpy(host.data(), data, host.size(), cudaMemcpyDeviceToHost));
    for (int y = 0; y < 16; y++)
        for (int x = 0; x < 64; x++) {
            int expected = y == 15 ? 0x44 : x >= 4 && x < 14 ? 0x22 : x >= 32 && y < 2 ? 0x33 : 0x11;
            REQUIRE(host[y * 64 + x] == expected);
        }
    FAILS(cudaMemset(data, 0, host.size() + 1), cudaErrorInvalidValue);
    return finish();
}
