// Rows with gaps: to the device, on it, and back.
#include "check.h"
#include <vector>

__global__ void increment(unsigned char *data, size_t pitch, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width && y < height) data[y * pitch + x]++;
}

int main() {
    const int width = 300, height = 40;
    std::vector<unsigned char> in(width * height), out(512 * height, 7);
    for (int i = 0; i < width * height; i++) in[i] = (unsigned char)(i % 200);
    unsigned char *first, *second;
    size_t pitch = 0, other = 0;
    CUDA(cudaMallocPitch(&first, &pitch, width, height));
    CUDA(cudaMallocPitch(&second, &other, width, height));
    REQUIRE(pitch >= width && pitch == other);
    CUDA(cudaMemcpy2D(first, pitch, in.data(), width, width, height, cudaMemcpyHostToDevice));
    increment<<<dim3((width + 127) / 128, height), 128>>>(first, pitch, width, height);
    CUDA(cudaMemcpy2D(second, other, first, pitch, width, height, cudaMemcpyDeviceToDevice));
    CUDA(cudaMemcpy2D(out.data(), 512, second, other, width, height, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) REQUIRE(out[y * 512 + x] == in[y * width + x] + 1);
        for (int x = width; x < 512; x++) REQUIRE(out[y * 512 + x] == 7);
    }
    CUDA(cudaMemcpy2DAsync(out.data(), 512, first, pitch, 10, 2, cudaMemcpyDefault, cudaStreamPerThread));
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
    FAILS(cudaMemcpy2D(first, 10, in.data(), width, width, height, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    return finish();
}
