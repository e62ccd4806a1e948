// The Mandelbrot set: warps whose lanes leave their loops at different times. Tolerance: equal to the CPU but for
// points whose orbit a fused multiplication changes, at most 0.5 % of them.
#include "../device_array.h"

__host__ __device__ int escape(double cx, double cy, int most) {
    double x = 0, y = 0;
    int i = 0;
    for (; i < most && x * x + y * y <= 4; i++) {
        double next = x * x - y * y + cx;
        y = 2 * x * y + cy, x = next;
    }
    return i;
}

__global__ void mandelbrot(int *out, int n, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) out[y * n + x] = escape(-2.0 + 3.0 * x / n, -1.5 + 3.0 * y / n, most);
}

int main() {
    const int n = 150, most = 200;
    DeviceArray<int> out(n * n);
    mandelbrot<<<dim3((n + 15) / 16, (n + 15) / 16), dim3(16, 16)>>>(out.get(), n, most);
    auto got = out.host();
    int different = 0;
    for (int i = 0; i < n * n; i++) different += got[i] != escape(-2.0 + 3.0 * (i % n) / n, -1.5 + 3.0 * (i / n) / n, most);
    REQUIRE(different <= n * n / 200);
    return finish();
}
