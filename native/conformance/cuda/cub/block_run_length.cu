// Heads of runs in a block, and the expansion of runs from their lengths.
#include "../device_array.h"
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_run_length_decode.cuh>

struct Differ {
    __device__ bool operator()(int a, int b) const { return a != b; }
};

__global__ void heads(const int *in, int *out) {
    using Discontinuity = cub::BlockDiscontinuity<int, 128>;
    __shared__ typename Discontinuity::TempStorage storage;
    int items[2] = {in[2 * threadIdx.x], in[2 * threadIdx.x + 1]}, flags[2];
    Discontinuity(storage).FlagHeads(flags, items, Differ());
    out[2 * threadIdx.x] = flags[0], out[2 * threadIdx.x + 1] = flags[1];
}

__global__ void expand(const int *values, const unsigned *lengths, int *out) {
    using Decode = cub::BlockRunLengthDecode<int, 64, 1, 4>;
    __shared__ typename Decode::TempStorage storage;
    int value[1] = {values[threadIdx.x]}, items[4];
    unsigned length[1] = {lengths[threadIdx.x]}, total;
    Decode decode(storage, value, length, total);
    for (unsigned at = 0; at < total; at += 256) {
        decode.RunLengthDecode(items, at);
        for (unsigned k = 0; k < 4; k++)
            if (at + 4 * threadIdx.x + k < total) out[at + 4 * threadIdx.x + k] = items[k];
        __syncthreads();
    }
}

int main() {
    auto values = random_integers<int>(256, 0, 1);
    DeviceArray<int> in(values), out(256);
    heads<<<1, 128>>>(in.get(), out.get());
    auto got = out.host();
    for (int i = 0; i < 256; i++) REQUIRE(got[i] == (i == 0 || values[i] != values[i - 1]));
    auto runs = random_integers<int>(64, 0, 1000);
    auto lengths = random_integers<unsigned>(64, 1, 20, 5);
    std::vector<int> wanted;
    for (int i = 0; i < 64; i++) wanted.insert(wanted.end(), lengths[i], runs[i]);
    DeviceArray<int> run(runs), expanded(wanted.size());
    DeviceArray<unsigned> length(lengths);
    expand<<<1, 64>>>(run.get(), length.get(), expanded.get());
    REQUIRE(expanded.host() == wanted);
    return finish();
}
