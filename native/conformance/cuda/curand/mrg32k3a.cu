// MRG32k3a against L'Ecuyer's recurrence and the first number that his paper's generator gives for seeds of 12345.
// Tolerance: 5e-8 for that number, 1e-9 for the recurrence.
#include "../device_array.h"
#include <curand_kernel.h>

__global__ void draw(double *out, int n) {
    curandStateMRG32k3a state;
    curand_init(0, 0, 0, &state);
    for (int i = 0; i < n; i++) out[i] = curand_uniform_double(&state);
}

__global__ void jump(double *out, int n) {
    curandStateMRG32k3a state;
    curand_init(0, 0, threadIdx.x, &state);
    if (int(threadIdx.x) < n) out[threadIdx.x] = curand_uniform_double(&state);
}

int main() {
    const int n = 200;
    DeviceArray<double> out(n), jumped(n);
    draw<<<1, 1>>>(out.get(), n);
    jump<<<1, 256>>>(jumped.get(), n);
    auto got = out.host();
    near(got[0], 0.127011122, 0, 5e-8, "first number");
    const long long m1 = 4294967087, m2 = 4294944443;
    long long a[3] = {12345, 12345, 12345}, b[3] = {12345, 12345, 12345};
    for (int i = 0; i < n; i++) {
        long long p = (1403580 * a[1] - 810728 * a[0]) % m1, q = (527612 * b[2] - 1370589 * b[0]) % m2;
        p += p < 0 ? m1 : 0, q += q < 0 ? m2 : 0;
        a[0] = a[1], a[1] = a[2], a[2] = p;
        b[0] = b[1], b[1] = b[2], b[2] = q;
        near(got[i], double(p > q ? p - q : p - q + m1) / double(m1 + 1), 0, 1e-9, "MRG32k3a");
    }
    REQUIRE(jumped.host() == got);
    return finish();
}
