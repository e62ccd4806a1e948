// Breadth-first search, level by level with a frontier that atomics fill. Tolerance: none, whichever thread
// finds a node first.
#include "../device_array.h"

__global__ void expand(const int *starts, const int *targets, int *depth, const int *frontier, int count, int *next, int *found, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int from = frontier[i];
    for (int e = starts[from]; e < starts[from + 1]; e++)
        if (atomicCAS(&depth[targets[e]], -1, level) == -1) next[atomicAdd(found, 1)] = targets[e];
}

int main() {
    const int n = 5000;
    auto degrees = random_integers<int>(n, 0, 4);
    std::vector<int> starts = {0};
    for (int d : degrees) starts.push_back(starts.back() + d);
    auto targets = random_integers<int>(starts.back(), 0, n - 1, 2);
    std::vector<int> wanted(n, -1), queue = {0};
    wanted[0] = 0;
    for (size_t at = 0; at < queue.size(); at++)
        for (int e = starts[queue[at]]; e < starts[queue[at] + 1]; e++)
            if (wanted[targets[e]] < 0) wanted[targets[e]] = wanted[queue[at]] + 1, queue.push_back(targets[e]);
    std::vector<int> depth(n, -1);
    depth[0] = 0;
    DeviceArray<int> ds(starts), dt(targets), dd(depth), a(std::vector<int>(n, 0)), b(n), found(1);
    int *frontier = a.get(), *next = b.get();
    for (int level = 1, count = 1; count > 0; level++) {
        CUDA(cudaMemset(found.get(), 0, sizeof(int)));
        expand<<<(count + 127) / 128, 128>>>(ds.get(), dt.get(), dd.get(), frontier, count, next, found.get(), level);
        count = found.front();
        std::swap(frontier, next);
    }
    REQUIRE(dd.host() == wanted);
    return finish();
}
