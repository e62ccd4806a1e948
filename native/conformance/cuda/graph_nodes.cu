// A graph made node by node: kernels, copies and fills by their own descriptions and by the one for all kinds, asked
// for, changed in the graph and in the executable.
#include "check.h"

__device__ int offsets[32];

__global__ void scale(int *data, int factor) { data[threadIdx.x] *= factor; }
__global__ void shift(int *data, int by) { data[threadIdx.x] += by + offsets[threadIdx.x]; }

static int launch(cudaGraph_t graph, cudaStream_t stream, cudaGraphExec_t *executable) {
    CUDA(cudaGraphInstantiate(executable, graph, 0));
    CUDA(cudaGraphLaunch(*executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    return 0;
}

static cudaKernelNodeParams kernel(void *function, void **arguments) {
    cudaKernelNodeParams params = {};
    params.func = function;
    params.gridDim = dim3(1);
    params.blockDim = dim3(32);
    params.kernelParams = arguments;
    return params;
}

int main() {
    int host[32], in[32], small[32], *data, *other;
    cudaStream_t stream;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc(&data, sizeof(host)));
    CUDA(cudaMalloc(&other, sizeof(host)));
    for (int i = 0; i < 32; i++) {
        in[i] = i;
        small[i] = 1000 * i;
    }

    // in -> offsets, fill, shift, scale, data -> host
    cudaGraph_t graph;
    cudaGraphNode_t toSymbol, fill, shifted, scaled, out;
    CUDA(cudaGraphCreate(&graph, 0));
    CUDA(cudaGraphAddMemcpyNodeToSymbol(&toSymbol, graph, nullptr, 0, offsets, in, sizeof(in), 0,
                                        cudaMemcpyHostToDevice));
    cudaMemsetParams zeros = {};
    zeros.dst = data;
    zeros.elementSize = 4;
    zeros.value = 7;
    zeros.width = 32;
    zeros.height = 1;
    CUDA(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &zeros));
    int by = 3, factor = 10;
    void *shiftArguments[] = {&data, &by}, *scaleArguments[] = {&data, &factor};
    cudaGraphNode_t both[] = {toSymbol, fill};
    cudaKernelNodeParams shiftParams = kernel((void *)shift, shiftArguments);
    cudaKernelNodeParams scaleParams = kernel((void *)scale, scaleArguments);
    CUDA(cudaGraphAddKernelNode(&shifted, graph, both, 2, &shiftParams));
    CUDA(cudaGraphAddKernelNode(&scaled, graph, &shifted, 1, &scaleParams));
    CUDA(cudaGraphAddMemcpyNode1D(&out, graph, &scaled, 1, host, data, sizeof(host), cudaMemcpyDeviceToHost));
    cudaGraphExec_t executable;
    launch(graph, stream, &executable);
    for (int i = 0; i < 32; i++) REQUIRE(host[i] == (7 + 3 + i) * 10);

    // What the nodes say of themselves
    cudaKernelNodeParams asked = {};
    CUDA(cudaGraphKernelNodeGetParams(scaled, &asked));
    REQUIRE(asked.func == (void *)scale);
    REQUIRE(asked.blockDim.x == 32 && asked.gridDim.x == 1 && asked.sharedMemBytes == 0);
    REQUIRE(*(int **)asked.kernelParams[0] == data && *(int *)asked.kernelParams[1] == 10);
    cudaMemsetParams filled = {};
    CUDA(cudaGraphMemsetNodeGetParams(fill, &filled));
    REQUIRE(filled.dst == data && filled.value == 7 && filled.width == 32);
    cudaMemcpy3DParms copied = {};
    CUDA(cudaGraphMemcpyNodeGetParams(out, &copied));
    REQUIRE(copied.srcPtr.ptr == data && copied.dstPtr.ptr == host && copied.kind == cudaMemcpyDeviceToHost);
    REQUIRE(copied.extent.width == sizeof(host) && copied.extent.height == 1 && copied.extent.depth == 1);

    // Changed in the executable: other arguments, another kernel, another value, another target
    by = 5;
    CUDA(cudaGraphExecKernelNodeSetParams(executable, shifted, &shiftParams));
    factor = 2;
    CUDA(cudaGraphExecKernelNodeSetParams(executable, scaled, &scaleParams));
    zeros.value = 1;
    CUDA(cudaGraphExecMemsetNodeSetParams(executable, fill, &zeros));
    CUDA(cudaGraphExecMemcpyNodeSetParamsToSymbol(executable, toSymbol, offsets, small, sizeof(small), 0,
                                                  cudaMemcpyHostToDevice));
    int elsewhere[32] = {};
    CUDA(cudaGraphExecMemcpyNodeSetParams1D(executable, out, elsewhere, data, sizeof(elsewhere),
                                            cudaMemcpyDeviceToHost));
    CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < 32; i++) REQUIRE(elsewhere[i] == (1 + 5 + 1000 * i) * 2);
    copied.dstPtr.ptr = host;
    CUDA(cudaGraphExecMemcpyNodeSetParams(executable, out, &copied));
    CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < 32; i++) REQUIRE(host[i] == elsewhere[i]);
    CUDA(cudaGraphExecDestroy(executable));

    // Changed in the graph, which was not touched by that
    asked.kernelParams = scaleArguments;
    factor = -1;
    CUDA(cudaGraphKernelNodeSetParams(scaled, &asked));
    CUDA(cudaGraphMemcpyNodeSetParams1D(out, elsewhere, data, sizeof(elsewhere), cudaMemcpyDeviceToHost));
    CUDA(cudaGraphMemcpyNodeSetParamsToSymbol(toSymbol, offsets, small, sizeof(int), 31 * sizeof(int),
                                              cudaMemcpyHostToDevice));
    launch(graph, stream, &executable);
    for (int i = 0; i < 31; i++) REQUIRE(elsewhere[i] == -(7 + 3 + 1000 * i));
    REQUIRE(elsewhere[31] == -(7 + 3 + 0));
    CUDA(cudaGraphExecDestroy(executable));
    copied.dstPtr.ptr = host;
    CUDA(cudaGraphMemcpyNodeSetParams(out, &copied));
    launch(graph, stream, &executable);
    for (int i = 0; i < 32; i++) REQUIRE(host[i] == elsewhere[i]);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));

    // A variable read, and a copy of rows with a gap
    cudaGraph_t second;
    cudaGraphNode_t fromSymbol, rows;
    CUDA(cudaGraphCreate(&second, 0));
    CUDA(cudaGraphAddMemcpyNodeFromSymbol(&fromSymbol, second, nullptr, 0, other, offsets, sizeof(host), 0,
                                          cudaMemcpyDeviceToDevice));
    cudaMemcpy3DParms halves = {};
    halves.srcPtr = make_cudaPitchedPtr(other, 32, 8, 4);
    halves.dstPtr = make_cudaPitchedPtr(host, 16, 4, 4);
    halves.srcPos = make_cudaPos(16, 0, 0);
    halves.extent = make_cudaExtent(16, 4, 1);
    halves.kind = cudaMemcpyDefault;
    CUDA(cudaGraphAddMemcpyNode(&rows, second, &fromSymbol, 1, &halves));
    launch(second, stream, &executable);
    int rest[32];
    CUDA(cudaMemcpyFromSymbol(rest, offsets, sizeof(rest)));
    for (int i = 0; i < 16; i++) REQUIRE(host[i] == rest[i / 4 * 8 + 4 + i % 4]);
    CUDA(cudaGraphExecMemcpyNodeSetParamsFromSymbol(executable, fromSymbol, other, offsets, 4, 4,
                                                    cudaMemcpyDeviceToDevice));
    CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, other, 4, cudaMemcpyDeviceToHost));
    REQUIRE(host[0] == rest[1]);
    CUDA(cudaGraphMemcpyNodeSetParamsFromSymbol(fromSymbol, other, offsets, 4, 8, cudaMemcpyDeviceToDevice));
    CUDA(cudaGraphMemcpyNodeGetParams(fromSymbol, &copied));
    REQUIRE(copied.dstPtr.ptr == other && copied.extent.width == 4 && copied.kind == cudaMemcpyDeviceToDevice);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(second));

    // All kinds by one structure
    cudaGraph_t third;
    cudaGraphNode_t allocation, one, two, three, last;
    CUDA(cudaGraphCreate(&third, 0));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeMemAlloc;
    params.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
    params.alloc.poolProps.location.type = cudaMemLocationTypeDevice;
    params.alloc.bytesize = sizeof(host);
    CUDA(cudaGraphAddNode(&allocation, third, nullptr, nullptr, 0, &params));
    int *memory = (int *)params.alloc.dptr;
    REQUIRE(memory != nullptr);
    params = {};
    params.type = cudaGraphNodeTypeMemset;
    params.memset.dst = memory;
    params.memset.elementSize = 4;
    params.memset.value = 6;
    params.memset.width = 32;
    params.memset.height = 1;
    CUDA(cudaGraphAddNode(&one, third, &allocation, nullptr, 1, &params));
    factor = 7;
    void *ofMemory[] = {&memory, &factor};
    params = {};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = (void *)scale;
    params.kernel.gridDim = dim3(1);
    params.kernel.blockDim = dim3(32);
    params.kernel.kernelParams = ofMemory;
    CUDA(cudaGraphAddNode(&two, third, &one, nullptr, 1, &params));
    cudaGraphNodeParams ofKernel = params;
    params = {};
    params.type = cudaGraphNodeTypeMemcpy;
    params.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(memory, sizeof(host), sizeof(host), 1);
    params.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(host, sizeof(host), sizeof(host), 1);
    params.memcpy.copyParams.extent = make_cudaExtent(sizeof(host), 1, 1);
    params.memcpy.copyParams.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaGraphAddNode(&three, third, &two, nullptr, 1, &params));
    cudaGraphNodeParams ofCopy = params;
    params = {};
    params.type = cudaGraphNodeTypeMemFree;
    params.free.dptr = memory;
    CUDA(cudaGraphAddNode(&last, third, &three, nullptr, 1, &params));
    launch(third, stream, &executable);
    for (int value : host) REQUIRE(value == 42);
