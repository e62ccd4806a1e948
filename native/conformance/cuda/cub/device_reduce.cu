// Device-wide sums, extremes and their places, and a reduction by an operator of our own. Tolerance: none for integers,
// 1e-9 for the sum of doubles.
#include "device.h"
#include <cub/device/device_reduce.cuh>
#include <algorithm>
#include <numeric>

struct Xor {
    template <class T> __host__ __device__ T operator()(T a, T b) const { return a ^ b; }
};

int main() {
    for (int n : {1, 31, 1000, 70001}) {
        auto values = random_integers<int>(n, -1000, 1000);
        DeviceArray<int> in(values), out(1);
        CUB(cub::DeviceReduce::Sum, in.get(), out.get(), n);
        REQUIRE(out.front() == std::accumulate(values.begin(), values.end(), 0));
        CUB(cub::DeviceReduce::Min, in.get(), out.get(), n);
        REQUIRE(out.front() == *std::min_element(values.begin(), values.end()));
        CUB(cub::DeviceReduce::Max, in.get(), out.get(), n);
        REQUIRE(out.front() == *std::max_element(values.begin(), values.end()));
        CUB(cub::DeviceReduce::Reduce, in.get(), out.get(), n, Xor(), 5);
        REQUIRE(out.front() == std::accumulate(values.begin(), values.end(), 5, Xor()));
    }
    auto reals = random_reals<double>(40000, -1.0, 1.0);
    DeviceArray<double> in(reals), out(1);
    CUB(cub::DeviceReduce::Sum, in.get(), out.get(), int(reals.size()));
    near(out.front(), std::accumulate(reals.begin(), reals.end(), 0.0), 0, 1e-9, "sum of doubles");
    return finish();
}
