import type { Context } from "#server/context.ts";
import type { WorkspaceKernels } from "#server/contracts/workspace-kernel.ts";
import type { StreamEvent } from "#server/http/event-stream.ts";
import { renewed } from "#server/http/renewed.ts";
import { liveEvents } from "#server/http/signals.ts";
import { list } from "#server/services/workspace-kernel/list.ts";

/** A Jupyter server tells nobody that a kernel is busy now: while somebody looks, it is asked. */
const EVERY_MS = 1_000;

/** The kernels of a workspace, and all of them again after each change. Checks access again at each step. */
export async function followKernels(
  ctx: Context & { request: Request },
  { id }: { id: string },
  signal: AbortSignal,
): Promise<AsyncGenerator<StreamEvent>> {
  const since = Date.now();
  return states(ctx, id, { first: await list(ctx, { id }), since }, signal);
}

async function* states(
  ctx: Context & { request: Request },
  id: string,
  { first, since }: { first: WorkspaceKernels; since: number },
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  const signals = liveEvents(["workspace"], signal, {
    as: (event) => (event.id === null || event.id === id ? event : undefined),
    everyMs: EVERY_MS,
    since,
  });
  let told = "";
  try {
    for (let now = first; !signal.aborted; now = await list(await renewed(ctx), { id })) {
      const text = JSON.stringify(now);
      if (text !== told) yield { event: "workspace-kernels", data: now };
      told = text;
      if ((await signals.next()).done === true) return;
    }
  } finally {
    await signals.return();
  }
}
