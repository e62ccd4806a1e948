// Lloyd's k-means in the plane, sums by atomics. Tolerance: 1e-4 after ten rounds.
#include "../device_array.h"

const int K = 5;
__constant__ float2 centres[K];

__global__ void assign(const float2 *points, int n, float *sums) {
    __shared__ float local[3 * K];
    if (threadIdx.x < 3 * K) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float2 p = points[i];
        int best = 0;
        float least = 1e30f;
        for (int k = 0; k < K; k++) {
            float dx = p.x - centres[k].x, dy = p.y - centres[k].y, d = dx * dx + dy * dy;
            if (d < least) least = d, best = k;
        }
        atomicAdd(&local[best], p.x);
        atomicAdd(&local[K + best], p.y);
        atomicAdd(&local[2 * K + best], 1.0f);
    }
    __syncthreads();
    if (threadIdx.x < 3 * K) atomicAdd(&sums[threadIdx.x], local[threadIdx.x]);
}

int main() {
    const int n = 4000;
    auto noise = random_reals<float>(2 * n, -1, 1);
    std::vector<float2> points(n), now(K);
    for (int i = 0; i < n; i++) points[i] = make_float2(4 * (i % K) + noise[2 * i], 3 * (i % K % 2) + noise[2 * i + 1]);
    for (int k = 0; k < K; k++) now[k] = points[k];
    std::vector<double> x(K), y(K);
    for (int k = 0; k < K; k++) x[k] = now[k].x, y[k] = now[k].y;
    DeviceArray<float2> in(points);
    DeviceArray<float> sums(3 * K);
    for (int round = 0; round < 10; round++) {
        CUDA(cudaMemcpyToSymbol(centres, now.data(), sizeof(float2) * K));
        CUDA(cudaMemset(sums.get(), 0, sizeof(float) * 3 * K));
        assign<<<8, 128>>>(in.get(), n, sums.get());
        auto s = sums.host();
        for (int k = 0; k < K; k++) now[k] = make_float2(s[k] / s[2 * K + k], s[K + k] / s[2 * K + k]);
        std::vector<double> sx(K), sy(K), count(K);
        for (auto p : points) {
            int best = 0;
            auto distance = [&](int k) { return (p.x - x[k]) * (p.x - x[k]) + (p.y - y[k]) * (p.y - y[k]); };
            for (int k = 1; k < K; k++) best = distance(k) < distance(best) ? k : best;
            sx[best] += p.x, sy[best] += p.y, count[best]++;
        }
        for (int k = 0; k < K; k++) x[k] = sx[k] / count[k], y[k] = sy[k] / count[k];
    }
    for (int k = 0; k < K; k++) near(now[k].x, x[k], 1e-4, 1e-4, "x"), near(now[k].y, y[k], 1e-4, 1e-4, "y");
    return finish();
}
