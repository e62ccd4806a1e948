import { authorize, type Context, inTransaction } from "#server/context.ts";
import { type EndLeaseAnswer, type EndLeaseInput, endLeaseInput } from "#server/contracts/gpu-server.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { beginEnd } from "./ending.ts";
import { findPlacedLease } from "./view.ts";

/**
 * Ends somebody's lease (an admin, a team lead, or its owner from a page). The notebook's next CUDA call gets a clear
 * error and the notebook lives. Answers at once; the lease is closed when gpud has confirmed.
 */
export async function end(ctx: Context, raw: EndLeaseInput): Promise<EndLeaseAnswer> {
  const input = parse(endLeaseInput, raw);
  const found = await findPlacedLease(ctx.db, input.leaseId);
  authorize(ctx.principal, "lease.end", { teamId: found?.lease.teamId, ownerId: found?.lease.userId });
  if (found === undefined)
    throw new SluiceError("not-found", "There is no such lease. Reload the page to see what is live.");
  const own = ctx.principal.kind === "user" && ctx.principal.userId === found.lease.userId;
  const by = ctx.principal.kind === "user" ? ctx.principal.name : undefined;
  const note = [own ? undefined : by, input.note].filter((part) => part !== undefined).join(": ");
  return await inTransaction(ctx, async (tx) => {
    await beginEnd(tx, [input.leaseId], {
      reason: own ? "given back" : "ended by an admin",
      mode: own ? "park" : "kill",
      ...(note === "" ? {} : { note }),
    });
    const after = await findPlacedLease(tx.db, input.leaseId);
    return { leaseId: input.leaseId, state: after?.lease.state === "ended" ? "ended" : "ending" };
  });
}
