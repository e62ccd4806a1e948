/** What the hardware behind a device can be, as people read it. */
import type { GpuKind } from "#server/contracts/gpu-server.ts";

export const KINDS: Record<GpuKind, { word: string; means: string }> = {
  shared: { word: "shared card", means: "A card of the server's own; leases share it in time." },
  mig: { word: "MIG", means: "A partition of a card with processors and memory of its own (Multi-Instance GPU)." },
  vgpu: { word: "vGPU", means: "A part of a card that a hypervisor gives to the server's virtual machine." },
  passthrough: { word: "passthrough", means: "A whole card that a hypervisor hands to the server's virtual machine." },
};
