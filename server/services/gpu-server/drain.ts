import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type DrainGpuServerInput, drainGpuServerInput } from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";
import { findServer } from "./find.ts";

/** Takes no new leases on a server and lets what runs finish; or takes leases again. */
export async function drain(ctx: Context, raw: DrainGpuServerInput): Promise<{ serverId: string; draining: boolean }> {
  const input = parse(drainGpuServerInput, raw);
  authorize(ctx.principal, "gpu-server.drain", { serverId: input.serverId });
  return await inTransaction(ctx, async (tx) => {
    const devices = await tx.db.select().from(gpus).where(eq(gpus.serverId, input.serverId));
    const types = await lockGpuTypes(
      tx.db,
      devices.map((device) => device.gpuType),
    );
    const server = await findServer(tx, input.serverId);
    const connected = server.state === "online" || server.state === "draining";
    await tx.db
      .update(gpuServers)
      .set({
        drainedAt: input.draining ? (server.drainedAt ?? tx.now()) : null,
        drainedByNode: false,
        ...(connected && { state: input.draining ? "draining" : "online" }),
      })
      .where(eq(gpuServers.id, server.id));
    await audit(tx, { action: "gpu-server.drain", subject: server.id, detail: { draining: input.draining } });
    await notify(tx.db, "pool", server.id);
    for (const gpuType of types) await advanceQueue(tx, gpuType);
    return { serverId: server.id, draining: input.draining };
  });
}
