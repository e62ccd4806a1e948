// thrust::transform over one and two ranges, counting and zipped iterators, tabulate, replace.
// Tolerance: 4e-7 for a x + y, which a fused multiplication rounds otherwise; none elsewhere.
#include "host.h"
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/replace.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

struct Axpy {
    float a;
    __host__ __device__ float operator()(float x, float y) const { return a * x + y; }
};
struct Product {
    template <class T> __host__ __device__ float operator()(const T &pair) const { return thrust::get<0>(pair) * thrust::get<1>(pair); }
};
struct Cube {
    __host__ __device__ long long operator()(long long i) const { return i * i * i; }
};
struct Negative {
    __host__ __device__ bool operator()(float v) const { return v < 0; }
};

int main() {
    const int n = 10001;
    auto x = random_reals<float>(n, -1, 1), y = random_reals<float>(n, -1, 1, 8);
    thrust::device_vector<float> dx(x.begin(), x.end()), dy(y.begin(), y.end()), out(n);
    thrust::transform(dx.begin(), dx.end(), dy.begin(), out.begin(), Axpy{2.5f});
    std::vector<float> wanted(n);
    for (int i = 0; i < n; i++) wanted[i] = 2.5f * x[i] + y[i];
    near(host(out), wanted, 0, 4e-7, "axpy");
    auto both = thrust::make_zip_iterator(thrust::make_tuple(dx.begin(), dy.begin()));
    thrust::transform(both, both + n, out.begin(), Product());
    for (int i = 0; i < n; i++) wanted[i] = x[i] * y[i];
    REQUIRE(host(out) == wanted);
    thrust::replace_if(out.begin(), out.end(), Negative(), 0.0f);
    for (float &v : wanted) v = v < 0 ? 0 : v;
    REQUIRE(host(out) == wanted);
    thrust::device_vector<long long> cubes(n), table(n);
    thrust::counting_iterator<long long> first(0);
    thrust::transform(first, first + n, cubes.begin(), Cube());
    thrust::tabulate(table.begin(), table.end(), Cube());
    auto got = host(cubes);
    for (long long i = 0; i < n; i++) REQUIRE(got[i] == i * i * i);
    REQUIRE(host(table) == got);
    return finish();
}
