// Sorted ranges: merge, intersection, difference, union, binary search.
#include "host.h"
#include <thrust/binary_search.h>
#include <thrust/merge.h>
#include <thrust/set_operations.h>
#include <algorithm>
#include <iterator>

int main() {
    auto a = random_integers<int>(5003, 0, 20000), b = random_integers<int>(7001, 0, 20000, 4);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    thrust::device_vector<int> da(a.begin(), a.end()), db(b.begin(), b.end()), out(a.size() + b.size());
    std::vector<int> wanted;
    auto check = [&](thrust::device_vector<int>::iterator end) {
        auto got = host(out);
        got.resize(end - out.begin());
        REQUIRE(got == wanted);
        wanted.clear();
    };
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(wanted));
    check(thrust::merge(da.begin(), da.end(), db.begin(), db.end(), out.begin()));
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(wanted));
    check(thrust::set_intersection(da.begin(), da.end(), db.begin(), db.end(), out.begin()));
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(wanted));
    check(thrust::set_difference(da.begin(), da.end(), db.begin(), db.end(), out.begin()));
    thrust::lower_bound(da.begin(), da.end(), db.begin(), db.end(), out.begin());
    for (int v : b) wanted.push_back(int(std::lower_bound(a.begin(), a.end(), v) - a.begin()));
    check(out.begin() + b.size());
    return finish();
}
