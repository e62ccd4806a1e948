// A kernel from PTX text at run time.
#include "check.h"

static const char *PTX = ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry triple(.param .u64 data)\n{\n"
    " .reg .b32 %r<4>;\n .reg .b64 %rd<4>;\n"
    " ld.param.u64 %rd1, [data];\n cvta.to.global.u64 %rd1, %rd1;\n mov.u32 %r1, %tid.x;\n"
    " mul.wide.u32 %rd2, %r1, 4;\n add.s64 %rd3, %rd1, %rd2;\n ld.global.u32 %r2, [%rd3];\n"
    " mul.lo.u32 %r3, %r2, 3;\n st.global.u32 [%rd3], %r3;\n ret;\n}\n";

int main() {
    int host[32], *data;
    for (int i = 0; i < 32; i++) host[i] = i;
    CUDA(cudaMalloc(&data, sizeof(host)));
    CUDA(cudaMemcpy(data, host, sizeof(host), cudaMemcpyHostToDevice));
    cudaLibrary_t library;
    cudaKernel_t kernel;
    unsigned count = 0;
    CUDA(cudaLibraryLoadData(&library, PTX, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUDA(cudaLibraryGetKernelCount(&count, library));
    REQUIRE(count == 1);
    CUDA(cudaLibraryGetKernel(&kernel, library, "triple"));
    FAILS(cudaLibraryGetKernel(&kernel, library, "quadruple"), cudaErrorSymbolNotFound);
    (void)cudaGetLastError();
    CUDA(cudaLibraryGetKernel(&kernel, library, "triple"));
    void *arguments[] = {&data};
    CUDA(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(32), arguments, 0, nullptr));
    CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) REQUIRE(host[i] == 3 * i);
    CUDA(cudaLibraryUnload(library));
    return finish();
}
