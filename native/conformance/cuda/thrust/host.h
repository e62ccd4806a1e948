// What the Thrust programs share.
#pragma once
#include "../device_array.h"
#include <thrust/device_vector.h>

template <class T> std::vector<T> host(const thrust::device_vector<T> &values) {
    std::vector<T> out(values.size());
    if (!out.empty())
        CUDA(cudaMemcpy(out.data(), thrust::raw_pointer_cast(values.data()), out.size() * sizeof(T),
                        cudaMemcpyDeviceToHost));
    return out;
}
