// A block's sum by each of CUB's three ways, and a sum of a part of its threads.
#include "../device_array.h"
#include <cub/block/block_reduce.cuh>

template <cub::BlockReduceAlgorithm WAY> __global__ void sum(const int *in, int *out, int valid) {
    using Reduce = cub::BlockReduce<int, 160, WAY>;
    __shared__ typename Reduce::TempStorage storage;
    int total = Reduce(storage).Sum(in[threadIdx.x], valid);
    if (threadIdx.x == 0) *out = total;
}

template <cub::BlockReduceAlgorithm WAY> void check(const std::vector<int> &values, int valid) {
    DeviceArray<int> in(values), out(1);
    sum<WAY><<<1, 160>>>(in.get(), out.get(), valid);
    int wanted = 0;
    for (int i = 0; i < valid; i++) wanted += values[i];
    REQUIRE(out.front() == wanted);
}

int main() {
    auto values = random_integers<int>(160, -100, 100);
    for (int valid : {1, 32, 77, 160}) {
        check<cub::BLOCK_REDUCE_RAKING>(values, valid);
        check<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(values, valid);
        check<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(values, valid);
    }
    return finish();
}
