// Cooperative groups: reduce, scans, labelled and binary partitions.
#include "../device_array.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

__global__ void work(const int *in, int *sums, int *tops, int *scans, int *labels, int *halves) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    int t = block.thread_rank(), value = in[t];
    sums[t] = cg::reduce(warp, value, cg::plus<int>());
    tops[t] = cg::reduce(warp, value, cg::greater<int>());
    scans[t] = cg::exclusive_scan(warp, value);
    auto group = cg::labeled_partition(warp, value & 3);
    labels[t] = cg::reduce(group, 1, cg::plus<int>());
    auto half = cg::binary_partition(warp, value > 50);
    halves[t] = half.size();
}

int main() {
    const int n = 96;
    auto values = random_integers<int>(n, 0, 100);
    DeviceArray<int> in(values), sums(n), tops(n), scans(n), labels(n), halves(n);
    work<<<1, n>>>(in.get(), sums.get(), tops.get(), scans.get(), labels.get(), halves.get());
    auto sum = sums.host(), top = tops.host(), scan = scans.host(), label = labels.host(), half = halves.host();
    for (int i = 0; i < n; i++) {
        int total = 0, most = 0, before = 0, same = 0, side = 0;
        for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++) {
            total += values[k], most = std::max(most, values[k]);
            before += k < i ? values[k] : 0;
            same += (values[k] & 3) == (values[i] & 3), side += (values[k] > 50) == (values[i] > 50);
        }
        REQUIRE(sum[i] == total);
        REQUIRE(top[i] == most);
        REQUIRE(scan[i] == before);
        REQUIRE(label[i] == same);
        REQUIRE(half[i] == side);
    }
    return finish();
}
