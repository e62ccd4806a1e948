import { authorize, type Context, inTransaction } from "#server/context.ts";
import { advanceTogether } from "./advance-together.ts";
import { type Closing, closeLeases } from "./ending.ts";

/** gpud has parked or ended the workers of these leases: they are closed, and what they held goes to the queue. */
export async function confirmEnds(
  ctx: Context,
  input: { serverId: string; ends: ReadonlyMap<string, Closing> },
): Promise<void> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  const closed = await inTransaction(ctx, async (tx) => {
    const how = { reason: "server lost" as const, mode: "kill" as const, note: "gpud ended it" };
    return await closeLeases(tx, [...input.ends.keys()], how, { closings: input.ends, serverId: input.serverId });
  });
  const types = new Set(closed.map((lease) => lease.gpuType));
  await Promise.all([...types].map(async (gpuType) => await advanceTogether(ctx.db, gpuType)));
}
