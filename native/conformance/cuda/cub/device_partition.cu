// Device-wide partition: chosen ones in front in their order, the others behind in the opposite one.
#include "device.h"
#include <cub/device/device_partition.cuh>
#include <algorithm>

struct Small {
    __host__ __device__ bool operator()(int v) const { return v < 300; }
};

int main() {
    const int n = 25013;
    auto values = random_integers<int>(n, 0, 999);
    DeviceArray<int> in(values), out(n), count(1);
    CUB(cub::DevicePartition::If, in.get(), out.get(), count.get(), n, Small());
    std::vector<int> wanted, rest;
    for (int v : values) (Small()(v) ? wanted : rest).push_back(v);
    REQUIRE(count.front() == int(wanted.size()));
    wanted.insert(wanted.end(), rest.rbegin(), rest.rend());
    REQUIRE(out.host() == wanted);
    return finish();
}
