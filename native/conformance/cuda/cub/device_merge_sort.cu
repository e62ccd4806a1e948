// Device-wide merge sort by a comparison of our own.
#include "device.h"
#include <cub/device/device_merge_sort.cuh>
#include <algorithm>

struct ByLastDigit {
    __host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};

int main() {
    const int n = 15013;
    auto values = random_integers<int>(n, 0, 100000);
    DeviceArray<int> keys(values);
    CUB(cub::DeviceMergeSort::StableSortKeys, keys.get(), n, ByLastDigit());
    std::stable_sort(values.begin(), values.end(), ByLastDigit());
    REQUIRE(keys.host() == values);
    return finish();
}
