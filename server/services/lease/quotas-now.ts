import { and, asc, eq, inArray } from "drizzle-orm";
import type { UserPrincipal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseBoard, TeamQuotaNow } from "#server/contracts/lease-board.ts";
import { gpuPrices, quotas, teams } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { fitsNow } from "#server/scheduler/fits-now.ts";
import { roomOf } from "#server/scheduler/room.ts";
import { guaranteedNow, usedBy } from "#server/scheduler/share.ts";
import type { World } from "#server/scheduler/types.ts";
import { averageHours } from "#server/services/cost/average-hour.ts";
import { loadWorld } from "./world.ts";

type QuotasNow = Pick<LeaseBoard, "currency" | "quotas"> & {
  /** Of types that are priced by the month: what an hour costs on average of this month. */
  averageMicro: ReadonlyMap<string, number>;
};

/** What a person's teams may get now, without who waits: the launch form reads it. */
export async function quotasNow(ctx: Context): Promise<QuotasNow> {
  authorize(ctx.principal, "lease.list");
  const person = ctx.principal;
  if (person.kind !== "user") throw new SluiceError("forbidden", "Only a person has quotas to look at.");
  const mine = await readQuotas(ctx, person);
  const types = [...new Set(mine.map(({ gpuType }) => gpuType))];
  const [worlds, averageMicro] = await Promise.all([
    Promise.all(types.map((gpuType) => loadWorld(ctx.db, gpuType, ctx.now()))),
    averageHours(ctx, types),
  ]);
  return { currency: env().SLUICE_CURRENCY, quotas: quotasIn(mine, worlds, person), averageMicro };
}

type QuotaRow = Pick<TeamQuotaNow, "teamId" | "teamName" | "gpuType" | "guaranteedMilli" | "limitMilli" | "hourMicro">;

/** The quotas of a person's teams. */
export async function readQuotas(ctx: Context, person: UserPrincipal): Promise<QuotaRow[]> {
  const own = Object.keys(person.teams);
  if (own.length === 0) return [];
  return await ctx.db
    .select({
      teamId: quotas.teamId,
      teamName: teams.name,
      gpuType: quotas.gpuType,
      guaranteedMilli: quotas.guaranteedMilli,
      limitMilli: quotas.limitMilli,
      hourMicro: gpuPrices.micro,
    })
    .from(quotas)
    .innerJoin(teams, eq(teams.id, quotas.teamId))
    .leftJoin(gpuPrices, and(eq(gpuPrices.gpuType, quotas.gpuType), eq(gpuPrices.basis, "hour")))
    .where(inArray(quotas.teamId, own))
    .orderBy(asc(teams.name), asc(quotas.gpuType));
}

/** Quotas with what may still be got of the worlds of their types. */
export function quotasIn(mine: QuotaRow[], worlds: World[], person: UserPrincipal): TeamQuotaNow[] {
  const worldOf = new Map(worlds.map((world) => [world.gpuType, world]));
  return mine.flatMap((quota) => {
    const world = worldOf.get(quota.gpuType);
    return world === undefined ? [] : [quotaNow(quota, world, person)];
  });
}

function quotaNow(quota: QuotaRow, world: World, person: UserPrincipal): TeamQuotaNow {
  const open = world.devices.filter((device) => device.state === "open");
  const rooms = [...roomOf(open, world.holdings).values()];
  const usedMilli = usedBy(quota.teamId, world);
  const guaranteedNowMilli = guaranteedNow(quota.teamId, world);
  return {
    ...quota,
    guaranteedNowMilli,
    usedMilli,
    borrowedMilli: Math.max(0, usedMilli - guaranteedNowMilli),
    atOnceMilli: fitsNow(
      { requestId: "asked-now", teamId: quota.teamId, userId: person.userId, who: person.name, guaranteedOnly: false },
      world,
    ),
    capacityMilli: open.length * 1000,
    freeMilli: rooms.reduce((sum, room) => sum + Math.max(0, room.freeMilli), 0),
    deviceMemoryBytes: Math.max(0, ...open.map(({ memoryBytes }) => memoryBytes)),
    queued: world.queue.length,
  };
}
