import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetGpuKindInput, type SetGpuKindOutput, setGpuKindInput } from "#server/contracts/gpu-server.ts";
import { gpus } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { changedMeanwhile } from "#server/services/refuse-stale.ts";
import { findDevice } from "./find.ts";

/** Says what the hardware behind a device is, where gpud cannot tell (a card that is passed through looks like any). */
export async function setKind(ctx: Context, raw: SetGpuKindInput): Promise<SetGpuKindOutput> {
  const { id, kind, was } = parse(setGpuKindInput, raw);
  authorize(ctx.principal, "gpu-server.set-kind");
  return await inTransaction(ctx, async (tx) => {
    const { device } = await findDevice(tx, id, { lock: true });
    if (was !== undefined && was !== device.kind) {
      throw changedMeanwhile(`the kind of ${device.name}`, { kind: device.kind });
    }
    await tx.db.update(gpus).set({ kind }).where(eq(gpus.id, id));
    const detail = { device: device.name, before: device.kind, kind };
    await audit(tx, { action: "gpu-server.set-kind", subject: id, detail });
    await notify(tx.db, "pool", id);
    return { id, kind };
  });
}
