// A block's histogram by atomics and by sorting.
#include "../device_array.h"
#include <cub/block/block_histogram.cuh>

template <cub::BlockHistogramAlgorithm WAY> __global__ void count(const unsigned char *in, int *out) {
    using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 64, WAY>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ int bins[64];
    unsigned char items[4];
    for (int k = 0; k < 4; k++) items[k] = in[4 * threadIdx.x + k];
    Histogram(storage).Histogram(items, bins);
    __syncthreads();
    if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x];
}

int main() {
    auto values = random_integers<unsigned char>(512, 0, 63);
    std::vector<int> wanted(64, 0);
    for (auto v : values) wanted[v]++;
    DeviceArray<unsigned char> in(values);
    DeviceArray<int> out(64);
    count<cub::BLOCK_HISTO_ATOMIC><<<1, 128>>>(in.get(), out.get());
    REQUIRE(out.host() == wanted);
    count<cub::BLOCK_HISTO_SORT><<<1, 128>>>(in.get(), out.get());
    REQUIRE(out.host() == wanted);
    return finish();
}
