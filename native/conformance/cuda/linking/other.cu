// What nobody needs, and what would not be found if it were linked.
extern __device__ int nowhere(int value);

__device__ int unneeded(int value) { return nowhere(value); }
