import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type LeaveQueueAnswer, type LeaveQueueInput, leaveQueueInput } from "#server/contracts/lease-board.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { expireRequest } from "./expire-request.ts";

/** Takes a waiting request out of the queue from a page: its owner, a lead of the team, or an admin. */
export async function leaveQueue(ctx: Context, raw: LeaveQueueInput): Promise<LeaveQueueAnswer> {
  const { id } = parse(leaveQueueInput, raw);
  const [request] = await ctx.db.select().from(leaseRequests).where(eq(leaseRequests.id, id)).limit(1);
  authorize(ctx.principal, "lease.leave-queue", { ownerId: request?.userId, teamId: request?.teamId });
  if (request === undefined) {
    throw new SluiceError("not-found", "There is no such request. Reload the page to see what waits.");
  }
  const by = ctx.principal.kind === "user" ? ctx.principal.name : "Sluice";
  const entry = { action: "lease.leave-queue", subject: id, teamId: request.teamId };
  const taken = { said: `${by} took it out of the queue`, audit: entry };
  if (!(await expireRequest(ctx, id, "cancelled", taken))) {
    throw new SluiceError("conflict", "It does not wait any more. Reload the page to see what became of it.");
  }
  return { requestId: id, state: "cancelled" };
}
