/**
 * Workspaces in the images of the catalogue's environments, built from their locks: each comes up as a pod, its kernel
 * answers, and a program uses a borrowed GPU. `npm run test:cluster` has two of them, `npm run soak` all, one after another.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { useTestDatabase } from "#server/db/testing.ts";
import {
  type Installation,
  SMALL,
  smallSettings,
  startInstallation,
  testCluster,
} from "#server/launchers/kubernetes/testing.ts";

/** What adds 1, 2 and 3 on the GPU in each. */
const PROGRAMS: Record<string, string> = {
  minimal: `import ctypes
driver = ctypes.CDLL("libcuda.so.1")
device, context, address, numbers = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64(), (ctypes.c_uint8 * 3)(1, 2, 3)
assert driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(3)) == 0
back = (ctypes.c_uint8 * 3)()
assert driver.cuMemcpyHtoD_v2(address, numbers, ctypes.c_size_t(3)) == 0
assert driver.cuMemcpyDtoH_v2(back, address, ctypes.c_size_t(3)) == 0
print("sum", sum(back))`,
  "cuda-python": `import numpy
from numba import cuda
@cuda.jit
def add(numbers, total):
    cuda.atomic.add(total, 0, numbers[cuda.grid(1)])
total = cuda.to_device(numpy.zeros(1, numpy.int32))
add[1, 3](cuda.to_device(numpy.array([1, 2, 3], numpy.int32)), total)
print("sum", total.copy_to_host()[0])`,
  jax: `import jax.numpy
numbers = jax.numpy.array([1, 2, 3])
assert numbers.device.platform == "gpu"
print("sum", numbers.sum())`,
  // Its own kernels are machine code for a card; products of matrices are cuBLAS's.
  pytorch: `import torch
numbers, ones = torch.tensor([[1.0, 2.0, 3.0]]).cuda(), torch.ones(3, 1).cuda()
print("sum", int((numbers @ ones).item()))`,
  cupy: `import cupy
print("sum", cupy.array([1, 2, 3]).sum())`,
};

const cluster = testCluster();
const names = Object.keys(cluster.workspaceImages);
let installation: Installation;

beforeAll(async () => {
  const images = Object.entries(cluster.workspaceImages);
  const environments = Object.fromEntries(
    images.map(([name, image]) => [name, { image, size: "small", pull: "Never" as const }]),
  );
  // A framework takes more than a kernel of its own.
  const sizes = { small: { ...SMALL, memory: { request: "256Mi", limit: "4Gi" } } };
  const database = await useTestDatabase({ max: 10 });
  await database.sql`delete from workspace_sizes`;
  const settings = smallSettings(cluster, "images", { environments, sizes, startSeconds: 300 });
  installation = await startInstallation(database, cluster, { settings, homes: images.length });
});
afterAll(async () => await installation?.stop());

it.each(names)(
  "starts the image of %s, whose program computes on a borrowed GPU",
  async (name) => {
    const id = await installation.launch(name, name);
    await installation.observed(id, "running$", 300_000);
    const printed = await installation.inNotebook(id, `%gpu attach 0.5\n${PROGRAMS[name] ?? "unknown"}\n%gpu detach`);
    expect(printed).toMatch(/^sum 6$/m);
  },
  600_000,
);
