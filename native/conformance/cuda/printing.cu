// printf in kernels says what the host's says, and as much as cudaLimitPrintfFifoSize asks for is kept.
#include "check.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <unistd.h>

#define LINES(P)                                                                                                   \
    P("plain 100%%\n");                                                                                            \
    P("%d %5d|%-5d|%05d %+d % d %i\n", 7, 7, 7, -7, 1, 2, -3);                                                     \
    P("%u %x %X %#x %o %#o\n", 4000000000u, 255, 255, 255, 8, 8);                                                  \
    P("%hd %hhd %hu %hhx\n", (short)-1, (signed char)-128, (unsigned short)65535, (unsigned char)255);             \
    P("%ld %lu %lld %llu %llx\n", -5l, 5ul, -(1ll << 60), ~0ull, 1ull << 63);                                      \
    P("%zu %zd %jd %td\n", (size_t)77, (ptrdiff_t)-77, (long long)-1, (ptrdiff_t)9);                               \
    P("%f %F %.0f %10.3f|%-10.3f|%+.2f\n", 1.5, -2.25, 2.5, 3.14159, 3.14159, 0.5);                                \
    P("%e %E %.2e %g %G %g %g\n", 12345.678, 0.00012, 0.0, 0.0001, 1e-10, 1e20, 100000.0);                         \
    P("%a %A %.1a\n", 1.0, -10.5, 1.97);                                                                           \
    P("%f %e %g %08f|%-8f|\n", INFINITY, -INFINITY, NAN, INFINITY, INFINITY);                                      \
    P("%c%c|%5c|%-5c|%s|%8s|%-8s|%.3s|%8.2s\n", 'H', 'i', 'x', 'y', "text", "right", "left", "cut off", "both");   \
    P("%*d|%-*d|%*d|%.*f|%8.*f\n", 6, 42, 6, 42, -4, 7, 2, 2.728, -1, 1.5);                                        \
    P("%c%c%c %s\n", '\xe2', '\x82', '\xac', "gr\xc3\xbc\xc3\x9f");                                                \
    P("%d%%|%s\n", 3, "end")

__global__ void lines() {
#define DEVICE(...) printf(__VA_ARGS__)
    LINES(DEVICE);
}

__global__ void counts(int *out) {
    out[0] = printf("%d %s %f\n", 1, "x", 2.0);
    out[1] = printf("none\n");
}

__global__ void many(int lines) {
    for (int i = 0; i < lines; i++) printf("line %08d ------------------------------------------------\n", i);
}

static std::string caught(void (*work)()) {
    std::fflush(stdout);
    int kept = dup(1);
    FILE *file = std::tmpfile();
    dup2(fileno(file), 1);
    work();
    std::fflush(stdout);
    dup2(kept, 1);
    close(kept);
    std::rewind(file);
    std::string text;
    for (int c; (c = std::fgetc(file)) != EOF;) text += char(c);
    std::fclose(file);
    return text;
}

int main() {
    auto run = [] {
        many<<<1, 1>>>(50000);
        CUDA(cudaDeviceSynchronize());
    };
    size_t limit = 0;
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    REQUIRE(limit >= 1 << 20);
    // Before any kernel that prints: a card takes no other limit behind one.
    CUDA(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 8 << 20));
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    REQUIRE(limit >= 8 << 20);
    std::string all = caught(run);
    REQUIRE(all.find("line 00000000") == 0 && all.find("line 00049999") != std::string::npos);
    REQUIRE(std::count(all.begin(), all.end(), '\n') == 50000);
    std::string device = caught([] {
        lines<<<1, 1>>>();
        CUDA(cudaDeviceSynchronize());
    });
    std::string host = caught([] {
#define HOST(...) std::printf(__VA_ARGS__)
        LINES(HOST);
    });
    if (device != host) {
        std::printf("device:\n%s\nhost:\n%s\n", device.c_str(), host.c_str());
        return 1;
    }
    int *out, got[2];
    CUDA(cudaMalloc(&out, sizeof(got)));
    counts<<<1, 1>>>(out);
    CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
    REQUIRE(got[0] == 3 && got[1] == 0);
    CUDA(cudaDeviceReset());
    CUDA(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    REQUIRE(limit == 1 << 20);
    // How much of this is kept depends on the device; the end is.
    REQUIRE(caught(run).find("line 00049999") != std::string::npos);
    return finish();
}
