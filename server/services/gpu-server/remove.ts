import { and, eq, ne } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type GpuServerInput, gpuServerInput, type RemoveGpuServerAnswer } from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { closeLeases } from "#server/services/lease/ending.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";
import { findServer } from "./find.ts";

/**
 * Takes a server out of the pool for good: its key is worth nothing any more, its leases end, and the broker that
 * holds its connection tells it so and hangs up.
 */
export async function remove(ctx: Context, raw: GpuServerInput): Promise<RemoveGpuServerAnswer> {
  const input = parse(gpuServerInput, raw);
  authorize(ctx.principal, "gpu-server.remove", { serverId: input.serverId });
  return await inTransaction(ctx, async (tx) => {
    const devices = await tx.db.select().from(gpus).where(eq(gpus.serverId, input.serverId));
    const types = await lockGpuTypes(
      tx.db,
      devices.map((device) => device.gpuType),
    );
    const server = await findServer(tx, input.serverId);
    await tx.db
      .update(gpuServers)
      .set({ state: "removed", epoch: server.epoch + 1 })
      .where(eq(gpuServers.id, server.id));
    const live = await tx.db
      .select({ id: leases.id })
      .from(leases)
      .where(and(eq(leases.serverId, server.id), ne(leases.state, "ended")));
    const closed = await closeLeases(
      tx.db,
      live.map((lease) => ({ by: tx, leaseId: lease.id })),
      { reason: "server lost", mode: "kill", note: `GPU server ${server.name} was removed` },
    );
    await audit(tx, {
      action: "gpu-server.remove",
      subject: server.id,
      detail: { name: server.name, leases: closed.length },
    });
    await notify(tx.db, "pool", server.id);
    // Requests pinned to its devices are refused, not left to wait for ever.
    for (const gpuType of types) await advanceQueue(tx, gpuType);
    return { serverId: server.id, endedLeases: closed.length };
  });
}
