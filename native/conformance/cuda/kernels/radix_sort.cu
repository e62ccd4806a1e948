// Radix sort, one bit a pass: the places come from ballots and a count of the warps before. Tolerance: none,
// numbers are moved, not computed.
#include "../device_array.h"
#include <algorithm>

__global__ void __launch_bounds__(1024) sort(unsigned *data, int bits) {
    __shared__ unsigned s[1024];
    __shared__ int zeros[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    s[t] = data[blockIdx.x * 1024 + t];
    for (int bit = 0; bit < bits; bit++) {
        __syncthreads();
        unsigned value = s[t];
        bool zero = !(value >> bit & 1);
        unsigned ballot = __ballot_sync(0xffffffff, zero);
        if (lane == 0) zeros[warp] = __popc(ballot);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < 32; w++) before += w < warp ? zeros[w] : 0, all += zeros[w];
        before += __popc(ballot & ((1u << lane) - 1));
        s[zero ? before : all + t - before] = value;
    }
    __syncthreads();
    data[blockIdx.x * 1024 + t] = s[t];
}

int main() {
    auto values = random_integers<unsigned>(4096, 0, (1 << 20) - 1);
    DeviceArray<unsigned> data(values);
    sort<<<4, 1024>>>(data.get(), 20);
    for (int b = 0; b < 4; b++) std::sort(values.begin() + 1024 * b, values.begin() + 1024 * (b + 1));
    REQUIRE(data.host() == values);
    return finish();
}
