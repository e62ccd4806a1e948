import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type KindWindows, type SetKindWindowsInput, setKindWindowsInput } from "#server/contracts/sharing.ts";
import { kindWindows } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { raiseCalendarVersion } from "#server/services/calendar/version.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { readKindWindows } from "./read-kind-windows.ts";

/** Replaces the calendar of a GPU type: "interactive by day, batch by night". What runs goes on to its end. */
export async function setKindWindows(ctx: Context, raw: SetKindWindowsInput): Promise<KindWindows> {
  authorize(ctx.principal, "gpu-type.set-windows");
  const { gpuType, windows, version: seen } = parse(setKindWindowsInput, raw);
  return await inTransaction(ctx, async (tx) => {
    await lockGpuType(tx.db, gpuType);
    const { windows: before } = await readKindWindows(tx, { gpuType });
    await raiseCalendarVersion(tx.db, { gpuType }, seen);
    await tx.db.delete(kindWindows).where(eq(kindWindows.gpuType, gpuType));
    if (windows.length > 0) {
      await tx.db.insert(kindWindows).values(windows.map((window) => ({ id: newId("win"), gpuType, ...window })));
    }
    await audit(tx, { action: "gpu-type.set-windows", subject: gpuType, detail: { windows, before } });
    await notify(tx.db, "pool", gpuType);
    return await readKindWindows(tx, { gpuType });
  });
}
