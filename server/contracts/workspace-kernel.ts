/** What runs in a workspace, as its Jupyter server tells. */
import { z } from "zod";
import { instant, workspaceId } from "./common.ts";

const kernelId = z.string().regex(/^[0-9a-f-]{36}$/, "That is not a kernel's id.");

export const workspaceKernel = z.strictObject({
  id: kernelId,
  /** The kernel's kind, e.g. `python3`. */
  name: z.string(),
  /** The notebook or console that it belongs to, by its path; null for one without. */
  path: z.string().nullable(),
  state: z.enum(["starting", "idle", "busy", "restarting", "dead", "unknown"]),
  /** When it last did something: since then it is idle. */
  lastActivityAt: instant.nullable(),
  /** Browsers that are connected to it. */
  connections: z.int(),
  /** GPUs that it has borrowed, thousandths. */
  gpuMilli: z.int(),
});
export type WorkspaceKernel = z.infer<typeof workspaceKernel>;

export const workspaceKernels = z.strictObject({
  /** `no answer`: the Jupyter server did not say; `not running`: there is none. */
  state: z.enum(["ok", "not running", "no answer"]),
  kernels: z.array(workspaceKernel),
});
export type WorkspaceKernels = z.infer<typeof workspaceKernels>;

export const workspaceKernelInput = z.strictObject({ id: workspaceId, kernelId });
export type WorkspaceKernelInput = z.input<typeof workspaceKernelInput>;
