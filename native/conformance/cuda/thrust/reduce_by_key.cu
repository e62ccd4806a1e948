// thrust::reduce_by_key: one sum for each run of equal keys.
#include "host.h"
#include <thrust/reduce.h>

int main() {
    const int n = 20011;
    auto keys = random_integers<int>(n, 0, 1);
    auto values = random_integers<int>(n, 0, 100, 9);
    thrust::device_vector<int> key(keys.begin(), keys.end()), value(values.begin(), values.end()), to(n), sum(n);
    auto ends = thrust::reduce_by_key(key.begin(), key.end(), value.begin(), to.begin(), sum.begin());
    std::vector<int> wanted, sums;
    for (int i = 0; i < n; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) wanted.push_back(keys[i]), sums.push_back(0);
        sums.back() += values[i];
    }
    REQUIRE(ends.first - to.begin() == int(wanted.size()));
    to.resize(wanted.size()), sum.resize(wanted.size());
    REQUIRE(host(to) == wanted);
    REQUIRE(host(sum) == sums);
    return finish();
}
