// Philox 4x32-10 against the known answers that its authors published, and its places in the sequence.
#include "../device_array.h"
#include <curand_kernel.h>

__global__ void first(unsigned long long seed, unsigned *out) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, 0, 0, &state);
    uint4 value = curand4(&state);
    out[0] = value.x, out[1] = value.y, out[2] = value.z, out[3] = value.w;
}

__global__ void rounds(uint4 counter, uint2 key, unsigned *out) {
    uint4 value = curand_Philox4x32_10(counter, key);
    out[0] = value.x, out[1] = value.y, out[2] = value.z, out[3] = value.w;
}

__global__ void sequence(unsigned *out, int n) {
    curandStatePhilox4_32_10_t one, jumped;
    curand_init(1234, threadIdx.x, 0, &one);
    for (int i = 0; i < n; i++) out[threadIdx.x * n + i] = curand(&one);
    curand_init(1234, threadIdx.x, 10, &jumped);
    if (curand(&jumped) != out[threadIdx.x * n + 10]) out[threadIdx.x * n] = 0xdeadbeef;
}

int main() {
    DeviceArray<unsigned> out(4);
    first<<<1, 1>>>(0, out.get());
    REQUIRE(out.host() == (std::vector<unsigned>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    unsigned ones = 0xffffffff;
    rounds<<<1, 1>>>(make_uint4(ones, ones, ones, ones), make_uint2(ones, ones), out.get());
    REQUIRE(out.host() == (std::vector<unsigned>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    rounds<<<1, 1>>>(make_uint4(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), make_uint2(0xa4093822, 0x299f31d0),
                     out.get());
    REQUIRE(out.host() == (std::vector<unsigned>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
    DeviceArray<unsigned> many(64 * 20);
    sequence<<<1, 64>>>(many.get(), 20);
    auto values = many.host();
    for (int i = 0; i < 64; i++) REQUIRE(values[20 * i] != 0xdeadbeef && (i == 0 || values[20 * i] != values[0]));
    return finish();
}
