// A sum for each segment of an array, empty ones among them.
#include "device.h"
#include <cub/device/device_segmented_reduce.cuh>

int main() {
    const int n = 30000;
    auto values = random_integers<int>(n, -9, 9);
    std::vector<int> offsets = {0, 0, 1, 40, 5000, 5000, 29000, n};
    const int segments = int(offsets.size()) - 1;
    DeviceArray<int> in(values), at(offsets), out(segments);
    CUB(cub::DeviceSegmentedReduce::Sum, in.get(), out.get(), segments, at.get(), at.get() + 1);
    std::vector<int> wanted(segments, 0);
    for (int s = 0; s < segments; s++)
        for (int i = offsets[s]; i < offsets[s + 1]; i++) wanted[s] += values[i];
    REQUIRE(out.host() == wanted);
    return finish();
}
