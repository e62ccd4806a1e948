// What every program here uses: a failed check names itself and ends the program.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define REQUIRE(condition)                                                        \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);           \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

#define CUDA(call)                                                                \
    do {                                                                          \
        cudaError_t error_ = (call);                                              \
        if (error_ != cudaSuccess) {                                              \
            std::printf("%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call,        \
                        cudaGetErrorName(error_), cudaGetErrorString(error_));    \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

#define FAILS(call, error)                                                        \
    do {                                                                          \
        cudaError_t error_ = (call);                                              \
        if (error_ != (error)) {                                                  \
            std::printf("%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #call,     \
                        cudaGetErrorName(error_), #error);                        \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

inline int finish() {
    std::puts("ok");
    return 0;
}
