// libcu++: barriers, pipelines, latches, semaphores, atomics of every scope, and its standard library in kernels.
// Tolerance: a few roundings of single precision for a quotient of complex numbers.
#include "../device_array.h"
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;

__global__ void barriers(const int *in, int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int stage[256];
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, block.size());
    block.sync();
    int total = 0;
    for (int round = 0; round < 4; round++) {
        cuda::memcpy_async(block, stage, in + round * 256, sizeof(int) * 256, bar);
        bar.arrive_and_wait();
        total += stage[255 - threadIdx.x];
        auto token = bar.arrive();
        bar.wait(std::move(token));
    }
    out[threadIdx.x] = total;
}

__global__ void pipelined(const int *in, int *out) {
    constexpr int stages = 2;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ int buffer[stages][128];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int total = 0;
    for (int at = 0, fetch = 0; at < 8; at++) {
        for (; fetch < 8 && fetch < at + stages; fetch++) {
            pipe.producer_acquire();
            auto bytes = cuda::aligned_size_t<4>(sizeof(int) * 128);
            cuda::memcpy_async(block, buffer[fetch % stages], in + fetch * 128, bytes, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        total = total * 3 + buffer[at % stages][127 - threadIdx.x];
        block.sync();
        pipe.consumer_release();
    }
    out[threadIdx.x] = total;
}

__global__ void own_pipeline(const int *in, int *out) {
    __shared__ int buffer[128];
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(buffer + threadIdx.x, in + threadIdx.x, sizeof(int), pipe);
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    pipe.consumer_release();
    __syncthreads();
    out[threadIdx.x] = buffer[127 - threadIdx.x];
    __syncthreads();
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, buffer, in + 128, sizeof(int) * 128);
    cg::wait(block);
    out[128 + threadIdx.x] = buffer[127 - threadIdx.x];
}

typedef cuda::atomic<unsigned, cuda::thread_scope_device> Count;
__global__ void atomics(int *plain, double *real, Count *count, unsigned long long *wide) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(*plain);
    ref.fetch_add(3, cuda::std::memory_order_relaxed);
    ref.fetch_max(5);
    cuda::atomic_ref<double> r(*real);
    r.fetch_add(0.5);
    count->fetch_add(1, cuda::std::memory_order_acq_rel);
    cuda::std::atomic_ref<unsigned long long> w(*wide);
    unsigned long long was = w.load();
    while (!w.compare_exchange_weak(was, was + 5, cuda::std::memory_order_release, cuda::std::memory_order_relaxed)) {}
    __shared__ cuda::std::atomic<int> block_count;
    if (threadIdx.x == 0) block_count.store(0);
    __syncthreads();
    block_count++;
    __syncthreads();
    if (threadIdx.x == 0 && block_count.load() != int(blockDim.x)) __trap();
}

__global__ void latches(int *out) {
    typedef cuda::latch<cuda::thread_scope_block> Latch;
    typedef cuda::counting_semaphore<cuda::thread_scope_block, 4> Seats;
    __shared__ __align__(16) unsigned char places[2][64];
    static_assert(sizeof(Latch) <= 64 && sizeof(Seats) <= 64, "each has its place");
    Latch &latch = *reinterpret_cast<Latch *>(places[0]);
    Seats &seats = *reinterpret_cast<Seats *>(places[1]);
    __shared__ int inside, most;
    if (threadIdx.x == 0) {
        new (&latch) Latch(blockDim.x);
        new (&seats) Seats(4);
        inside = most = 0;
    }
    __syncthreads();
    seats.acquire();
    atomicMax(&most, atomicAdd(&inside, 1) + 1);
    atomicSub(&inside, 1);
    seats.release();
    latch.arrive_and_wait();
    out[threadIdx.x] = most <= 4 && inside == 0;
}

__global__ void library(float *out) {
    int t = threadIdx.x;
    cuda::std::complex<float> z(t, 1), w = z * z / cuda::std::complex<float>(0, 2);
    cuda::std::array<int, 4> a{{t, t + 1, t + 2, t + 3}};
    cuda::std::tuple<int, float> pair(t, 0.5f);
    cuda::std::optional<int> maybe;
    if (t % 2) maybe = t;
    cuda::std::span<int> view(a.data(), 3);
    int sum = 0;
    for (int v : view) sum += v;
    out[t] = w.real() + w.imag() + sum + cuda::std::get<1>(pair) + maybe.value_or(-1);
}

int main() {
    std::vector<int> in(1024);
    for (int i = 0; i < 1024; i++) in[i] = i * 3 % 101;
    DeviceArray<int> din(in), out(256);
    barriers<<<1, 256>>>(din.get(), out.get());
    auto got = out.host();
    for (int t = 0; t < 256; t++) {
        int total = 0;
        for (int r = 0; r < 4; r++) total += in[r * 256 + 255 - t];
        REQUIRE(got[t] == total);
    }
    pipelined<<<1, 128>>>(din.get(), out.get());
    got = out.host();
    for (int t = 0; t < 128; t++) {
        int total = 0;
        for (int r = 0; r < 8; r++) total = total * 3 + in[r * 128 + 127 - t];
        REQUIRE(got[t] == total);
    }
    own_pipeline<<<1, 128>>>(din.get(), out.get());
    got = out.host();
    for (int t = 0; t < 128; t++) REQUIRE(got[t] == in[127 - t] && got[128 + t] == in[255 - t]);
    DeviceArray<int> plain(std::vector<int>{0});
    DeviceArray<double> real(std::vector<double>{0});
    DeviceArray<unsigned> count(std::vector<unsigned>{0});
    DeviceArray<unsigned long long> wide(std::vector<unsigned long long>{1});
    atomics<<<4, 128>>>(plain.get(), real.get(), reinterpret_cast<Count *>(count.get()), wide.get());
    CUDA(cudaDeviceSynchronize());
    REQUIRE(plain.host()[0] >= 1536 && plain.host()[0] <= 1541 && real.host()[0] == 256);
    REQUIRE(count.host()[0] == 512 && wide.host()[0] == 2561);
    latches<<<1, 256>>>(out.get());
    for (int v : out.host()) REQUIRE(v == 1);
    DeviceArray<float> floats(64);
    library<<<1, 64>>>(floats.get());
    auto f = floats.host();
    for (int t = 0; t < 64; t++) {
        // (t + i)^2 / 2i
        float re = t, im = -(float(t) * t - 1) / 2;
        near(f[t], re + im + 3 * t + 3 + 0.5f + (t % 2 ? t : -1), 1e-6, 0, "library");
    }
    return finish();
}
