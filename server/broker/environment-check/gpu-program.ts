/** What a notebook of a tested environment runs on a GPU: one kernel by the driver's public API, without any package. */

const PTX = `
.version 6.4
.target sm_70
.address_size 64
.visible .entry times_seven(.param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mad.lo.u32 %r2, %r1, 7, 0;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r2;
  ret;
}
`;

/** A cell: attaches the workspace's default amount, computes 6 * 7 on it, and gives it back. */
export const GPU_PROGRAM = `%gpu attach --wait 60
import ctypes

def check(code):
    if code != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"CUDA {code}: {(text.value or b'').decode()}")

cuda = ctypes.CDLL("libcuda.so.1")
device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
memory, values = ctypes.c_uint64(), (ctypes.c_uint32 * 32)()
check(cuda.cuInit(0))
check(cuda.cuDeviceGet(ctypes.byref(device), 0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuModuleLoadData(ctypes.byref(module), b"""${PTX}"""))
check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"times_seven"))
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(128)))
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
check(cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, parameters, None))
check(cuda.cuMemcpyDtoH_v2(values, memory, ctypes.c_size_t(128)))
check(cuda.cuMemFree_v2(memory))
print("6 * 7 =", values[6])
assert values[6] == 42, f"the kernel answered {values[6]}"
%gpu detach
`;
