import { and, eq, inArray } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { leases } from "#server/db/schema/index.ts";
import { advanceTogether } from "./advance-together.ts";
import { type Closing, closeLeases } from "./ending.ts";

/** gpud has parked or ended the workers of these leases: they are closed, and what they held goes to the queue. */
export async function confirmEnds(
  ctx: Context,
  input: { serverId: string; ends: ReadonlyMap<string, Closing> },
): Promise<void> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  const closed = await inTransaction(ctx, async (tx) => {
    const own = await tx.db
      .select({ id: leases.id })
      .from(leases)
      .where(and(inArray(leases.id, [...input.ends.keys()]), eq(leases.serverId, input.serverId)));
    const ids = own.map((lease) => lease.id);
    return await closeLeases(tx, ids, { reason: "server lost", mode: "kill", note: "gpud ended it" }, input.ends);
  });
  const types = new Set(closed.map((lease) => lease.gpuType));
  await Promise.all([...types].map(async (gpuType) => await advanceTogether(ctx.db, gpuType)));
}
