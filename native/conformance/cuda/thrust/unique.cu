// thrust::unique and unique_by_key keep the first of each run.
#include "host.h"
#include <thrust/unique.h>
#include <algorithm>

int main() {
    const int n = 20011;
    auto values = random_integers<int>(n, 0, 3);
    thrust::device_vector<int> device(values.begin(), values.end()), keys = device, place(n);
    std::vector<int> places;
    for (int i = 0; i < n; i++) {
        place[i % 64] = i % 64;
        if (i == 0 || values[i] != values[i - 1]) places.push_back(i < 64 ? i : 0);
    }
    auto end = thrust::unique(device.begin(), device.end());
    auto ends = thrust::unique_by_key(keys.begin(), keys.end(), place.begin());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    device.resize(end - device.begin());
    keys.resize(ends.first - keys.begin());
    place.resize(ends.second - place.begin());
    REQUIRE(host(device) == values);
    REQUIRE(host(keys) == values);
    REQUIRE(host(place) == places);
    return finish();
}
