// Layer norm of rows with weight and bias, a warp for each, by Welford's moments. Tolerance: 1e-5.
#include "../device_array.h"

__global__ void layer_norm(const float *in, const float *weight, const float *bias, float *out, int rows, int columns) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    in += row * columns, out += row * columns;
    float mean = 0, squares = 0, count = 0;
    for (int i = lane; i < columns; i += 32) {
        float delta = in[i] - mean;
        mean += delta / ++count;
        squares += delta * (in[i] - mean);
    }
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffff, mean, step), more = __shfl_xor_sync(0xffffffff, squares, step);
        float many = __shfl_xor_sync(0xffffffff, count, step), all = count + many, delta = other - mean;
        if (all > 0) {
            // Both sides must come to the same number, so the formula treats them alike.
            mean = (mean * count + other * many) / all;
            squares += more + delta * delta * count * many / all;
        }
        count = all;
    }
    float scale = rsqrtf(squares / columns + 1e-5f);
    for (int i = lane; i < columns; i += 32) out[i] = (in[i] - mean) * scale * weight[i] + bias[i];
}

int main() {
    const int rows = 50, columns = 300;
    auto x = random_reals<float>(rows * columns, -3, 5);
    auto weight = random_reals<float>(columns, 0.5, 2, 2), bias = random_reals<float>(columns, -1, 1, 3);
    DeviceArray<float> in(x), w(weight), b(bias), out(x.size());
    layer_norm<<<(rows + 3) / 4, 128>>>(in.get(), w.get(), b.get(), out.get(), rows, columns);
    std::vector<double> wanted(x.size());
    for (int r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int c = 0; c < columns; c++) mean += x[r * columns + c] / double(columns);
        for (int c = 0; c < columns; c++) variance += std::pow(x[r * columns + c] - mean, 2) / columns;
        for (int c = 0; c < columns; c++)
            wanted[r * columns + c] = (x[r * columns + c] - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c];
    }
    near(out.host(), wanted, 1e-5, 1e-5, "layer norm");
    return finish();
}
