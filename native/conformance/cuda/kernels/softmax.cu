// Softmax of rows, a block for each: maximum, sum and division. Tolerance: 1e-6 + 1e-5 of a value.
#include "../device_array.h"

template <class F> __device__ float over_block(float value, F combine) {
    __shared__ float parts[8];
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffff, value, step));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int w = 1; w < 8; w++) value = combine(value, parts[w]);
    __syncthreads();
    return value;
}

__global__ void softmax(const float *in, float *out, int columns) {
    in += blockIdx.x * columns, out += blockIdx.x * columns;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256) top = fmaxf(top, in[i]);
    top = over_block(top, [](float a, float b) { return fmaxf(a, b); });
    for (int i = threadIdx.x; i < columns; i += 256) sum += __expf(in[i] - top);
    sum = over_block(sum, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < columns; i += 256) out[i] = __expf(in[i] - top) / sum;
}

int main() {
    const int rows = 40, columns = 777;
    auto values = random_reals<float>(rows * columns, -5, 5);
    DeviceArray<float> in(values), out(values.size());
    softmax<<<rows, 256>>>(in.get(), out.get(), columns);
    std::vector<double> wanted(values.size());
    for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int c = 0; c < columns; c++) sum += std::exp(double(values[r * columns + c]));
        for (int c = 0; c < columns; c++) wanted[r * columns + c] = std::exp(double(values[r * columns + c])) / sum;
    }
    near(out.host(), wanted, 1e-5, 1e-6, "softmax");
    return finish();
}
