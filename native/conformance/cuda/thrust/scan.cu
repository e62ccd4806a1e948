// thrust's inclusive, exclusive and transformed prefix sums, and differences that undo them.
#include "host.h"
#include <thrust/adjacent_difference.h>
#include <thrust/functional.h>
#include <thrust/scan.h>
#include <thrust/transform_scan.h>

struct Twice {
    __host__ __device__ int operator()(int v) const { return 2 * v; }
};

int main() {
    const int n = 30013;
    auto values = random_integers<int>(n, -100, 100);
    thrust::device_vector<int> in(values.begin(), values.end()), out(n), back(n);
    std::vector<int> wanted(n);
    for (int i = 0, sum = 0; i < n; i++) wanted[i] = sum += values[i];
    thrust::inclusive_scan(in.begin(), in.end(), out.begin());
    REQUIRE(host(out) == wanted);
    thrust::adjacent_difference(out.begin(), out.end(), back.begin());
    REQUIRE(host(back) == values);
    for (int i = 0, sum = 10; i < n; i++) wanted[i] = sum, sum += values[i];
    thrust::exclusive_scan(in.begin(), in.end(), out.begin(), 10);
    REQUIRE(host(out) == wanted);
    for (int i = 0, sum = 0; i < n; i++) wanted[i] = sum += 2 * values[i];
    thrust::transform_inclusive_scan(in.begin(), in.end(), out.begin(), Twice(), thrust::plus<int>());
    REQUIRE(host(out) == wanted);
    return finish();
}
