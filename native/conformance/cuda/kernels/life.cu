// Conway's Game of Life on a torus: 50 generations, and a glider that comes back. Tolerance: none, cells are counted.
#include "../device_array.h"

__host__ __device__ unsigned char lives(const unsigned char *cells, int n, int x, int y) {
    int around = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) around += (dx || dy) && cells[(y + dy + n) % n * n + (x + dx + n) % n];
    return around == 3 || (around == 2 && cells[y * n + x]);
}

__global__ void generation(const unsigned char *in, unsigned char *out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) out[y * n + x] = lives(in, n, x, y);
}

std::vector<unsigned char> play(const std::vector<unsigned char> &start, int n, int generations) {
    DeviceArray<unsigned char> a(start), b(start);
    unsigned char *now = a.get(), *then = b.get();
    for (int g = 0; g < generations; g++) {
        generation<<<dim3((n + 15) / 16, (n + 7) / 8), dim3(16, 8)>>>(now, then, n);
        std::swap(now, then);
    }
    return now == a.get() ? a.host() : b.host();
}

int main() {
    const int n = 60;
    auto cells = random_integers<unsigned char>(n * n, 0, 1);
    auto got = play(cells, n, 50);
    for (int g = 0; g < 50; g++) {
        auto next = cells;
        for (int i = 0; i < n * n; i++) next[i] = lives(cells.data(), n, i % n, i / n);
        cells = next;
    }
    REQUIRE(got == cells);
    std::vector<unsigned char> glider(16 * 16, 0);
    for (int i : {1, 18, 32, 33, 34}) glider[i] = 1;
    REQUIRE(play(glider, 16, 64) == glider);
    return finish();
}
