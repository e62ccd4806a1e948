// Device-wide radix sort: keys up and down, pairs, signed and floating keys.
#include "device.h"
#include <cub/device/device_radix_sort.cuh>
#include <algorithm>
#include <functional>
#include <numeric>

int main() {
    for (int n : {1, 500, 30007}) {
        auto values = random_integers<unsigned>(n, 0, 0xffffffffll);
        DeviceArray<unsigned> in(values), out(n);
        CUB(cub::DeviceRadixSort::SortKeys, in.get(), out.get(), n);
        std::sort(values.begin(), values.end());
        REQUIRE(out.host() == values);
        CUB(cub::DeviceRadixSort::SortKeysDescending, in.get(), out.get(), n);
        std::reverse(values.begin(), values.end());
        REQUIRE(out.host() == values);
    }
    const int n = 20000;
    auto keys = random_reals<float>(n, -100.0f, 100.0f);
    std::vector<int> places(n);
    std::iota(places.begin(), places.end(), 0);
    DeviceArray<float> in(keys), out(n);
    DeviceArray<int> from(places), to(n);
    CUB(cub::DeviceRadixSort::SortPairs, in.get(), out.get(), from.get(), to.get(), n);
    std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    REQUIRE(to.host() == places);
    return finish();
}
