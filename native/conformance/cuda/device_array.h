// An array in device memory that is freed with its scope, and copies to and from the host's vectors.
#pragma once
#include "check.h"
#include <cmath>
#include <random>
#include <vector>

template <class T> class DeviceArray {
  public:
    explicit DeviceArray(size_t count) : count_(count) { CUDA(cudaMalloc(&data_, bytes())); }
    explicit DeviceArray(const std::vector<T> &values) : DeviceArray(values.size()) {
        CUDA(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
    }
    DeviceArray(const DeviceArray &) = delete;
    ~DeviceArray() { cudaFree(data_); }
    T *get() const { return data_; }
    size_t size() const { return count_; }
    // What the device holds; waits for the work that was launched before.
    std::vector<T> host() const {
        std::vector<T> values(count_);
        CUDA(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
        return values;
    }
    T front() const {
        T value;
        CUDA(cudaMemcpy(&value, data_, sizeof(T), cudaMemcpyDeviceToHost));
        return value;
    }

  private:
    size_t bytes() const { return count_ * sizeof(T); }
    T *data_ = nullptr;
    size_t count_;
};

// Whole numbers of [low, high], the same in each run.
template <class T> std::vector<T> random_integers(size_t count, long long low, long long high, unsigned seed = 7) {
    std::mt19937_64 engine(seed);
    std::uniform_int_distribution<long long> choose(low, high);
    std::vector<T> values(count);
    for (T &value : values) value = static_cast<T>(choose(engine));
    return values;
}

// Real numbers of [low, high), the same in each run.
template <class T> std::vector<T> random_reals(size_t count, T low, T high, unsigned seed = 7) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<T> choose(low, high);
    std::vector<T> values(count);
    for (T &value : values) value = choose(engine);
    return values;
}

// Fails when two numbers differ by more than `relative` of the larger plus `absolute`.
inline void near(double a, double b, double relative, double absolute, const char *what) {
    double bound = relative * std::fmax(std::fabs(a), std::fabs(b)) + absolute;
    if (!(std::fabs(a - b) <= bound)) {
        std::printf("%s: %.9g, not %.9g (off by %.3g, allowed %.3g)\n", what, a, b, std::fabs(a - b), bound);
        std::exit(1);
    }
}

template <class T, class U>
void near(const std::vector<T> &a, const std::vector<U> &b, double relative, double absolute, const char *what) {
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); i++) near(a[i], b[i], relative, absolute, what);
}
