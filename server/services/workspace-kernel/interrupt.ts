import type { Context } from "#server/context.ts";
import type { WorkspaceKernelInput } from "#server/contracts/workspace-kernel.ts";
import { interruptKernel } from "#server/jupyter/kernels.ts";
import { actOnKernel } from "./act.ts";

/** Stops what a notebook computes; its variables stay. */
export async function interrupt(ctx: Context, input: WorkspaceKernelInput): Promise<Record<string, never>> {
  return await actOnKernel(ctx, input, "workspace.interrupt-kernel", interruptKernel);
}
