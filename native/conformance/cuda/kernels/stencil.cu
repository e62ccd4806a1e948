// Heat in a plane: 5-point stencil with a halo in shared memory. Tolerance: 1e-5 after 20 steps.
#include "../device_array.h"

__global__ void step(const float *in, float *out, int n) {
    __shared__ float tile[18][18];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    auto at = [&](int x, int y) { return x >= 0 && y >= 0 && x < n && y < n ? in[y * n + x] : 0.0f; };
    tile[ty][tx] = at(x, y);
    if (threadIdx.x == 0) tile[ty][0] = at(x - 1, y);
    if (threadIdx.x == 15) tile[ty][17] = at(x + 1, y);
    if (threadIdx.y == 0) tile[0][tx] = at(x, y - 1);
    if (threadIdx.y == 15) tile[17][tx] = at(x, y + 1);
    __syncthreads();
    if (x < n && y < n) {
        float middle = tile[ty][tx];
        float around = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
        out[y * n + x] = middle + 0.2f * (around - 4 * middle);
    }
}

int main() {
    const int n = 100;
    auto values = random_reals<float>(n * n, 0, 1);
    DeviceArray<float> a(values), b(n * n);
    for (int s = 0; s < 10; s++) {
        step<<<dim3(7, 7), dim3(16, 16)>>>(a.get(), b.get(), n);
        step<<<dim3(7, 7), dim3(16, 16)>>>(b.get(), a.get(), n);
    }
    std::vector<double> wanted(values.begin(), values.end()), next(n * n);
    for (int s = 0; s < 20; s++) {
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++) {
                auto at = [&](int x, int y) { return x >= 0 && y >= 0 && x < n && y < n ? wanted[y * n + x] : 0.0; };
                double around = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
                next[y * n + x] = at(x, y) + 0.2f * (around - 4 * at(x, y));
            }
        wanted.swap(next);
    }
    near(a.host(), wanted, 1e-5, 1e-5, "heat");
    return finish();
}
