// Bitonic sort: large steps in device memory, small ones in shared memory. Tolerance: none, numbers are
// moved, not computed.
#include "../device_array.h"
#include <algorithm>

__device__ void order(int &a, int &b, bool up) {
    if ((a > b) == up) {
        int old = a;
        a = b, b = old;
    }
}

__global__ void large(int *data, int step, int size) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, i = 2 * t - (t & (step - 1));
    order(data[i], data[i + step], !(i & size));
}

__global__ void small(int *data, int size) {
    __shared__ int s[512];
    int base = blockIdx.x * 512, t = threadIdx.x;
    s[t] = data[base + t], s[t + 256] = data[base + t + 256];
    for (int step = min(size / 2, 256); step > 0; step /= 2) {
        __syncthreads();
        int i = 2 * t - (t & (step - 1));
        order(s[i], s[i + step], !((base + i) & size));
    }
    __syncthreads();
    data[base + t] = s[t], data[base + t + 256] = s[t + 256];
}

int main() {
    const int n = 8192;
    auto values = random_integers<int>(n, -100000, 100000);
    DeviceArray<int> data(values);
    for (int size = 2; size <= n; size *= 2) {
        for (int step = size / 2; step > 256; step /= 2) large<<<n / 512, 256>>>(data.get(), step, size);
        small<<<n / 512, 256>>>(data.get(), size);
    }
    std::sort(values.begin(), values.end());
    REQUIRE(data.host() == values);
    return finish();
}
