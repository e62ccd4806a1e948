// Attention in one pass over keys and values with a running maximum and sum. Tolerance: 1e-5.
#include "../device_array.h"

const int D = 32, TILE = 32;

__global__ void attention(const float *q, const float *k, const float *v, float *out, int n) {
    __shared__ float keys[TILE][D + 1], values[TILE][D + 1];
    int row = blockIdx.x * TILE + threadIdx.x;
    float query[D], sum[D], top = -INFINITY, total = 0;
    for (int d = 0; d < D; d++) query[d] = row < n ? q[row * D + d] : 0, sum[d] = 0;
    for (int start = 0; start < n; start += TILE) {
        __syncthreads();
        for (int j = 0; j < TILE && start + j < n; j++) {
            keys[j][threadIdx.x] = k[(start + j) * D + threadIdx.x];
            values[j][threadIdx.x] = v[(start + j) * D + threadIdx.x];
        }
        __syncthreads();
        for (int j = 0; j < TILE && start + j < n; j++) {
            float score = 0;
            for (int d = 0; d < D; d++) score += query[d] * keys[j][d];
            score *= rsqrtf(float(D));
            float higher = fmaxf(top, score), scale = expf(top - higher), weight = expf(score - higher);
            for (int d = 0; d < D; d++) sum[d] = sum[d] * scale + weight * values[j][d];
            total = total * scale + weight, top = higher;
        }
    }
    if (row < n)
        for (int d = 0; d < D; d++) out[row * D + d] = sum[d] / total;
}

int main() {
    const int n = 100;
    auto q = random_reals<float>(n * D, -2, 2), k = random_reals<float>(n * D, -2, 2, 2), v = random_reals<float>(n * D, -2, 2, 3);
    DeviceArray<float> dq(q), dk(k), dv(v), out(n * D);
    attention<<<(n + TILE - 1) / TILE, TILE>>>(dq.get(), dk.get(), dv.get(), out.get(), n);
    std::vector<double> wanted(n * D, 0);
    for (int i = 0; i < n; i++) {
        std::vector<double> weight(n);
        double total = 0;
        for (int j = 0; j < n; j++) {
            double score = 0;
            for (int d = 0; d < D; d++) score += double(q[i * D + d]) * k[j * D + d];
            total += weight[j] = std::exp(score / std::sqrt(double(D)));
        }
        for (int j = 0; j < n; j++)
            for (int d = 0; d < D; d++) wanted[i * D + d] += weight[j] / total * v[j * D + d];
    }
    near(out.host(), wanted, 1e-5, 1e-5, "attention");
    return finish();
}
