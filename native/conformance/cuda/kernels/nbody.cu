// Gravity among bodies, tile by tile in shared memory. Tolerance: 2e-4 of each acceleration's size.
#include "../device_array.h"

__global__ void accelerate(const float4 *bodies, float3 *out, int n) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 own = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 sum = make_float3(0, 0, 0);
    for (int start = 0; start < n; start += 64) {
        int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < 64; k++) {
            float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float weight = tile[k].w * inverse * inverse * inverse;
            sum.x += weight * dx, sum.y += weight * dy, sum.z += weight * dz;
        }
        __syncthreads();
    }
    if (i < n) out[i] = sum;
}

int main() {
    const int n = 500;
    auto numbers = random_reals<float>(4 * n, 0.1f, 1.0f);
    std::vector<float4> bodies(n);
    for (int i = 0; i < n; i++) bodies[i] = make_float4(numbers[4 * i], numbers[4 * i + 1], numbers[4 * i + 2], numbers[4 * i + 3]);
    DeviceArray<float4> in(bodies);
    DeviceArray<float3> out(n);
    accelerate<<<(n + 63) / 64, 64>>>(in.get(), out.get(), n);
    auto got = out.host();
    for (int i = 0; i < n; i++) {
        double x = 0, y = 0, z = 0, size = 0;
        for (auto &b : bodies) {
            double dx = b.x - bodies[i].x, dy = b.y - bodies[i].y, dz = b.z - bodies[i].z;
            double weight = b.w / std::pow(dx * dx + dy * dy + dz * dz + 0.01, 1.5);
            x += weight * dx, y += weight * dy, z += weight * dz;
            size += weight * std::sqrt(dx * dx + dy * dy + dz * dz);
        }
        near(got[i].x, x, 0, 2e-4 * size, "x");
        near(got[i].y, y, 0, 2e-4 * size, "y");
        near(got[i].z, z, 0, 2e-4 * size, "z");
    }
    return finish();
}
