// A block's prefix sums of several items a thread, with the block's total.
#include "../device_array.h"
#include <cub/block/block_scan.cuh>

template <cub::BlockScanAlgorithm WAY> __global__ void scan(const int *in, int *out, int *total) {
    using Scan = cub::BlockScan<int, 128, WAY>;
    __shared__ typename Scan::TempStorage storage;
    int items[3], sum;
    for (int k = 0; k < 3; k++) items[k] = in[3 * threadIdx.x + k];
    Scan(storage).ExclusiveSum(items, items, sum);
    for (int k = 0; k < 3; k++) out[3 * threadIdx.x + k] = items[k];
    if (threadIdx.x == 0) *total = sum;
}

template <cub::BlockScanAlgorithm WAY> void check() {
    auto values = random_integers<int>(384, 0, 99);
    DeviceArray<int> in(values), out(384), total(1);
    scan<WAY><<<1, 128>>>(in.get(), out.get(), total.get());
    int sum = 0;
    std::vector<int> wanted(384);
    for (int i = 0; i < 384; i++) wanted[i] = sum, sum += values[i];
    REQUIRE(out.host() == wanted);
    REQUIRE(total.front() == sum);
}

int main() {
    check<cub::BLOCK_SCAN_RAKING>();
    check<cub::BLOCK_SCAN_RAKING_MEMOIZE>();
    check<cub::BLOCK_SCAN_WARP_SCANS>();
    return finish();
}
