// What C++ gives kernels beside arithmetic: virtual functions, function pointers, recursion, lambdas, local arrays.
#include "../device_array.h"
#include <cstring>
#include <new>

struct Shape {
    __device__ virtual ~Shape() {}
    __device__ virtual double area() const = 0;
    __device__ virtual int corners() const { return -1; }
};
struct Square : Shape {
    double side;
    __device__ explicit Square(double s) : side(s) {}
    __device__ double area() const override { return side * side; }
    __device__ int corners() const override { return 4; }
};
struct Disc : Shape {
    double r;
    int *ended;
    __device__ Disc(double r, int *ended) : r(r), ended(ended) {}
    __device__ ~Disc() override { atomicAdd(ended, 1); }
    __device__ double area() const override { return 3.0 * r * r; }
};

__global__ void shapes(double *areas, int *corners, int *ended) {
    int t = threadIdx.x;
    Shape *shape;
    if (t % 2) shape = new Disc(t, ended);
    else shape = new Square(t);
    areas[t] = shape->area();
    corners[t] = shape->corners();
    delete shape;
}

__device__ __noinline__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }

__global__ void recursion(int *out) {
    int t = threadIdx.x;
    out[t] = ackermann(t % 3, t % 5) * 2 + even(t);
}

typedef float (*Unary)(float);
__device__ __noinline__ float twice(float x) { return 2 * x; }
__device__ __noinline__ float squared(float x) { return x * x; }
__device__ __noinline__ float negated(float x) { return -x; }
__device__ Unary table[3] = {twice, squared, negated};
__constant__ int order[4] = {2, 0, 1, 2};

struct Big {
    int values[20];
    char tail[3];
};
__device__ __noinline__ Big shift(Big big, int by) {
    Big out = big;
    for (int i = 0; i < 20; i++) out.values[i] = big.values[(i + by) % 20] + by;
    out.tail[by % 3] = 'x';
    return out;
}

__global__ void pointers(float *out, Unary *chosen) {
    int t = threadIdx.x;
    Unary f = table[order[t % 4]];
    if (chosen[0]) f = t % 7 == 0 ? chosen[0] : f;
    out[t] = f(t);
}

__global__ void choose(Unary *chosen) { chosen[0] = squared; }

__global__ void structures(int *out) {
    int t = threadIdx.x;
    Big big;
    for (int i = 0; i < 20; i++) big.values[i] = i * t;
    big.tail[0] = big.tail[1] = big.tail[2] = 'a';
    big = shift(shift(big, t % 5), 3);
    int sum = 0;
    for (int i = 0; i < 20; i++) sum = sum * 3 + big.values[i];
    out[t] = sum + big.tail[0] + big.tail[1] * 2 + big.tail[2] * 4;
}

template <typename F> __device__ int apply(F f, int n) {
    int total = 0;
    for (int i = 0; i < n; i++) total += f(i);
    return total;
}
template <typename... Ts> __device__ int sum_of(Ts... values) { return (values + ... + 0); }

__global__ void lambdas(int *out) {
    int t = threadIdx.x, seed = t * 7;
    out[t] = apply([=](int i) { return i * seed % 5; }, t) + sum_of(t, 1, 2, seed);
}

__global__ void locals(int *out, const int *index) {
    int t = threadIdx.x;
    short small[33];
    __align__(8) char bytes[64];
    for (int i = 0; i < 33; i++) small[i] = i * t;
    for (int i = 0; i < 64; i++) bytes[i] = i ^ t;
    int k = index[t];
    long long *wide = reinterpret_cast<long long *>(bytes + 8 * (k % 8));
    switch (k % 6) {
    case 0: out[t] = small[k]; break;
    case 1: out[t] = bytes[k]; break;
    case 2: out[t] = int(*wide >> 8); break;
    case 3: out[t] = small[32 - k % 33]; break;
    case 4:
        for (int i = k; i < 64; i++)
            if (bytes[i] == 5) goto found;
        out[t] = -1;
        break;
    found: out[t] = 555; break;
    default: out[t] = sizeof(Big);
    }
}

