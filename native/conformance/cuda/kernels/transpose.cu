// A matrix transposed by way of a padded tile in shared memory. Tolerance: none, numbers are moved, not computed.
#include "../device_array.h"

__global__ void transpose(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8) {
        int y = blockIdx.y * 32 + k;
        if (x < columns && y < rows) tile[k][threadIdx.x] = in[y * columns + x];
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8) {
        int y = blockIdx.x * 32 + k;
        if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x][k];
    }
}

int main() {
    const int rows = 203, columns = 150;
    auto values = random_reals<float>(rows * columns, 0, 1);
    DeviceArray<float> in(values), out(values.size());
    transpose<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(in.get(), out.get(), rows, columns);
    auto got = out.host();
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) REQUIRE(got[c * rows + r] == values[r * columns + c]);
    return finish();
}
