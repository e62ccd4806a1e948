// Atomics of 16, 32 and 64 bits, in global and shared memory: compare and swap, and what each type has.
#include "../device_array.h"
#include <cuda_fp16.h>

__global__ void integers(int *i, unsigned *u, unsigned long long *l, long long *s) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&i[0], int(t)); atomicSub(&i[1], int(t)); atomicMin(&i[2], -int(t)); atomicMax(&i[3], int(t));
    atomicAnd(&i[4], ~(1 << (t % 31))); atomicOr(&i[5], 1 << (t % 31)); atomicXor(&i[6], int(t));
    atomicInc(&u[0], 99); atomicDec(&u[1], 99); atomicMin(&u[2], t); atomicMax(&u[3], t); atomicAdd(&u[4], t);
    atomicAdd(&l[0], (unsigned long long)t << 20); atomicMin(&l[1], ~0ull - t); atomicMax(&l[2], 1ull << (t % 60));
    atomicAnd(&l[3], ~(1ull << (t % 64)));
    atomicOr(&l[4], 1ull << (t % 64)); atomicXor(&l[5], (unsigned long long)t << 13);
    atomicMin(&s[0], -(long long)t * 1000000007); atomicMax(&s[1], (long long)t * 1000000007);
    atomicAdd_block(&i[7], 1); atomicAdd_system(&i[8], 1);
}

__global__ void floats(float *f, double *d, __half *h, __half2 *h2) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&f[0], 0.5f);
    atomicAdd(&d[0], 0.25);
    atomicAdd(h, __float2half(1.0f));
    atomicAdd(h2, __floats2half2_rn(1.0f, 2.0f));
    atomicExch(&f[1], float(t));
}

__global__ void swaps(unsigned short *s, unsigned *u, unsigned long long *l, unsigned *locks, int *held) {
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned short was = s[t % 3], seen; ; was = seen) {
        seen = atomicCAS(&s[t % 3], was, (unsigned short)(was + 1));
        if (seen == was) break;
    }
    for (unsigned was = u[0], seen; ; was = seen) {
        seen = atomicCAS(u, was, was * 5 + 1);
        if (seen == was) break;
    }
    for (unsigned long long was = l[0], seen; ; was = seen) {
        seen = atomicCAS(l, was, was + (1ull << 33) + 1);
        if (seen == was) break;
    }
    bool done = false;
    while (!done) {
        if (atomicCAS(locks, 0u, 1u) == 0) {
            held[0] += 1;
            __threadfence();
            atomicExch(locks, 0u);
            done = true;
        }
    }
}

__global__ void shared_ones(int *out) {
    __shared__ int counts[32];
    __shared__ unsigned long long wide;
    __shared__ float sum;
    if (threadIdx.x < 32) counts[threadIdx.x] = 0;
    if (threadIdx.x == 0) wide = 0, sum = 0;
    __syncthreads();
    int old = atomicAdd(&counts[threadIdx.x % 32], 1);
    atomicAdd(&wide, 1ull << 32);
    atomicAdd(&sum, 1.0f);
    __syncthreads();
    out[threadIdx.x] = counts[threadIdx.x % 32] * 1000 + (old < 8) + int(wide >> 32) + int(sum);
}

int main() {
    const unsigned n = 512;
    {
        DeviceArray<int> i(std::vector<int>{0, 0, 0, 0, -1, 0, 0, 0, 0});
        DeviceArray<unsigned> u(std::vector<unsigned>{0, 0, ~0u, 0, 0});
        DeviceArray<unsigned long long> l(std::vector<unsigned long long>{0, ~0ull, 0, ~0ull, 0, 0});
        DeviceArray<long long> s(std::vector<long long>{0, 0});
        integers<<<4, 128>>>(i.get(), u.get(), l.get(), s.get());
        CUDA(cudaDeviceSynchronize());
        unsigned x = 0;
        for (unsigned t = 0; t < n; t++) x ^= t;
        auto a = i.host();
        int sum = n * (n - 1) / 2;
        REQUIRE(a[0] == sum && a[1] == -sum && a[2] == -511 && a[3] == 511);
        REQUIRE(a[4] == int(0x80000000) && a[5] == 0x7fffffff && a[6] == int(x) && a[7] == int(n) && a[8] == int(n));
        auto b = u.host();
        REQUIRE(b[0] == n % 100 && b[1] == (100 - n % 100) % 100 && b[2] == 0 && b[3] == 511 && b[4] == unsigned(sum));
        auto c = l.host();
        REQUIRE(c[0] == (unsigned long long)sum << 20 && c[1] == ~0ull - 511 && c[2] == 1ull << 59 && c[3] == 0);
        REQUIRE(c[4] == ~0ull && c[5] == (unsigned long long)x << 13);
        auto d = s.host();
        REQUIRE(d[0] == -511 * 1000000007ll && d[1] == 511 * 1000000007ll);
    }
    {
        DeviceArray<float> f(std::vector<float>{0, -1});
        DeviceArray<double> d(std::vector<double>{0});
        __half *h;
        CUDA(cudaMalloc(&h, 8));
        CUDA(cudaMemset(h, 0, 8));
        floats<<<4, 128>>>(f.get(), d.get(), h, reinterpret_cast<__half2 *>(h + 2));
        __half got[4];
        CUDA(cudaMemcpy(got, h, 8, cudaMemcpyDeviceToHost));
        REQUIRE(f.host()[0] == 256 && f.host()[1] >= 0 && f.host()[1] < 512 && d.host()[0] == 128);
        REQUIRE(__half2float(got[0]) == 512 && __half2float(got[2]) == 512 && __half2float(got[3]) == 1024);
    }
    {
        DeviceArray<unsigned short> s(std::vector<unsigned short>{65500, 1, 2, 3});
        DeviceArray<unsigned> u(std::vector<unsigned>{1}), locks(std::vector<unsigned>{0});
        DeviceArray<unsigned long long> l(std::vector<unsigned long long>{0});
        DeviceArray<int> held(std::vector<int>{0});
        swaps<<<4, 128>>>(s.get(), u.get(), l.get(), locks.get(), held.get());
        CUDA(cudaDeviceSynchronize());
        auto a = s.host();
        REQUIRE(a[0] == (unsigned short)(65500 + 171) && a[1] == 1 + 171 && a[2] == 2 + 170 && a[3] == 3);
        unsigned want = 1;
        for (unsigned t = 0; t < n; t++) want = want * 5 + 1;
        REQUIRE(u.host()[0] == want && l.host()[0] == n * ((1ull << 33) + 1) && held.host()[0] == int(n));
    }
    {
        DeviceArray<int> out(256);
        shared_ones<<<1, 256>>>(out.get());
        for (int v : out.host()) REQUIRE(v == 8 * 1000 + 1 + 256 + 256);
    }
    return finish();
}
