// CUB's device-wide functions are called twice: for the size of their work space, and to work.
#pragma once
#include "../device_array.h"
#include <cub/util_type.cuh>

#define CUB(function, ...)                                                        \
    do {                                                                          \
        size_t bytes_ = 0;                                                        \
        CUDA(function(nullptr, bytes_, __VA_ARGS__));                             \
        DeviceArray<char> space_(bytes_ + 1);                                     \
        CUDA(function(space_.get(), bytes_, __VA_ARGS__));                        \
        CUDA(cudaDeviceSynchronize());                                            \
    } while (0)
