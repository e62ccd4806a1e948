// Compiled with -lineinfo by generate.py: what a fault says of the program's lines.
__device__ float element(const float *x, int i) {
  return x[i];
}

extern "C" __global__ void scale(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float value = element(x, i);
    y[i] = a * value;
  }
}
