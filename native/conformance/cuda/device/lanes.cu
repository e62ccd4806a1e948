// What lanes of a warp do together: shuffles of each width and type, votes, matches, reductions, partial masks.
#include "../device_array.h"
#include <cuda_fp16.h>

__global__ void shuffles(int *out, double *wide, long long *longs, float *halves) {
    int t = threadIdx.x, at = 0;
    unsigned all = 0xffffffffu;
    int widths[] = {1, 2, 4, 8, 16, 32};
    for (int width : widths)
        for (int delta = 0; delta < 34; delta += 3) {
            out[at++ * 32 + t] = __shfl_sync(all, t * 3, delta, width);
            out[at++ * 32 + t] = __shfl_up_sync(all, t * 5, delta, width);
            out[at++ * 32 + t] = __shfl_down_sync(all, t * 7, delta, width);
            out[at++ * 32 + t] = __shfl_xor_sync(all, t * 11, delta, width);
        }
    wide[t] = __shfl_xor_sync(all, t * 0.5, 5);
    longs[t] = __shfl_down_sync(all, (long long)t << 33 | 7, 2, 16);
    __half2 pair = __floats2half2_rn(t, -t);
    halves[t] = __high2float(__shfl_sync(all, pair, t ^ 1));
}

__global__ void others(int *out) {
    int t = threadIdx.x;
    unsigned all = 0xffffffffu;
    out[t] = __ballot_sync(all, t % 3 == 0);
    out[32 + t] = __all_sync(all, t < 32) + 2 * __any_sync(all, t == 9) + 4 * __all_sync(all, t > 3);
    out[64 + t] = __match_any_sync(all, t / 5);
    int same;
    unsigned equal = __match_all_sync(all, 7ll << 40, &same);
    out[96 + t] = equal + same;
    equal = __match_all_sync(all, t / 31, &same);
    out[128 + t] = equal * 2 + same;
    if (t % 2) {
        out[160 + t] = __shfl_sync(0xaaaaaaaau, t, 5) + __popc(__activemask());
        out[192 + t] = __ballot_sync(0xaaaaaaaau, t > 10);
    } else {
        out[160 + t] = __shfl_up_sync(0x55555555u, t, 4);
        out[192 + t] = __any_sync(0x55555555u, t == 3);
    }
    __syncwarp();
    out[224 + t] = __fns(0xf0f0f0f0u, t, 3);
    out[256 + t] = __syncthreads_count(t & 1) + 100 * __syncthreads_and(t >= 0) + 1000 * __syncthreads_or(t == 77);
    long long before = clock64();
    __nanosleep(100);
    out[288 + t] = clock64() >= before;
#if __CUDA_ARCH__ >= 800
    out[320 + t] = __reduce_add_sync(all, t);
    out[352 + t] = __reduce_min_sync(all, 5 - t);
    out[384 + t] = __reduce_max_sync(all, unsigned(-t));
    out[416 + t] = __reduce_and_sync(all, ~(1u << t)) |
                   __reduce_xor_sync(all, unsigned(t)) | __reduce_or_sync(all, 1u << t);
    if (t >= 20) out[448 + t] = __reduce_add_sync(0xfff00000u, t);
#endif
}

int main() {
    DeviceArray<int> out(6 * 12 * 4 * 32);
    DeviceArray<double> wide(32);
    DeviceArray<long long> longs(32);
    DeviceArray<float> halves(32);
    shuffles<<<1, 32>>>(out.get(), wide.get(), longs.get(), halves.get());
    auto got = out.host();
    int at = 0, widths[] = {1, 2, 4, 8, 16, 32};
    for (int width : widths)
        for (int delta = 0; delta < 34; delta += 3, at += 4)
            for (int t = 0; t < 32; t++) {
                int base = t / width * width, d = delta;
                int up = t - d >= base ? t - d : t, down = t + d < base + width ? t + d : t;
                // Five bits of the lane mask count; a source beyond the segment is the lane itself.
                int other = t ^ (d & 31);
                int x = other < base + width ? other : t;
                REQUIRE(got[at * 32 + t] == (base + d % width) * 3);
                if (d < 32) {
                    REQUIRE(got[(at + 1) * 32 + t] == up * 5);
                    REQUIRE(got[(at + 2) * 32 + t] == down * 7);
                    REQUIRE(got[(at + 3) * 32 + t] == x * 11);
                }
            }
    auto w = wide.host();
    auto l = longs.host();
    auto h = halves.host();
    for (int t = 0; t < 32; t++) {
        REQUIRE(w[t] == (t ^ 5) * 0.5);
        int from = t % 16 + 2 < 16 ? t + 2 : t;
        REQUIRE(l[t] == ((long long)from << 33 | 7));
        REQUIRE(h[t] == -(t ^ 1));
    }
    DeviceArray<int> more(512);
    CUDA(cudaMemset(more.get(), 0, 512 * 4));
    others<<<1, 32>>>(more.get());
    auto o = more.host();
    for (int t = 0; t < 32; t++) {
        unsigned third = 0, five = 0;
        for (int k = 0; k < 32; k++) third |= unsigned(k % 3 == 0) << k, five |= unsigned(k / 5 == t / 5) << k;
        REQUIRE(o[t] == int(third));
        REQUIRE(o[32 + t] == 3);
        REQUIRE(o[64 + t] == int(five));
        REQUIRE(o[96 + t] == 0 && o[128 + t] == 0);
        if (t % 2) REQUIRE(o[160 + t] == 5 + 16 && o[192 + t] == int(0xaaaaa800u));
        else REQUIRE(o[160 + t] == (t < 4 ? t : t - 4) && o[192 + t] == 0);
        int want = -1, count = 0;
        for (int k = t; k < 32; k++)
            if (0xf0f0f0f0u >> k & 1 && ++count == 3) { want = k; break; }
        REQUIRE(o[224 + t] == want);
        REQUIRE(o[256 + t] == 16 + 100 * 1);
        REQUIRE(o[288 + t] == 1);
    }
    cudaFuncAttributes attributes;
    CUDA(cudaFuncGetAttributes(&attributes, others));
    if (attributes.ptxVersion >= 80) {
        for (int t = 0; t < 32; t++) {
            REQUIRE(o[320 + t] == 496 && o[352 + t] == -26 && unsigned(o[384 + t]) == ~0u && o[416 + t] == -1);
            if (t >= 20) REQUIRE(o[448 + t] == (20 + 31) * 12 / 2);
        }
    }
    return finish();
}
