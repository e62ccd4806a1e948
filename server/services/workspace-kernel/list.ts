import { and, eq, inArray } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { type WorkspaceInput, workspaceInput } from "#server/contracts/workspace.ts";
import type { WorkspaceKernel, WorkspaceKernels } from "#server/contracts/workspace-kernel.ts";
import { leases } from "#server/db/schema/index.ts";
import { listKernels, type RunningKernel } from "#server/jupyter/kernels.ts";
import { parse } from "#server/parse.ts";
import { jupyterServerOf } from "#server/services/workspace/jupyter-server.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";

/** What runs in a workspace now: kernels with their notebooks, what they do, and the GPUs that they hold. */
export async function list(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceKernels> {
  const { id } = parse(workspaceInput, raw);
  const server = jupyterServerOf(await loadWorkspace(ctx, id, "workspace.read"));
  if (server === undefined) return { state: "not running", kernels: [] };
  const [running, held] = await Promise.all([
    listKernels(server).catch(() => undefined),
    ctx.db
      .select({ owner: leases.owner, milli: leases.milli })
      .from(leases)
      .where(and(eq(leases.workspaceId, id), inArray(leases.state, ["granted", "active", "unreachable"]))),
  ]);
  if (running === undefined) return { state: "no answer", kernels: [] };
  const gpuOf = (kernel: RunningKernel) =>
    held.filter(({ owner }) => owner.kernelId === kernel.id).reduce((sum, { milli }) => sum + milli, 0);
  return { state: "ok", kernels: running.map((kernel) => kernelView(kernel, gpuOf(kernel))) };
}

function kernelView(kernel: RunningKernel, gpuMilli: number): WorkspaceKernel {
  const at = Date.parse(kernel.last_activity ?? "");
  return {
    id: kernel.id,
    name: kernel.name,
    path: kernel.path,
    state: stateOf(kernel.execution_state),
    lastActivityAt: Number.isFinite(at) ? new Date(at).toISOString() : null,
    connections: kernel.connections ?? 0,
    gpuMilli,
  };
}

function stateOf(state: string | undefined): WorkspaceKernel["state"] {
  switch (state) {
    case "starting":
    case "idle":
    case "busy":
    case "dead":
      return state;
    case "restarting":
    case "autorestarting":
      return "restarting";
    default:
      return "unknown";
  }
}
