// thrust::stable_partition, copy_if, remove_if with a stencil.
#include "host.h"
#include <thrust/copy.h>
#include <thrust/partition.h>
#include <thrust/remove.h>
#include <algorithm>

struct Odd {
    __host__ __device__ bool operator()(int v) const { return v & 1; }
};

int main() {
    const int n = 17011;
    auto values = random_integers<int>(n, 0, 999);
    thrust::device_vector<int> device(values.begin(), values.end()), odd(n), rest = device;
    odd.resize(thrust::copy_if(device.begin(), device.end(), odd.begin(), Odd()) - odd.begin());
    rest.resize(thrust::remove_if(rest.begin(), rest.end(), device.begin(), Odd()) - rest.begin());
    auto middle = thrust::stable_partition(device.begin(), device.end(), Odd());
    auto at = std::stable_partition(values.begin(), values.end(), Odd());
    REQUIRE(middle - device.begin() == at - values.begin());
    REQUIRE(host(device) == values);
    REQUIRE(host(odd) == std::vector<int>(values.begin(), at));
    REQUIRE(host(rest) == std::vector<int>(at, values.end()));
    return finish();
}
