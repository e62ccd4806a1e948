// wmma: halves, bfloats, tf32, bytes and doubles, each fragment's layout, against the same sums on the CPU.
#include "../device_array.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// What compute capability 7.5 does not have: the header leaves it out there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define NEWER 0
namespace nvcuda::wmma::precision {
struct tf32;
}
#else
#define NEWER 1
#endif
template <typename Kind> constexpr bool there =
    NEWER || std::is_same<Kind, __half>::value || std::is_same<Kind, signed char>::value ||
    std::is_same<Kind, unsigned char>::value;

template <typename In, typename Acc, int M, int N, int K, typename LA, typename LB, typename Kind>
__device__ void multiply_there(const In *a, const In *b, const Acc *c, Acc *d, int lda, int ldb) {
    wmma::fragment<wmma::matrix_a, M, N, K, Kind, LA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, Kind, LB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Acc> fc;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
#if NEWER
    if constexpr (std::is_same<Kind, wmma::precision::tf32>::value) {
        for (int i = 0; i < fa.num_elements; i++) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
        for (int i = 0; i < fb.num_elements; i++) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
    }
#endif
    wmma::mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] = fc.x[i] + fc.x[i];
    wmma::store_matrix_sync(d, fc, M, wmma::mem_col_major);
}

template <typename In, typename Acc, int M, int N, int K, typename LA, typename LB, typename Kind>
__global__ void multiply(const In *a, const In *b, const Acc *c, Acc *d, int lda, int ldb) {
    if constexpr (there<Kind>) multiply_there<In, Acc, M, N, K, LA, LB, Kind>(a, b, c, d, lda, ldb);
}

template <typename T> T small(int i) { return T(float((i * 7 + i / 5) % 9 - 4)); }
template <> unsigned char small<unsigned char>(int i) { return (i * 37 + i / 5) % 256; }
template <> signed char small<signed char>(int i) { return (i * 37 + i / 5) % 256 - 128; }

template <typename In, typename Acc, int M, int N, int K, bool RowA, bool RowB, typename Kind = In>
void run(const char *name, bool newer = false) {
    typedef typename std::conditional<RowA, wmma::row_major, wmma::col_major>::type LA;
    typedef typename std::conditional<RowB, wmma::row_major, wmma::col_major>::type LB;
    auto kernel = multiply<In, Acc, M, N, K, LA, LB, Kind>;
    cudaFuncAttributes attributes;
    CUDA(cudaFuncGetAttributes(&attributes, kernel));
    if (newer && attributes.ptxVersion < 80) return;
    std::vector<In> a(M * K), b(K * N);
    std::vector<Acc> c(M * N), d(M * N);
    for (int i = 0; i < M * K; i++) a[i] = small<In>(i);
    for (int i = 0; i < K * N; i++) b[i] = small<In>(i + 3);
    for (int i = 0; i < M * N; i++) c[i] = Acc(float(i % 5));
    In *da, *db;
    Acc *dc, *dd;
    CUDA(cudaMalloc(&da, sizeof(In) * M * K));
    CUDA(cudaMalloc(&db, sizeof(In) * K * N));
    CUDA(cudaMalloc(&dc, sizeof(Acc) * M * N));
    CUDA(cudaMalloc(&dd, sizeof(Acc) * M * N));
    CUDA(cudaMemcpy(da, a.data(), sizeof(In) * M * K, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(db, b.data(), sizeof(In) * K * N, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(dc, c.data(), sizeof(Acc) * M * N, cudaMemcpyHostToDevice));
    kernel<<<1, 32>>>(da, db, dc, dd, RowA ? K : M, RowB ? N : K);
    CUDA(cudaMemcpy(d.data(), dd, sizeof(Acc) * M * N, cudaMemcpyDeviceToHost));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = double(float(c[i * N + j]));
            for (int k = 0; k < K; k++) {
                In x = a[RowA ? i * K + k : k * M + i], y = b[RowB ? k * N + j : j * K + k];
                sum += double(float(x)) * double(float(y));
            }
            if (double(float(d[j * M + i])) != 2 * sum) {
                std::printf("%s %d %d: %g, not %g\n", name, i, j, double(float(d[j * M + i])), 2 * sum);
                std::exit(1);
            }
        }
}

int main() {
    run<__half, float, 16, 16, 16, true, true>("f16 rr");
    run<__half, float, 16, 16, 16, false, true>("f16 cr");
    run<__half, __half, 16, 16, 16, true, false>("f16 f16 rc");
    run<__half, float, 32, 8, 16, false, false>("f16 32x8");
    run<__half, float, 8, 32, 16, true, false>("f16 8x32");
    run<signed char, int, 16, 16, 16, true, false>("s8");
    run<unsigned char, int, 32, 8, 16, true, true>("u8");
    run<signed char, int, 8, 32, 16, false, false>("s8 8x32");
    run<__nv_bfloat16, float, 16, 16, 16, true, false>("bf16", true);
    run<__nv_bfloat16, float, 32, 8, 16, false, true>("bf16 32x8", true);
    run<float, float, 16, 16, 8, true, false, wmma::precision::tf32>("tf32", true);
    run<float, float, 16, 16, 8, false, true, wmma::precision::tf32>("tf32 cr", true);
    run<double, double, 8, 8, 4, true, false>("f64", true);
    return finish();
}
