import { inArray, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { gpuPrices, teams } from "#server/db/schema/index.ts";
import type { Time } from "#server/scheduler/simulate/outcome.ts";
import { deviceFrom } from "#server/services/lease/world-devices.ts";
import { readRowsOfNobody } from "#server/services/lease/world-rows.ts";
import type { ReplayInput } from "./replay.ts";

/** The pool of now as a replay of that time needs it; reservations and additions are those of that time. */
export type Present = Pick<ReplayInput, "gpuType" | "devices" | "rules" | "gpusThen" | "price">;

export async function readPresent(ctx: Context, gpuTypes: readonly string[], time: Time): Promise<Present[]> {
  const [prices, then] = await Promise.all([
    ctx.db
      .select()
      .from(gpuPrices)
      .where(inArray(gpuPrices.gpuType, [...gpuTypes])),
    gpusThen(ctx, time),
  ]);
  return await Promise.all(
    gpuTypes.map(async (gpuType): Promise<Present> => {
      const rows = await readRowsOfNobody(ctx.db, gpuType, new Date(time.from));
      const devices = rows.devices.map(deviceFrom).filter(({ state }) => state !== "gone");
      const { timeZone, windows, additions, reservations, kinds } = rows;
      // What was used of late changes all the time, and is not asked for.
      const quotas = rows.quotas.map((quota) => ({ ...quota, usage: null, usageAt: null, spentMilliHours: null }));
      const price = prices.find((one) => one.gpuType === gpuType);
      return {
        gpuType,
        devices,
        rules: { timeZone, quotas, windows, additions, reservations, kinds },
        gpusThen: then.get(gpuType) ?? devices.length,
        price: price && { basis: price.basis, micro: price.micro },
      };
    }),
  );
}

/** GPUs in the pool on average, whatever state they were in. */
async function gpusThen(ctx: Context, { from, to }: Time): Promise<Map<string, number>> {
  const [start, end] = [from, to].map((at) => sql`${new Date(at).toISOString()}::timestamptz`);
  const rows = await ctx.db.execute<{ type: string; gpus: number }>(sql`
    select g.gpu_type as type, (sum(extract(epoch from
      least(coalesce(d.ended_at, 'infinity'), ${end}) - greatest(d.started_at, ${start}))) * 1000 / ${to - from})::float8 as gpus
    from device_intervals d join gpus g on g.id = d.gpu_id
    where d.started_at < ${end} and coalesce(d.ended_at, 'infinity') > ${start} group by 1`);
  return new Map(rows.map(({ type, gpus }) => [type, gpus]));
}

export async function readTeamNames(ctx: Context): Promise<Map<string, string>> {
  const rows = await ctx.db.select({ id: teams.id, name: teams.name }).from(teams);
  return new Map(rows.map(({ id, name }) => [id, name]));
}
