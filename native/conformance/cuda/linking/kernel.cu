// A kernel whose device function and variable are in a library.
extern __device__ int scaled(int value);
extern __device__ int offset;

extern "C" __global__ void fill(int *out) { out[threadIdx.x] = scaled(threadIdx.x) + offset; }
