// Device-wide histograms with even bins and with bins of given borders.
#include "device.h"
#include <cub/device/device_histogram.cuh>
#include <algorithm>

int main() {
    const int n = 50021;
    auto values = random_reals<float>(n, -0.2f, 10.2f);
    DeviceArray<float> in(values);
    DeviceArray<int> out(20);
    CUB(cub::DeviceHistogram::HistogramEven, in.get(), out.get(), 21, 0.0f, 10.0f, n);
    std::vector<int> wanted(20, 0);
    for (float v : values)
        if (v >= 0 && v < 10) wanted[int(v * 2)]++;
    REQUIRE(out.host() == wanted);
    std::vector<float> borders = {0, 1, 1.5, 4, 9};
    DeviceArray<float> edges(borders);
    DeviceArray<int> few(4);
    CUB(cub::DeviceHistogram::HistogramRange, in.get(), few.get(), 5, edges.get(), n);
    std::vector<int> counts(4, 0);
    for (float v : values)
        for (int b = 0; b < 4; b++)
            if (v >= borders[b] && v < borders[b + 1]) counts[b]++;
    REQUIRE(few.host() == counts);
    return finish();
}
