import { audit, type Context } from "#server/context.ts";
import { type StartedKernel, type StartKernelInput, startKernelInput } from "#server/contracts/workspace-kernel.ts";
import { startNotebookKernel } from "#server/jupyter/notebook-kernel.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { explained, runningServerOf } from "./act.ts";

/** Starts a kernel for a notebook of a workspace that runs, or gives the one that the notebook has. */
export async function start(ctx: Context, raw: StartKernelInput): Promise<StartedKernel> {
  const { id, path } = parse(startKernelInput, raw);
  const row = await loadWorkspace(ctx, id, "workspace.run-code");
  const kernelId = await startNotebookKernel(runningServerOf(row), path).catch(explained);
  await audit(ctx, { action: "workspace.start-kernel", subject: id, teamId: row.teamId, detail: { kernelId, path } });
  await notify(ctx.db, "workspace", id);
  return { kernelId };
}
