// Device-wide prefix sums, running maxima and sums by key.
#include "device.h"
#include <cub/device/device_scan.cuh>
#include <algorithm>

struct Larger {
    template <class T> __host__ __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

int main() {
    for (int n : {1, 33, 5000, 60001}) {
        auto values = random_integers<int>(n, -50, 100);
        DeviceArray<int> in(values), out(n);
        std::vector<int> wanted(n);
        for (int i = 0, sum = 0; i < n; i++) wanted[i] = sum += values[i];
        CUB(cub::DeviceScan::InclusiveSum, in.get(), out.get(), n);
        REQUIRE(out.host() == wanted);
        for (int i = 0, sum = 0; i < n; i++) wanted[i] = sum, sum += values[i];
        CUB(cub::DeviceScan::ExclusiveSum, in.get(), out.get(), n);
        REQUIRE(out.host() == wanted);
        for (int i = 0, top = -1000; i < n; i++) wanted[i] = top = std::max(top, values[i]);
        CUB(cub::DeviceScan::InclusiveScan, in.get(), out.get(), Larger(), n);
        REQUIRE(out.host() == wanted);
    }
    return finish();
}
