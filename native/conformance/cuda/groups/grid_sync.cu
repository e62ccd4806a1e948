// The whole grid waits for itself many times: each step reads what other blocks wrote in the one before.
#include "../device_array.h"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__global__ void turn(int *a, int *b, int n, int steps) {
    auto grid = cg::this_grid();
    for (int s = 0; s < steps; s++) {
        for (int i = int(grid.thread_rank()); i < n; i += int(grid.size())) b[(i + 97) % n] = a[i] + 1;
        grid.sync();
        int *other = a;
        a = b, b = other;
    }
}

int main() {
    int n = 4096, steps = 20;
    std::vector<int> start(n);
    for (int i = 0; i < n; i++) start[i] = i;
    DeviceArray<int> a(start), b(n);
    int *pa = a.get(), *pb = b.get();
    void *arguments[] = {&pa, &pb, &n, &steps};
    CUDA(cudaLaunchCooperativeKernel((const void *)turn, dim3(8), dim3(128), arguments, 0, nullptr));
    auto got = a.host();
    for (int i = 0; i < n; i++) REQUIRE(got[(i + 97 * steps) % n] == i + steps);
    return finish();
}
