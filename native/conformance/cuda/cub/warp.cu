// Sums, prefix sums and sorting within warps and parts of them.
#include "../device_array.h"
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <algorithm>

struct Less {
    __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

__global__ void work(const int *in, int *sums, int *scans, int *sorted) {
    using Reduce = cub::WarpReduce<int, 16>;
    using Scan = cub::WarpScan<int>;
    using Sort = cub::WarpMergeSort<int, 2, 32>;
    __shared__ typename Reduce::TempStorage reduce[4];
    __shared__ typename Scan::TempStorage scan[2];
    __shared__ typename Sort::TempStorage sort[2];
    int t = threadIdx.x, warp = t / 32;
    int sum = Reduce(reduce[t / 16]).Sum(in[t]);
    if (t % 16 == 0) sums[t / 16] = sum;
    Scan(scan[warp]).InclusiveSum(in[t], scans[t]);
    int items[2] = {in[2 * t], in[2 * t + 1]};
    Sort(sort[warp]).Sort(items, Less());
    sorted[2 * t] = items[0], sorted[2 * t + 1] = items[1];
}

int main() {
    auto values = random_integers<int>(128, -99, 99);
    DeviceArray<int> in(values), sums(4), scans(64), sorted(128);
    work<<<1, 64>>>(in.get(), sums.get(), scans.get(), sorted.get());
    std::vector<int> sum(4, 0), scan(64);
    for (int i = 0; i < 64; i++) {
        sum[i / 16] += values[i];
        scan[i] = values[i] + (i % 32 ? scan[i - 1] : 0);
    }
    REQUIRE(sums.host() == sum);
    REQUIRE(scans.host() == scan);
    std::sort(values.begin(), values.begin() + 64);
    std::sort(values.begin() + 64, values.end());
    REQUIRE(sorted.host() == values);
    return finish();
}
