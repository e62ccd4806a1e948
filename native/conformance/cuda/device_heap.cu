// Kernels allocate from the device's heap: malloc and free, new and delete, for later kernels too; the heap's size is a
// limit of the context and counts against the lease's memory.
#include "check.h"

struct Shape {
    __device__ explicit Shape(int size) : size(size) {}
    __device__ virtual ~Shape() {}
    __device__ virtual int area() const = 0;
    int size;
};

struct Square : Shape {
    __device__ explicit Square(int size) : Shape(size) {}
    __device__ int area() const override { return size * size; }
};

struct Line : Shape {
    __device__ explicit Line(int size) : Shape(size) {}
    __device__ int area() const override { return size; }
};

struct Node {
    int value;
    Node *next;
};

__device__ Node *list;

__global__ void push(int count) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= count) return;
    Node *node = static_cast<Node *>(malloc(sizeof(Node)));
    node->value = thread;
    unsigned long long *head = reinterpret_cast<unsigned long long *>(&list), seen = *head, old;
    do {
        old = seen;
        node->next = reinterpret_cast<Node *>(old);
        __threadfence();
        seen = atomicCAS(head, old, reinterpret_cast<unsigned long long>(node));
    } while (seen != old);
}

__global__ void drain(long long *sum, int *count) {
    *sum = 0;
    *count = 0;
    while (Node *node = list) {
        *sum += node->value;
        *count += 1;
        list = node->next;
        free(node);
    }
}

__global__ void shapes(int *areas) {
    int i = threadIdx.x;
    Shape *shape = nullptr;
    if (i % 2) shape = new Square(i);
    else shape = new Line(i);
    int *twice = new int[i + 1];
    for (int k = 0; k <= i; k++) twice[k] = 2 * shape->area();
    areas[i] = twice[i];
    delete[] twice;
    delete shape;
}

__global__ void exhaust(size_t bytes, int *got) { *got = 0; while (malloc(bytes)) *got += 1; }

int main() {
    size_t limit = 0, before = 0, after = 0, total = 0;
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    REQUIRE(limit == 8 << 20);
    CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    REQUIRE(limit == 32 << 20);

    long long *sum = nullptr;
    int *count = nullptr;
    CUDA(cudaMalloc(&sum, sizeof(*sum)));
    CUDA(cudaMalloc(&count, 64 * sizeof(*count)));
    CUDA(cudaMemGetInfo(&before, &total));
    const int threads = 10000;
    long long host_sum = 0;
    int host_count = 0;
    for (int round = 0; round < 3; round++) {
        push<<<(threads + 127) / 128, 128>>>(threads);
        drain<<<1, 1>>>(sum, count);
        CUDA(cudaMemcpy(&host_sum, sum, sizeof(host_sum), cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(&host_count, count, sizeof(host_count), cudaMemcpyDeviceToHost));
        REQUIRE(host_count == threads && host_sum == threads * (threads - 1LL) / 2);
    }
    CUDA(cudaMemGetInfo(&after, &total));
    REQUIRE(before - after >= 32 << 20);
    // Once kernels that allocate are there, the heap's size stands.
    FAILS(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20), cudaErrorInvalidValue);
    cudaGetLastError();

    shapes<<<1, 64>>>(count);
    int areas[64];
    CUDA(cudaMemcpy(areas, count, sizeof(areas), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) REQUIRE(areas[i] == 2 * (i % 2 ? i * i : i));

    exhaust<<<1, 1>>>(1 << 20, count);
    CUDA(cudaMemcpy(&host_count, count, sizeof(host_count), cudaMemcpyDeviceToHost));
    REQUIRE(host_count >= 16 && host_count <= 32);

    // The context's end is the heap's end: its memory is free again, and the limit is the first one.
    CUDA(cudaDeviceReset());
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    REQUIRE(limit == 8 << 20);
    CUDA(cudaMalloc(&count, 64 * sizeof(*count)));
    shapes<<<1, 64>>>(count);
    CUDA(cudaDeviceSynchronize());
    // More than the lease has: the module that needs it cannot be loaded.
    CUDA(cudaDeviceReset());
    CUDA(cudaMemGetInfo(&before, &total));
    CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, total + (1 << 20)));
    CUDA(cudaMalloc(&count, 64 * sizeof(*count)));
    shapes<<<1, 64>>>(count);
    REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation);
    CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20));
    shapes<<<1, 64>>>(count);
    CUDA(cudaDeviceSynchronize());
    return finish();
}
