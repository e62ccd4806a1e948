import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type QuotaWindows, type SetQuotaWindowsInput, setQuotaWindowsInput } from "#server/contracts/sharing.ts";
import { quotas, quotaWindows } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { inTwo } from "#server/scheduler/calendar.ts";
import { raiseCalendarVersion } from "#server/services/calendar/version.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { readQuotaWindows } from "./read-quota-windows.ts";
import { refuseUnpackable } from "./refuse-unpackable.ts";

/** Replaces the calendar of a quota; refused when the guarantees do not fit the devices at one of its breakpoints. */
export async function setQuotaWindows(ctx: Context, raw: SetQuotaWindowsInput): Promise<QuotaWindows> {
  authorize(ctx.principal, "team.set-quota");
  const { teamId, gpuType, windows, version: seen } = parse(setQuotaWindowsInput, raw);
  if (windows.some((window) => window.limitMilli < window.guaranteedMilli)) {
    throw new SluiceError("invalid", "windows: The limit is at least the guaranteed amount.");
  }
  if (inTwo(windows.map(({ fromMinute, toMinute }) => ({ from: fromMinute, to: toMinute }))) !== undefined) {
    throw new SluiceError("invalid", "windows: Two entries hold at the same time. Remove one, or make them meet.");
  }
  return await inTransaction(ctx, async (tx) => {
    await lockGpuType(tx.db, gpuType);
    const ofQuota = and(eq(quotaWindows.teamId, teamId), eq(quotaWindows.gpuType, gpuType));
    const [quota] = await tx.db
      .select({ teamId: quotas.teamId })
      .from(quotas)
      .where(and(eq(quotas.teamId, teamId), eq(quotas.gpuType, gpuType)));
    if (quota === undefined) throw new SluiceError("not-found", `The team has no quota for ${gpuType}. Set one first.`);
    const { windows: before } = await readQuotaWindows(tx, { teamId, gpuType });
    await raiseCalendarVersion(tx.db, { gpuType, teamId }, seen);
    await tx.db.delete(quotaWindows).where(ofQuota);
    if (windows.length > 0) {
      await tx.db
        .insert(quotaWindows)
        .values(windows.map((window) => ({ id: newId("win"), teamId, gpuType, ...window })));
    }
    await refuseUnpackable(tx, gpuType);
    await audit(tx, {
      action: "team.set-quota-windows",
      subject: teamId,
      teamId,
      detail: { gpuType, windows, before },
    });
    await notify(tx.db, "pool", teamId);
    return await readQuotaWindows(tx, { teamId, gpuType });
  });
}
