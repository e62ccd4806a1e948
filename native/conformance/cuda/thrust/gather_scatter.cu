// thrust::gather, scatter, permutation iterators, reverse, sequence, fill.
#include "host.h"
#include <thrust/fill.h>
#include <thrust/gather.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/reduce.h>
#include <thrust/reverse.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <algorithm>

int main() {
    const int n = 9001;
    std::vector<int> order(n);
    for (int i = 0; i < n; i++) order[i] = int((i * 4001ll) % n);
    thrust::device_vector<int> map(order.begin(), order.end()), in(n), out(n), back(n);
    thrust::sequence(in.begin(), in.end(), 100, 3);
    thrust::gather(map.begin(), map.end(), in.begin(), out.begin());
    auto got = host(out);
    for (int i = 0; i < n; i++) REQUIRE(got[i] == 100 + 3 * order[i]);
    thrust::scatter(out.begin(), out.end(), map.begin(), back.begin());
    REQUIRE(host(back) == host(in));
    auto chosen = thrust::make_permutation_iterator(in.begin(), map.begin());
    REQUIRE(thrust::reduce(chosen, chosen + 4) == got[0] + got[1] + got[2] + got[3]);
    thrust::reverse(out.begin(), out.end());
    std::reverse(got.begin(), got.end());
    REQUIRE(host(out) == got);
    thrust::fill(out.begin(), out.begin() + 5, -1);
    REQUIRE(thrust::reduce(out.begin(), out.begin() + 5) == -5);
    return finish();
}
