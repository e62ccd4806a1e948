import type { Context } from "#server/context.ts";
import type { WorkspaceEventList } from "#server/contracts/workspace.ts";
import type { StreamEvent } from "#server/http/event-stream.ts";
import { renewed } from "#server/http/renewed.ts";
import { liveEvents } from "#server/http/signals.ts";
import { events } from "#server/services/workspace/events.ts";
import { FOLLOWED_EVERY_MS, follow } from "#server/services/workspace/follow.ts";

type Input = { id: string; limit: number; after?: number; generation?: number };

/** A workspace's events as they are written, from the first batch on. Checks access again at each step. */
export async function followEvents(
  ctx: Context & { request: Request },
  input: Input,
  signal: AbortSignal,
): Promise<AsyncGenerator<StreamEvent>> {
  const since = Date.now();
  return batches(ctx, input, { first: await events(ctx, input), since }, signal);
}

async function* batches(
  ctx: Context & { request: Request },
  input: Input,
  { first, since }: { first: WorkspaceEventList; since: number },
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  let after = input.after ?? 0;
  const signals = liveEvents(["workspace"], signal, {
    as: (event) => (event.id === null || event.id === input.id ? event : undefined),
    // Log lines may be written without a notification each; a second is still live for a reader.
    everyMs: 1000,
    since,
  });
  let batch = first.events;
  let said = Number.NEGATIVE_INFINITY;
  try {
    do {
      if (performance.now() - said >= FOLLOWED_EVERY_MS) {
        said = performance.now();
        await follow(ctx, input);
      }
      for (const event of batch) {
        after = event.seq;
        yield { id: String(event.seq), event: "workspace-event", data: event };
      }
      if (batch.length < input.limit && (await signals.next()).done === true) return;
      batch = (await events(await renewed(ctx), { ...input, after })).events;
    } while (!signal.aborted);
  } finally {
    // Whoever may not read on any more is not told of anything either.
    await signals.return();
  }
}
