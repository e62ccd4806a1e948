// A radix-2 Fourier transform of 1024 complex numbers in shared memory, against the sum's definition.
// Tolerance: 1e-3 where the numbers' size is about 26.
#include "../device_array.h"

__global__ void transform(float2 *data) {
    __shared__ float2 s[1024];
    int t = threadIdx.x;
    for (int i = t; i < 1024; i += 512) s[__brev(i) >> 22] = data[i];
    for (int half = 1; half < 1024; half *= 2) {
        __syncthreads();
        int k = t % half, at = (t - k) * 2 + k;
        float sine, cosine;
        sincospif(-float(k) / half, &sine, &cosine);
        float2 a = s[at], b = s[at + half];
        float2 w = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
        s[at] = make_float2(a.x + w.x, a.y + w.y);
        s[at + half] = make_float2(a.x - w.x, a.y - w.y);
    }
    __syncthreads();
    for (int i = t; i < 1024; i += 512) data[i] = s[i];
}

int main() {
    const int n = 1024;
    auto numbers = random_reals<float>(2 * n, -1, 1);
    std::vector<float2> values(n);
    for (int i = 0; i < n; i++) values[i] = make_float2(numbers[2 * i], numbers[2 * i + 1]);
    DeviceArray<float2> data(values);
    transform<<<1, 512>>>(data.get());
    auto got = data.host();
    for (int k = 0; k < n; k++) {
        double x = 0, y = 0;
        for (int i = 0; i < n; i++) {
            double angle = -2 * M_PI * ((1ll * i * k) % n) / n;
            x += values[i].x * std::cos(angle) - values[i].y * std::sin(angle);
            y += values[i].x * std::sin(angle) + values[i].y * std::cos(angle);
        }
        near(got[k].x, x, 0, 1e-3, "real part");
        near(got[k].y, y, 0, 1e-3, "imaginary part");
    }
    return finish();
}
