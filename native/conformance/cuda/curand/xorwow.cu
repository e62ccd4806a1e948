// XORWOW against Marsaglia's recurrence on the CPU from the same state, and its jumps.
#include "../device_array.h"
#include <curand_kernel.h>

__global__ void draw(curandState *states, unsigned *out, int n) {
    curandState state;
    curand_init(42, threadIdx.x, 0, &state);
    states[threadIdx.x] = state;
    for (int i = 0; i < n; i++) out[threadIdx.x * n + i] = curand(&state);
    curandState jumped;
    curand_init(42, threadIdx.x, n - 1, &jumped);
    if (curand(&jumped) != out[threadIdx.x * n + n - 1]) states[threadIdx.x].v[0] = 0;
    curandState skipped = states[threadIdx.x];
    skipahead(7ull, &skipped);
    if (curand(&skipped) != out[threadIdx.x * n + 7]) states[threadIdx.x].v[0] = 0;
}

int main() {
    const int n = 50, threads = 48;
    DeviceArray<curandState> states(threads);
    DeviceArray<unsigned> out(threads * n);
    draw<<<1, threads>>>(states.get(), out.get(), n);
    auto state = states.host();
    auto got = out.host();
    for (int t = 0; t < threads; t++) {
        unsigned x = state[t].v[0], y = state[t].v[1], z = state[t].v[2], w = state[t].v[3], v = state[t].v[4];
        unsigned d = state[t].d;
        REQUIRE(x != 0);
        for (int i = 0; i < n; i++) {
            // Marsaglia, Xorshift RNGs (2003), section 3.1.
            unsigned turned = x ^ (x >> 2);
            x = y, y = z, z = w, w = v;
            v = (v ^ (v << 4)) ^ (turned ^ (turned << 1));
            d += 362437;
            REQUIRE(got[t * n + i] == d + v);
        }
    }
    return finish();
}