#if CUDART_VERSION >= 13010
    CUDA(cudaGraphNodeGetParams(two, &params));
    REQUIRE(params.type == cudaGraphNodeTypeKernel && params.kernel.func == (void *)scale);
    REQUIRE(*(int *)params.kernel.kernelParams[1] == 7);
    CUDA(cudaGraphNodeGetParams(three, &params));
    REQUIRE(params.type == cudaGraphNodeTypeMemcpy && params.memcpy.copyParams.dstPtr.ptr == host);
#endif
    factor = 9;
    CUDA(cudaGraphExecNodeSetParams(executable, two, &ofKernel));
    ofCopy.memcpy.copyParams.dstPtr.ptr = elsewhere;
    CUDA(cudaGraphExecNodeSetParams(executable, three, &ofCopy));
    CUDA(cudaGraphLaunch(executable, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int value : elsewhere) REQUIRE(value == 54);
    CUDA(cudaGraphExecDestroy(executable));
    factor = 11;
    CUDA(cudaGraphNodeSetParams(two, &ofKernel));
    launch(third, stream, &executable);
    for (int value : host) REQUIRE(value == 66);

    // What is no kernel, no direction and no copy is said at once
    shiftParams.func = host;
    cudaError_t unknown = cudaGraphKernelNodeSetParams(two, &shiftParams);
    // NVIDIA's runtime 13.0 calls it a handle that is none.
    REQUIRE(unknown == cudaErrorInvalidDeviceFunction || unknown == cudaErrorInvalidResourceHandle);
    FAILS(cudaGraphAddMemcpyNode1D(&out, third, nullptr, 0, host, data, 4, (cudaMemcpyKind)9),
          cudaErrorInvalidMemcpyDirection);
    FAILS(cudaGraphAddMemcpyNodeToSymbol(&out, third, nullptr, 0, host, in, 4, 0, cudaMemcpyHostToDevice),
          cudaErrorInvalidSymbol);
    FAILS(cudaGraphAddMemcpyNodeToSymbol(&out, third, nullptr, 0, offsets, in, 4, 126, cudaMemcpyHostToDevice),
          cudaErrorInvalidValue);
    FAILS(cudaGraphAddMemcpyNodeToSymbol(&out, third, nullptr, 0, offsets, in, 4, 0, cudaMemcpyDeviceToHost),
          cudaErrorInvalidMemcpyDirection);
    FAILS(cudaGraphAddMemcpyNodeFromSymbol(&out, third, nullptr, 0, data, offsets, 4, 0, cudaMemcpyHostToDevice),
          cudaErrorInvalidMemcpyDirection);
    FAILS(cudaMemcpyToSymbol(offsets, host, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
    FAILS(cudaMemcpyFromSymbol(host, offsets, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
    FAILS(cudaGraphAddKernelNode(&out, third, nullptr, 0, nullptr), cudaErrorInvalidValue);
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(third));
    return finish();
}
