// Blocks that fit on a multiprocessor, and the block size that fills it.
#include "check.h"

__global__ void scale(float *data, float factor) { data[threadIdx.x] *= factor; }

int main() {
    int blocks = 0, grid = 0, block = 0, warp = 0, threads = 0;
    CUDA(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0));
    CUDA(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 128, 0));
    REQUIRE(blocks >= 1 && blocks * 128 <= threads);
    int with_shared = 0;
    CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&with_shared, scale, 128, 32 << 10));
    REQUIRE(with_shared >= 1 && with_shared < blocks);
    CUDA(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale));
    REQUIRE(block % warp == 0 && block <= 1024 && grid >= 1);
    size_t bytes = 0;
    CUDA(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, scale, 2, 128));
    REQUIRE(bytes > 0);
    return finish();
}
