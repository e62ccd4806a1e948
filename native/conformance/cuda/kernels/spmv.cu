// A sparse matrix in rows (CSR) by a vector, a warp for each row. Tolerance: 1e-12 of the row's size.
#include "../device_array.h"

__global__ void multiply(const int *starts, const int *columns, const double *values, const double *x, double *y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    double sum = 0;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += 32) sum += values[i] * __ldg(&x[columns[i]]);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0) y[row] = sum;
}

int main() {
    const int rows = 700;
    auto lengths = random_integers<int>(rows, 0, 90);
    std::vector<int> starts = {0};
    for (int length : lengths) starts.push_back(starts.back() + length);
    auto columns = random_integers<int>(starts.back(), 0, 499, 3);
    auto values = random_reals<double>(starts.back(), -1, 1), x = random_reals<double>(500, -1, 1, 5);
    DeviceArray<int> ds(starts), dc(columns);
    DeviceArray<double> dv(values), dx(x), y(rows);
    multiply<<<(rows + 3) / 4, 128>>>(ds.get(), dc.get(), dv.get(), dx.get(), y.get(), rows);
    auto got = y.host();
    for (int r = 0; r < rows; r++) {
        double sum = 0, size = 0;
        for (int i = starts[r]; i < starts[r + 1]; i++) sum += values[i] * x[columns[i]], size += std::fabs(values[i]);
        near(got[r], sum, 0, 1e-12 * (size + 1), "row");
    }
    return finish();
}
