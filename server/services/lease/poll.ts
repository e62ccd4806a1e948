import { eq } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { answerFor, ownRequest, type RequestRow } from "./answer.ts";
import { expireRequest } from "./expire-request.ts";
import { MAX_POLL_SECONDS } from "./policy.ts";
import { workspacePrincipal } from "./request.ts";
import type { Watcher } from "./watch.ts";

const pollInput = z.strictObject({
  requestId: z.string().max(64),
  /** How long the answer may be held back while nothing changes. */
  waitSeconds: z.number().min(0).max(MAX_POLL_SECONDS).default(0),
});
export type PollInput = z.input<typeof pollInput>;

/** The state of a request, at once when it is decided, else after a change or `waitSeconds`. A poll keeps the place. */
export async function poll(ctx: Context, raw: PollInput, watcher: Watcher): Promise<LeaseRequestAnswer> {
  const input = parse(pollInput, raw);
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.poll", { workspaceId });
  const until = ctx.now().getTime() + input.waitSeconds * 1000;
  const { id } = await ownRequest(ctx.db, workspaceId, input.requestId);
  const watch = watcher(id);
  try {
    for (;;) {
      const row = await refresh(ctx, id, workspaceId);
      const now = ctx.now().getTime();
      if (row.state !== "queued" || now >= until) return await answerFor(ctx.db, row, ctx.now());
      await watch.changed(Math.min(until, row.waitUntil.getTime()) - now);
    }
  } finally {
    watch.close();
  }
}

/** Marks the request as still wanted, or ends its waiting when the time for that is over. */
async function refresh(ctx: Context, id: string, workspaceId: string): Promise<RequestRow> {
  const row = await ownRequest(ctx.db, workspaceId, id);
  if (row.state !== "queued") return row;
  const now = ctx.now();
  if (row.waitUntil <= now) {
    await expireRequest(ctx, id, "expired");
    return await ownRequest(ctx.db, workspaceId, id);
  }
  await ctx.db.update(leaseRequests).set({ lastPolledAt: now }).where(eq(leaseRequests.id, id));
  return row;
}
