import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetGpuServerZoneInput, setGpuServerZoneInput } from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { findServer } from "./find.ts";

/** Says where a server stands; who waits for a device of that zone is granted at once. */
export async function setZone(
  ctx: Context,
  raw: SetGpuServerZoneInput,
): Promise<{ serverId: string; zone: string | null; zoneVersion: number }> {
  const { serverId, zone, version } = parse(setGpuServerZoneInput, raw);
  authorize(ctx.principal, "gpu-server.set-zone", { serverId });
  return await inTransaction(ctx, async (tx) => {
    const devices = await tx.db.select({ gpuType: gpus.gpuType }).from(gpus).where(eq(gpus.serverId, serverId));
    const types = await lockGpuTypes(
      tx.db,
      devices.map((device) => device.gpuType),
    );
    // A server without devices has no type to lock: two edits at once wait for each other here.
    const server = await findServer(tx, serverId, { lock: true });
    refuseStale(version, { version: server.zoneVersion }, `the zone of ${server.name}`);
    const zoneVersion = server.zoneVersion + 1;
    await tx.db.update(gpuServers).set({ zone, zoneVersion }).where(eq(gpuServers.id, serverId));
    const detail = { before: server.zone, zone };
    await audit(tx, { action: "gpu-server.set-zone", subject: serverId, detail });
    await notify(tx.db, "pool", serverId);
    for (const gpuType of types) await advanceQueue(tx, gpuType);
    return { serverId, zone, zoneVersion };
  });
}
