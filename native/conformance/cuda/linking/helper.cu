// What the kernel beside needs.
__device__ int offset = 100;

__device__ int scaled(int value) { return value * 3; }
