import { audit, type Context } from "#server/context.ts";
import { type RunCodeInput, runCodeInput } from "#server/contracts/workspace-kernel.ts";
import type { StreamEvent } from "#server/http/event-stream.ts";
import { runInKernel } from "#server/jupyter/notebook-kernel.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { runningServerOf } from "./act.ts";

/**
 * Runs code in a kernel and streams what comes of it. Whoever goes away hears no more; the code runs on. The audit
 * says that code was run, and not which.
 */
export async function run(ctx: Context, raw: RunCodeInput, signal: AbortSignal): Promise<AsyncIterable<StreamEvent>> {
  const { id, kernelId, code } = parse(runCodeInput, raw);
  const row = await loadWorkspace(ctx, id, "workspace.run-code");
  const server = runningServerOf(row);
  await audit(ctx, { action: "workspace.run-code", subject: id, teamId: row.teamId, detail: { kernelId } });
  return outputs(runInKernel(server, kernelId, code, signal));
}

async function* outputs(source: ReturnType<typeof runInKernel>): AsyncGenerator<StreamEvent> {
  for await (const data of source) yield { data };
}
