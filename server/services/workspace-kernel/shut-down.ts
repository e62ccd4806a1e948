import type { Context } from "#server/context.ts";
import type { WorkspaceKernelInput } from "#server/contracts/workspace-kernel.ts";
import { shutDownKernel } from "#server/jupyter/kernels.ts";
import { actOnKernel } from "./act.ts";

/** Ends a notebook's kernel: what it holds in memory is lost, and its GPU goes back to the pool. */
export async function shutDown(ctx: Context, input: WorkspaceKernelInput): Promise<Record<string, never>> {
  return await actOnKernel(ctx, input, "workspace.shut-down-kernel", shutDownKernel);
}
