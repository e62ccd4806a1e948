// Prefix sums that begin anew with each key.
#include "device.h"
#include <cub/device/device_scan.cuh>

int main() {
    const int n = 20011;
    auto keys = random_integers<int>(n, 0, 2);
    auto values = random_integers<long long>(n, 0, 1000, 3);
    DeviceArray<int> key(keys);
    DeviceArray<long long> in(values), out(n);
    std::vector<long long> wanted(n);
    long long sum = 0;
    for (int i = 0; i < n; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) sum = 0;
        wanted[i] = sum += values[i];
    }
    CUB(cub::DeviceScan::InclusiveSumByKey, key.get(), in.get(), out.get(), n);
    REQUIRE(out.host() == wanted);
    return finish();
}
