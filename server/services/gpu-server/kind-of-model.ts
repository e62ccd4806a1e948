import type { GpuKind } from "#server/contracts/gpu-server.ts";

/**
 * What a device is by the name that its driver gives it: pure. NVIDIA's driver names an instance of MIG after its card
 * and profile ("NVIDIA A100-SXM4-40GB MIG 3g.20gb") and a virtual GPU by its vGPU type ("NVIDIA L40S-48C", "GRID
 * A100-1-5C"; NVIDIA's vGPU user guide). A card that a hypervisor passes through has the name of any other.
 */
export function kindOfModel(model: string): GpuKind {
  if (/ MIG \d+g\.\d+gb/i.test(model)) return "mig";
  return /-\d+[ABCQ]$/.test(model) ? "vgpu" : "shared";
}
