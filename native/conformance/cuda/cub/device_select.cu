// Device-wide choice: by a condition, by flags, and of those that differ from the one before.
#include "device.h"
#include <cub/device/device_select.cuh>
#include <algorithm>

struct Even {
    __host__ __device__ bool operator()(int v) const { return v % 2 == 0; }
};

std::vector<int> head(const DeviceArray<int> &out, const DeviceArray<int> &count) {
    auto values = out.host();
    values.resize(count.front());
    return values;
}

int main() {
    const int n = 40009;
    auto values = random_integers<int>(n, 0, 5);
    auto flags = random_integers<char>(n, 0, 1, 11);
    DeviceArray<int> in(values), out(n), count(1);
    DeviceArray<char> flag(flags);
    std::vector<int> wanted;
    CUB(cub::DeviceSelect::If, in.get(), out.get(), count.get(), n, Even());
    std::copy_if(values.begin(), values.end(), std::back_inserter(wanted), Even());
    REQUIRE(head(out, count) == wanted);
    wanted.clear();
    CUB(cub::DeviceSelect::Flagged, in.get(), flag.get(), out.get(), count.get(), n);
    for (int i = 0; i < n; i++)
        if (flags[i]) wanted.push_back(values[i]);
    REQUIRE(head(out, count) == wanted);
    CUB(cub::DeviceSelect::Unique, in.get(), out.get(), count.get(), n);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    REQUIRE(head(out, count) == values);
    return finish();
}
