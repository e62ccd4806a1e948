import { audit, type Context } from "#server/context.ts";
import { type WorkspaceKernelInput, workspaceKernelInput } from "#server/contracts/workspace-kernel.ts";
import { SluiceError } from "#server/errors.ts";
import type { JupyterServer } from "#server/jupyter/server-settings.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { jupyterServerOf } from "#server/services/workspace/jupyter-server.ts";
import { loadWorkspace, type WorkspaceRow } from "#server/services/workspace/load.ts";

/** Does one thing to a kernel of a workspace that runs, and writes it down. */
export async function actOnKernel(
  ctx: Context,
  raw: WorkspaceKernelInput,
  action: "workspace.interrupt-kernel" | "workspace.shut-down-kernel",
  act: (server: JupyterServer, kernelId: string) => Promise<void>,
): Promise<Record<string, never>> {
  const { id, kernelId } = parse(workspaceKernelInput, raw);
  const row = await loadWorkspace(ctx, id, "workspace.work");
  await act(runningServerOf(row), kernelId).catch(explained);
  await audit(ctx, { action, subject: id, teamId: row.teamId, detail: { kernelId } });
  await notify(ctx.db, "workspace", id);
  return {};
}

/** The Jupyter server of a workspace that runs. */
export function runningServerOf(row: WorkspaceRow): JupyterServer {
  const server = jupyterServerOf(row);
  if (server === undefined) throw new SluiceError("conflict", `"${row.name}" does not run, so it has no notebooks.`);
  return server;
}

/** What a Jupyter server that refused or did not answer means for a person. */
export function explained(error: unknown): never {
  throw statusOf(error) === 404
    ? new SluiceError("not-found", "This notebook has ended meanwhile.")
    : new SluiceError("unavailable", "The workspace's Jupyter server did not answer. Try again in a few seconds.");
}

function statusOf(error: unknown): number | undefined {
  const response = error instanceof Error && "response" in error ? error.response : undefined;
  return response instanceof Response ? response.status : undefined;
}