static int host_ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? host_ackermann(m - 1, 1) : host_ackermann(m - 1, host_ackermann(m, n - 1));
}

int main() {
    const int n = 96;
    {
        DeviceArray<double> areas(n);
        DeviceArray<int> corners(n), ended(1);
        CUDA(cudaMemset(ended.get(), 0, 4));
        shapes<<<1, n>>>(areas.get(), corners.get(), ended.get());
        auto a = areas.host();
        auto c = corners.host();
        for (int t = 0; t < n; t++) REQUIRE(a[t] == (t % 2 ? 3.0 * t * t : double(t) * t) && c[t] == (t % 2 ? -1 : 4));
        REQUIRE(ended.host()[0] == n / 2);
    }
    {
        // A card gives a thread 1 KiB of stack unless it is asked for more.
        CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 16 << 10));
        DeviceArray<int> out(n);
        recursion<<<1, n>>>(out.get());
        auto got = out.host();
        for (int t = 0; t < n; t++) REQUIRE(got[t] == host_ackermann(t % 3, t % 5) * 2 + (t % 2 == 0));
    }
    {
        DeviceArray<float> out(n);
        Unary *chosen;
        CUDA(cudaMalloc(&chosen, sizeof(Unary)));
        CUDA(cudaMemset(chosen, 0, sizeof(Unary)));
        for (int round = 0; round < 2; round++) {
            pointers<<<1, n>>>(out.get(), chosen);
            auto got = out.host();
            int orders[4] = {2, 0, 1, 2};
            for (int t = 0; t < n; t++) {
                int k = round && t % 7 == 0 ? 1 : orders[t % 4];
                REQUIRE(got[t] == (k == 0 ? 2.f * t : k == 1 ? float(t) * t : -float(t)));
            }
            choose<<<1, 1>>>(chosen);
        }
    }
    {
        DeviceArray<int> out(n);
        structures<<<1, n>>>(out.get());
        auto got = out.host();
        for (int t = 0; t < n; t++) {
            int v[20], w[20], x[20];
            char tail[3] = {'a', 'a', 'a'};
            for (int i = 0; i < 20; i++) v[i] = i * t;
            for (int i = 0; i < 20; i++) w[i] = v[(i + t % 5) % 20] + t % 5;
            tail[t % 5 % 3] = 'x';
            for (int i = 0; i < 20; i++) x[i] = w[(i + 3) % 20] + 3;
            tail[0] = 'x';
            unsigned sum = 0;
            for (int i = 0; i < 20; i++) sum = sum * 3 + x[i];
            REQUIRE(got[t] == int(sum + tail[0] + tail[1] * 2 + tail[2] * 4));
        }
    }
    {
        DeviceArray<int> out(n);
        lambdas<<<1, n>>>(out.get());
        auto got = out.host();
        for (int t = 0; t < n; t++) {
            int total = t + 3 + t * 7;
            for (int i = 0; i < t; i++) total += i * (t * 7) % 5;
            REQUIRE(got[t] == total);
        }
    }
    {
        std::vector<int> index(n);
        for (int t = 0; t < n; t++) index[t] = t * 5 % 33;
        DeviceArray<int> in(index), out(n);
        locals<<<1, n>>>(out.get(), in.get());
        auto got = out.host();
        for (int t = 0; t < n; t++) {
            int k = index[t], want;
            signed char bytes[64];
            for (int i = 0; i < 64; i++) bytes[i] = i ^ t;
            long long wide;
            std::memcpy(&wide, bytes + 8 * (k % 8), 8);
            switch (k % 6) {
            case 0: want = k * t; break;
            case 1: want = bytes[k]; break;
            case 2: want = int(wide >> 8); break;
            case 3: want = (32 - k % 33) * t; break;
            case 4: want = -1; for (int i = k; i < 64; i++) if (bytes[i] == 5) want = 555; break;
            default: want = 84;
            }
            REQUIRE(got[t] == want);
        }
    }
    return finish();
}
