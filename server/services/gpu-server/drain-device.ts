import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type DrainDeviceInput, type DrainDeviceOutput, drainDeviceInput } from "#server/contracts/gpu-server.ts";
import { gpus } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";
import { findDevice } from "./find.ts";

/** Takes no new leases on one device and lets what runs finish; or takes leases again, as far as its server does. */
export async function drainDevice(ctx: Context, raw: DrainDeviceInput): Promise<DrainDeviceOutput> {
  const { id, draining } = parse(drainDeviceInput, raw);
  authorize(ctx.principal, "gpu-server.drain");
  return await inTransaction(ctx, async (tx) => {
    const { device } = await findDevice(tx, id);
    await lockGpuTypes(tx.db, [device.gpuType]);
    const drainedAt = draining ? (device.drainedAt ?? tx.now()) : null;
    await tx.db.update(gpus).set({ drainedAt }).where(eq(gpus.id, id));
    await audit(tx, { action: "gpu-server.drain-device", subject: id, detail: { device: device.name, draining } });
    await notify(tx.db, "pool", id);
    await advanceQueue(tx, device.gpuType);
    return { id, draining };
  });
}
