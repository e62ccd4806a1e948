// Pairs of halves and of bfloats: arithmetic, comparisons and functions, against single precision.
// Tolerance: 2.5 roundings of the half type relative to the result, and a sixteenth of that absolutely.
#include "../device_array.h"
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cmath>

template <typename T> struct Of;
template <> struct Of<__half2> {
    typedef __half one;
    static constexpr float unit = 1.0f / 2048;
    static __host__ __device__ __half2 pair(float a, float b) { return __floats2half2_rn(a, b); }
    static __host__ __device__ float2 both(__half2 v) { return __half22float2(v); }
    static __device__ __half2 fma(__half2 a, __half2 b, __half2 c) { return __hfma2(a, b, c); }
};
template <> struct Of<__nv_bfloat162> {
    typedef __nv_bfloat16 one;
    static constexpr float unit = 1.0f / 256;
    static __host__ __device__ __nv_bfloat162 pair(float a, float b) { return __floats2bfloat162_rn(a, b); }
    static __host__ __device__ float2 both(__nv_bfloat162 v) { return __bfloat1622float2(v); }
    static __device__ __nv_bfloat162 fma(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
#if __CUDA_ARCH__ >= 800
        return __hfma2(a, b, c);
#else
        // The header leaves it out there.
        float2 x = both(a), y = both(b), z = both(c);
        return pair(fmaf(x.x, y.x, z.x), fmaf(x.y, y.y, z.y));
#endif
    }
};
const int OPS = 24;

template <typename T> __global__ void work(const float2 *in, float2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T a = Of<T>::pair(in[i].x, in[i].y), b = Of<T>::pair(in[(i + 1) % n].x, in[(i + 1) % n].y);
    T c = Of<T>::pair(0.5f, -0.25f);
    float2 *to = out + i * OPS;
    to[0] = Of<T>::both(__hadd2(a, b));
    to[1] = Of<T>::both(__hsub2(a, b));
    to[2] = Of<T>::both(__hmul2(a, b));
    to[3] = Of<T>::both(Of<T>::fma(a, b, c));
    to[4] = Of<T>::both(__h2div(a, b));
    to[5] = Of<T>::both(__hmax2(a, b));
    to[6] = Of<T>::both(__hmin2(a, b));
    to[7] = Of<T>::both(__habs2(a));
    to[8] = Of<T>::both(__hneg2(a));
    to[9] = Of<T>::both(__hgt2(a, b));
    to[10] = Of<T>::both(__hle2(a, b));
    to[11] = make_float2(__hbeq2(a, a), __hbgt2(a, b));
    to[12] = Of<T>::both(h2exp(a));
    to[13] = Of<T>::both(h2log(__habs2(a)));
    to[14] = Of<T>::both(h2sqrt(__habs2(a)));
    to[15] = Of<T>::both(h2rsqrt(__habs2(a)));
    to[16] = Of<T>::both(h2sin(a));
    to[17] = Of<T>::both(h2cos(a));
    to[18] = Of<T>::both(h2rcp(a));
    to[19] = Of<T>::both(h2floor(a));
    to[20] = Of<T>::both(h2rint(a));
    to[21] = Of<T>::both(h2exp2(a));
    to[22] = Of<T>::both(__hadd2_sat(a, b));
    to[23] = make_float2(float(a.x + b.y), float(-a.x * b.x));
}

static float bounded(float v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

template <typename T> void run(const char *name) {
    const int n = 512;
    std::vector<float2> in(n);
    auto values = random_reals<float>(2 * n, -4.0f, 4.0f);
    for (int i = 0; i < n; i++) in[i] = Of<T>::both(Of<T>::pair(values[2 * i], values[2 * i + 1]));
    float2 *din, *dout;
    CUDA(cudaMalloc(&din, n * sizeof(float2)));
    CUDA(cudaMalloc(&dout, n * OPS * sizeof(float2)));
    CUDA(cudaMemcpy(din, in.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
    work<T><<<4, 128>>>(din, dout, n);
    std::vector<float2> out(n * OPS);
    CUDA(cudaMemcpy(out.data(), dout, out.size() * sizeof(float2), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        for (int half = 0; half < 2; half++) {
            auto get = [&](float2 v) { return half ? v.y : v.x; };
            float a = get(in[i]), b = get(in[(i + 1) % n]), c = half ? -0.25f : 0.5f, m = std::fabs(a);
            float2 x = in[i], y = in[(i + 1) % n];
            float want[OPS] = {a + b, a - b, a * b, a * b + c, a / b, std::max(a, b), std::min(a, b), m, -a,
                               float(a > b), float(a <= b), half ? float(x.x > y.x && x.y > y.y) : 1.0f,
                               std::exp(a), std::log(m), std::sqrt(m), 1 / std::sqrt(m), std::sin(a), std::cos(a),
                               1 / a, std::floor(a), std::rint(a), std::exp2(a), bounded(a + b),
                               half ? -x.x * y.x : x.x + y.y};
            for (int k = 0; k < OPS; k++) {
                float got = get(out[i * OPS + k]);
                float bound = 2.5f * Of<T>::unit * std::fabs(want[k]) + 2.5f * Of<T>::unit / 16;
                // A result may be too large for the half type.
                float nearest = Of<T>::both(Of<T>::pair(want[k], want[k])).x;
                if (!(got == nearest || std::fabs(got - want[k]) <= bound)) {
                    std::printf("%s op %d half %d: %g, %g -> %g, not %g\n", name, k, half, a, b, got, want[k]);
                    std::exit(1);
                }
            }
        }
}

int main() {
    run<__half2>("half2");
    run<__nv_bfloat162>("bfloat162");
    return finish();
}
