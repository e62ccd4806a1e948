// Pi by random points, each thread with a generator of its own. Tolerance: the count is the CPU's but for 3 points of
// the border, which a fused multiplication may put on the other side; pi within 0.01, three standard errors.
#include "../device_array.h"

__host__ __device__ unsigned next(unsigned long long &state) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    unsigned word = unsigned(((state >> 18) ^ state) >> 27), turn = unsigned(state >> 59);
    return word >> turn | word << ((32 - turn) & 31);
}

__host__ __device__ int inside(unsigned long long seed, int points) {
    unsigned long long state = seed * 0x9e3779b97f4a7c15ull + 1;
    int count = 0;
    for (int i = 0; i < points; i++) {
        float x = next(state) * 2.3283064e-10f, y = next(state) * 2.3283064e-10f;
        count += x * x + y * y < 1.0f - 1e-6f;
    }
    return count;
}

__global__ void throw_points(int points, unsigned long long *total) {
    int count = inside(blockIdx.x * blockDim.x + threadIdx.x, points);
    for (int step = 16; step > 0; step /= 2) count += __shfl_down_sync(0xffffffff, count, step);
    if (threadIdx.x % 32 == 0) atomicAdd(total, (unsigned long long)count);
}

int main() {
    const int threads = 1024, points = 300;
    DeviceArray<unsigned long long> total(std::vector<unsigned long long>(1, 0));
    throw_points<<<threads / 256, 256>>>(points, total.get());
    long long wanted = 0, got = (long long)total.front();
    for (int t = 0; t < threads; t++) wanted += inside(t, points);
    // A fused multiplication may put a point of the border on the other side.
    REQUIRE(std::llabs(got - wanted) <= 3);
    near(4.0 * got / (threads * points), M_PI, 0, 0.01, "pi");
    return finish();
}
