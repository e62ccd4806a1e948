// A captured stream, launched again and again.
#include "check.h"

__global__ void add(int *data, int value) { data[threadIdx.x] += value; }

int main() {
    int host[32], *data;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CUDA(cudaMalloc(&data, sizeof(host)));
    CUDA(cudaMemset(data, 0, sizeof(host)));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    cudaStreamCaptureStatus status;
    CUDA(cudaStreamIsCapturing(stream, &status));
    REQUIRE(status == cudaStreamCaptureStatusActive);
    add<<<1, 32, 0, stream>>>(data, 1);
    add<<<1, 32, 0, stream>>>(data, 10);
    CUDA(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamEndCapture(stream, &graph));
    size_t nodes = 0;
    CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    REQUIRE(nodes == 3);
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 5; i++) CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int value : host) REQUIRE(value == 55);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    return finish();
}
