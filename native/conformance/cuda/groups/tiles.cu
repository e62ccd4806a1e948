// Cooperative groups: blocks, tiles of a warp, shuffles, votes, and groups that happen to be together.
#include "../device_array.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void work(int *sums, int *ranks, int *votes, int *together) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int value = block.thread_rank();
    for (int step = tile.size() / 2; step > 0; step /= 2) value += tile.shfl_down(value, step);
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = value;
    ranks[block.thread_rank()] = tile.thread_rank();
    votes[block.thread_rank()] = tile.ballot(block.thread_rank() % 3 == 0) | tile.any(tile.thread_rank() == 7) << 16;
    together[block.thread_rank()] = -1;
    if (block.thread_rank() % 5 == 0) {
        auto group = cg::coalesced_threads();
        together[block.thread_rank()] = group.thread_rank() * 100 + group.size();
    }
    block.sync();
}

int main() {
    DeviceArray<int> sums(8), ranks(64), votes(64), together(64);
    work<<<1, 64>>>(sums.get(), ranks.get(), votes.get(), together.get());
    auto sum = sums.host(), rank = ranks.host(), vote = votes.host(), joined = together.host();
    for (int t = 0; t < 8; t++) REQUIRE(sum[t] == 8 * (8 * t) + 28);
    for (int i = 0; i < 64; i++) {
        REQUIRE(rank[i] == i % 8);
        int bits = 0;
        for (int k = 0; k < 8; k++) bits |= (i / 8 * 8 + k) % 3 == 0 ? 1 << k : 0;
        REQUIRE(vote[i] == (bits | 1 << 16));
        int first = i / 32 * 32, before = 0, size = 0;
        for (int k = first; k < first + 32; k++)
            if (k % 5 == 0) before += k < i, size++;
        REQUIRE(joined[i] == (i % 5 == 0 ? before * 100 + size : -1));
    }
    return finish();
}
