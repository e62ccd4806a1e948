// Links an object file and a library of nvcc (`-dc`) by the driver, and runs what comes out.
// linking OBJECT LIBRARY MACHINE_CODE
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <fstream>
#include <iterator>
#include <vector>

static void check(CUresult code, CUresult wanted, const char *what, int line) {
    if (code != wanted) {
        const char *text = "";
        cuGetErrorString(code, &text);
        std::printf("line %d: %s is %d: %s\n", line, what, code, text);
        std::exit(1);
    }
}
#define CHECK(call) check(call, CUDA_SUCCESS, #call, __LINE__)

int main(int count, char **arguments) {
    if (count != 4) return 2;
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    for (int as_data = 0; as_data < 2; as_data++) {
        CUlinkState link;
        CHECK(cuLinkCreate(0, nullptr, nullptr, &link));
        if (as_data) {
            const CUjitInputType kinds[] = {CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY};
            for (int input = 0; input < 2; input++) {
                std::ifstream file(arguments[1 + input], std::ios::binary);
                std::vector<char> data{std::istreambuf_iterator<char>(file), {}};
                CHECK(cuLinkAddData(link, kinds[input], data.data(), data.size(), arguments[1 + input], 0, nullptr, nullptr));
            }
        } else {
            CHECK(cuLinkAddFile(link, CU_JIT_INPUT_OBJECT, arguments[1], 0, nullptr, nullptr));
            CHECK(cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, arguments[2], 0, nullptr, nullptr));
        }
        void *image;
        size_t bytes;
        CHECK(cuLinkComplete(link, &image, &bytes));
        CUmodule module;
        CUfunction function;
        CHECK(cuModuleLoadData(&module, image));
        CHECK(cuLinkDestroy(link));
        CHECK(cuModuleGetFunction(&function, module, "fill"));
        CUdeviceptr out;
        CHECK(cuMemAlloc(&out, 32 * sizeof(int)));
        void *parameters[] = {&out};
        CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
        int found[32];
        CHECK(cuMemcpyDtoH(found, out, sizeof(found)));
        for (int at = 0; at < 32; at++) {
            if (found[at] != at * 3 + 100) {
                std::printf("%d is %d\n", at, found[at]);
                return 1;
            }
        }
        CHECK(cuModuleUnload(module));
    }
    // Machine code alone cannot be linked with anything: said when it is completed, or when it is added.
    CUlinkState link;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &link));
    CUresult refused = cuLinkAddFile(link, CU_JIT_INPUT_OBJECT, arguments[3], 0, nullptr, nullptr);
    if (refused == CUDA_SUCCESS) {
        void *image;
        size_t bytes;
        CHECK(cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, arguments[2], 0, nullptr, nullptr));
        refused = cuLinkComplete(link, &image, &bytes);
    }
    check(refused, CUDA_ERROR_NO_BINARY_FOR_GPU, "machine code", __LINE__);
    const char *text = "";
    cuGetErrorString(refused, &text);
    std::printf("%s\nok\n", text);
    return 0;
}
