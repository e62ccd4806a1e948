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

export const followKernelsInput = z.strictObject({
  id: workspaceId,
  /** Present: a stream of server-sent events, each with all that runs then. */
  follow: z.string().optional(),
});

/** A notebook's path below the workspace's home, without going up. */
const notebookPath = z
  .string()
  .max(200)
  .regex(/^(?!\/)(?!.*\.\.)[^\0]+\.ipynb$/, "A notebook's path ends in .ipynb and stays below the home.");

export const startKernelInput = z.strictObject({
  id: workspaceId,
  /** The notebook that it is for, and by which people know its GPU; the file need not be there. */
  path: notebookPath,
});
export type StartKernelInput = z.input<typeof startKernelInput>;
export const startedKernel = z.strictObject({ kernelId });
export type StartedKernel = z.infer<typeof startedKernel>;

export const runCodeInput = z.strictObject({ id: workspaceId, kernelId, code: z.string().max(100_000) });
export type RunCodeInput = z.input<typeof runCodeInput>;

/** What comes of code, as it comes. */
export const kernelOutput = z.discriminatedUnion("kind", [
  /** `block`: takes the place of the text that came under the same name. */
  z.strictObject({ kind: z.literal("text"), text: z.string(), block: z.string().optional() }),
  /** A PNG in base64. */
  z.strictObject({ kind: z.literal("picture"), png: z.string() }),
  z.strictObject({ kind: z.literal("error"), text: z.string() }),
  /** The last one. */
  z.strictObject({ kind: z.literal("done"), ok: z.boolean() }),
]);
export type KernelOutput = z.infer<typeof kernelOutput>;

export const workspaceKernelInput = z.strictObject({ id: workspaceId, kernelId });
export type WorkspaceKernelInput = z.input<typeof workspaceKernelInput>;
