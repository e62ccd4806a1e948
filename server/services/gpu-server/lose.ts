import { and, eq, inArray, lte } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { closeLeases } from "#server/services/lease/ending.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";

/**
 * A gpud is silent: its leases are unreachable and still count. Does nothing when it has been heard, by this broker
 * or another one, after `lastHeard`.
 */
export async function lose(ctx: Context, input: { serverId: string; lastHeard: Date }): Promise<boolean> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  return await inTransaction(ctx, async (tx) => {
    const [lost] = await tx.db
      .update(gpuServers)
      .set({ state: "lost" })
      .where(
        and(
          eq(gpuServers.id, input.serverId),
          inArray(gpuServers.state, ["online", "draining"]),
          lte(gpuServers.lastSeenAt, input.lastHeard),
        ),
      )
      .returning();
    if (lost === undefined) return false;
    const unreachable = await tx.db
      .update(leases)
      .set({ state: "unreachable" })
      .where(and(eq(leases.serverId, lost.id), inArray(leases.state, ["granted", "active"])))
      .returning({ id: leases.id });
    for (const lease of unreachable) await notify(tx.db, "lease", lease.id);
    await audit(tx, { action: "gpu-server.lose", subject: lost.id, detail: { leases: unreachable.length } });
    await notify(tx.db, "pool", lost.id);
    return true;
  });
}

/**
 * A gpud has been silent for too long: its leases are closed, and its epoch is raised so that what it still holds when
 * it comes back is fenced. Returns how many leases that closed.
 */
export async function closeLost(ctx: Context, input: { serverId: string }): Promise<number> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  return await inTransaction(ctx, async (tx) => {
    const devices = await tx.db.select({ gpuType: gpus.gpuType }).from(gpus).where(eq(gpus.serverId, input.serverId));
    const types = await lockGpuTypes(
      tx.db,
      devices.map((device) => device.gpuType),
    );
    const [server] = await tx.db.select().from(gpuServers).where(eq(gpuServers.id, input.serverId)).for("update");
    if (server?.state !== "lost") return 0;
    const live = await tx.db
      .select({ id: leases.id })
      .from(leases)
      .where(
        and(eq(leases.serverId, server.id), inArray(leases.state, ["granted", "active", "unreachable", "ending"])),
      );
    if (live.length === 0) return 0;
    await tx.db
      .update(gpuServers)
      .set({ epoch: server.epoch + 1 })
      .where(eq(gpuServers.id, server.id));
    await audit(tx, { action: "gpu-server.fence", subject: server.id, detail: { epoch: server.epoch + 1 } });
    const closed = await closeLeases(
      tx.db,
      live.map((lease) => ({ by: tx, leaseId: lease.id })),
      { reason: "server lost", mode: "kill", note: `GPU server ${server.name} was silent for a minute` },
    );
    for (const gpuType of types) await advanceQueue(tx, gpuType);
    return closed.length;
  });
}
