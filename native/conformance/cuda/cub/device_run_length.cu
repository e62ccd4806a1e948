// Device-wide run-length encoding, and reduction of the values of each run of keys.
#include "device.h"
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>

struct Plus {
    template <class T> __host__ __device__ T operator()(T a, T b) const { return a + b; }
};

int main() {
    const int n = 30011;
    auto values = random_integers<int>(n, 0, 2);
    DeviceArray<int> in(values), unique(n), lengths(n), count(1), sums(n);
    CUB(cub::DeviceRunLengthEncode::Encode, in.get(), unique.get(), lengths.get(), count.get(), n);
    std::vector<int> keys, times, total;
    for (int i = 0; i < n; i++) {
        if (i == 0 || values[i] != values[i - 1]) keys.push_back(values[i]), times.push_back(0), total.push_back(0);
        times.back()++;
        total.back() += values[i];
    }
    auto check = [&](const DeviceArray<int> &device, const std::vector<int> &wanted) {
        auto got = device.host();
        got.resize(count.front());
        REQUIRE(got == wanted);
    };
    check(unique, keys);
    check(lengths, times);
    CUB(cub::DeviceReduce::ReduceByKey, in.get(), unique.get(), in.get(), sums.get(), count.get(), Plus(), n);
    check(unique, keys);
    check(sums, total);
    return finish();
}
