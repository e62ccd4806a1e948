// Moments of the distributions over 65,536 numbers of each generator: uniform, normal, log-normal, Poisson.
#include "../device_array.h"
#include <curand_kernel.h>

template <class State> __global__ void draw(float *uniform, float *normal, float *lognormal, float *poisson, int each) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    State state;
    curand_init(77, t, 0, &state);
    for (int i = 0; i < each; i++) {
        uniform[t * each + i] = curand_uniform(&state);
        normal[t * each + i] = curand_normal(&state);
        lognormal[t * each + i] = curand_log_normal(&state, 0.0f, 0.5f);
        poisson[t * each + i] = float(curand_poisson(&state, 4.0));
    }
}

void moments(const DeviceArray<float> &values, double mean, double variance, double tolerance, const char *what) {
    double sum = 0, squares = 0;
    auto numbers = values.host();
    for (float v : numbers) sum += v, squares += double(v) * v;
    sum /= numbers.size(), squares /= numbers.size();
    near(sum, mean, 0, tolerance, what);
    near(squares - sum * sum, variance, 0, 3 * tolerance, what);
}

template <class State> void check() {
    const int threads = 1024, each = 64;
    DeviceArray<float> uniform(threads * each), normal(threads * each), lognormal(threads * each), poisson(threads * each);
    draw<State><<<threads / 128, 128>>>(uniform.get(), normal.get(), lognormal.get(), poisson.get(), each);
    for (float v : uniform.host()) REQUIRE(v > 0 && v <= 1);
    moments(uniform, 0.5, 1 / 12.0, 0.006, "uniform");
    moments(normal, 0, 1, 0.02, "normal");
    moments(lognormal, std::exp(0.125), (std::exp(0.25) - 1) * std::exp(0.25), 0.02, "log-normal");
    moments(poisson, 4, 4, 0.04, "Poisson");
}

int main() {
    check<curandStateXORWOW>();
    check<curandStatePhilox4_32_10_t>();
    return finish();
}
