// Arguments of many sizes, laid out as the compiler does it.
#include "check.h"

struct Point {
    double x;
    char tag;
    float weights[3];
};

__global__ void gather(char a, Point p, short b, long long c, float2 d, bool e, const int *f, double *out) {
    out[0] = a + p.x + p.tag + p.weights[0] + p.weights[1] + p.weights[2] + b + double(c) + d.x + d.y + e + *f;
}

int main() {
    int five = 5, *f;
    double result = 0, *out;
    CUDA(cudaMalloc(&f, sizeof(int)));
    CUDA(cudaMalloc(&out, sizeof(double)));
    CUDA(cudaMemcpy(f, &five, sizeof(int), cudaMemcpyHostToDevice));
    Point p = {0.5, 2, {1, 2, 3}};
    gather<<<1, 1>>>(1, p, 4, 1000000007, make_float2(10, 20), true, f, out);
    CUDA(cudaMemcpy(&result, out, sizeof(result), cudaMemcpyDeviceToHost));
    REQUIRE(result == 1 + 0.5 + 2 + 6 + 4 + 1000000007.0 + 30 + 1 + 5);
    return finish();
}
