// thrust::reduce, transform_reduce, inner_product, extremes, counts. Tolerance: 1e-9 for sums of doubles, 1e-12
// of the value for sums of squares.
#include "host.h"
#include <thrust/count.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/transform_reduce.h>
#include <algorithm>
#include <numeric>

struct Square {
    __host__ __device__ double operator()(double v) const { return v * v; }
};

int main() {
    const int n = 33333;
    auto values = random_reals<double>(n, -1.0, 1.0);
    thrust::device_vector<double> device(values.begin(), values.end());
    near(thrust::reduce(device.begin(), device.end()), std::accumulate(values.begin(), values.end(), 0.0), 0, 1e-9, "sum");
    double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    near(thrust::transform_reduce(device.begin(), device.end(), Square(), 0.0, thrust::plus<double>()), squares, 1e-12, 0, "squares");
    near(thrust::inner_product(device.begin(), device.end(), device.begin(), 0.0), squares, 1e-12, 0, "inner product");
    auto top = thrust::max_element(device.begin(), device.end()) - device.begin();
    REQUIRE(top == std::max_element(values.begin(), values.end()) - values.begin());
    device[5] = 7;
    REQUIRE(thrust::count(device.begin(), device.end(), 7.0) == 1);
    return finish();
}
