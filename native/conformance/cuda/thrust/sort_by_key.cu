// thrust::sort_by_key: values follow their keys.
#include "host.h"
#include <thrust/sort.h>
#include <algorithm>

int main() {
    const int n = 10007;
    auto keys = random_integers<int>(n, 0, 500);
    std::vector<double> values(n);
    for (int i = 0; i < n; i++) values[i] = i;
    thrust::device_vector<int> key(keys.begin(), keys.end());
    thrust::device_vector<double> value(values.begin(), values.end());
    thrust::stable_sort_by_key(key.begin(), key.end(), value.begin());
    std::stable_sort(values.begin(), values.end(), [&](double a, double b) { return keys[int(a)] < keys[int(b)]; });
    std::sort(keys.begin(), keys.end());
    REQUIRE(host(key) == keys);
    REQUIRE(host(value) == values);
    return finish();
}
