// thrust::sort of numbers (radix) and by a comparison (merge), stable.
#include "host.h"
#include <thrust/sort.h>
#include <algorithm>

struct ByTens {
    __host__ __device__ bool operator()(int a, int b) const { return a / 10 < b / 10; }
};

int main() {
    auto values = random_integers<int>(20021, -5000, 5000);
    thrust::device_vector<int> device(values.begin(), values.end());
    thrust::stable_sort(device.begin(), device.end(), ByTens());
    std::stable_sort(values.begin(), values.end(), ByTens());
    REQUIRE(host(device) == values);
    thrust::sort(device.begin(), device.end());
    std::sort(values.begin(), values.end());
    REQUIRE(host(device) == values);
    return finish();
}
