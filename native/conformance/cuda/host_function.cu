// Functions of the host in stream order: what was copied before them has landed.
#include "check.h"

struct State {
    int host[256];
    int seen;
    int called;
};

__global__ void fill(int *data, int value) { data[threadIdx.x] = value; }

void look(void *data) {
    State *state = static_cast<State *>(data);
    state->seen = state->host[255];
    state->called++;
}

void callback(cudaStream_t, cudaError_t status, void *data) {
    REQUIRE(status == cudaSuccess);
    static_cast<State *>(data)->called += 10;
}

int main() {
    State *state;
    CUDA(cudaMallocHost(&state, sizeof(State)));
    *state = State();
    int *data;
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc(&data, sizeof(state->host)));
    fill<<<1, 256, 0, stream>>>(data, 42);
    CUDA(cudaMemcpyAsync(state->host, data, sizeof(state->host), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaLaunchHostFunc(stream, look, state));
    CUDA(cudaStreamAddCallback(stream, callback, state, 0));
    CUDA(cudaStreamSynchronize(stream));
    REQUIRE(state->seen == 42 && state->called == 11);
    CUDA(cudaFreeHost(state));
    CUDA(cudaFreeHost(nullptr));
    return finish();
}
