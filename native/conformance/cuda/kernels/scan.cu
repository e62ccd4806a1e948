// Prefix sums: Blelloch's scan of blocks, a scan of their sums, and their addition. Tolerance: none, integers do
// not round.
#include "../device_array.h"

__global__ void blocks(const int *in, int *out, int *sums, int n) {
    __shared__ int tree[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    int own = tree[t] = i < n ? in[i] : 0;
    for (int step = 1; step < 256; step *= 2) {
        __syncthreads();
        int at = (t + 1) * step * 2 - 1;
        if (at < 256) tree[at] += tree[at - step];
    }
    __syncthreads();
    if (t == 0) {
        if (sums) sums[blockIdx.x] = tree[255];
        tree[255] = 0;
    }
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        int at = (t + 1) * step * 2 - 1;
        if (at < 256) {
            int left = tree[at - step];
            tree[at - step] = tree[at];
            tree[at] += left;
        }
    }
    __syncthreads();
    if (i < n) out[i] = tree[t] + own;
}

__global__ void add(int *out, const int *sums, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n && blockIdx.x > 0) out[i] += sums[blockIdx.x - 1];
}

int main() {
    const int n = 60000, count = (n + 255) / 256;
    auto values = random_integers<int>(n, -100, 100);
    DeviceArray<int> in(values), out(n), sums(count), scanned(count);
    blocks<<<count, 256>>>(in.get(), out.get(), sums.get(), n);
    blocks<<<1, 256>>>(sums.get(), scanned.get(), nullptr, count);
    add<<<count, 256>>>(out.get(), scanned.get(), n);
    for (int i = 1; i < n; i++) values[i] += values[i - 1];
    REQUIRE(out.host() == values);
    return finish();
}
