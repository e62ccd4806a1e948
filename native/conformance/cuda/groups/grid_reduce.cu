// A sum in one cooperative launch: blocks by shared memory, then the grid's first block over the parts.
// Tolerance: 1e-9, for doubles that are added in another order.
#include "../device_array.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void sum(const double *in, double *parts, int n) {
    extern __shared__ double shared[];
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    double value = 0;
    for (size_t i = grid.thread_rank(); i < size_t(n); i += grid.size()) value += in[i];
    value = cg::reduce(warp, value, cg::plus<double>());
    if (warp.thread_rank() == 0) shared[warp.meta_group_rank()] = value;
    block.sync();
    if (block.thread_rank() == 0) {
        value = 0;
        for (unsigned w = 0; w < warp.meta_group_size(); w++) value += shared[w];
        parts[grid.block_rank()] = value;
    }
    grid.sync();
    if (grid.thread_rank() == 0)
        for (unsigned b = 1; b < grid.num_blocks(); b++) parts[0] += parts[b];
}

int main() {
    int n = 50021;
    auto values = random_reals<double>(n, -1.0, 1.0);
    double wanted = 0;
    for (double v : values) wanted += v;
    DeviceArray<double> in(values), parts(6);
    double *pin = in.get(), *pparts = parts.get();
    void *arguments[] = {&pin, &pparts, &n};
    CUDA(cudaLaunchCooperativeKernel((const void *)sum, dim3(6), dim3(96), arguments, 3 * sizeof(double), nullptr));
    near(parts.front(), wanted, 0, 1e-9, "sum");
    return finish();
}
