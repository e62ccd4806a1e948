import { and, asc, eq, inArray, ne, or } from "drizzle-orm";
import type { UserPrincipal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseBoard, TeamQuotaNow } from "#server/contracts/lease-board.ts";
import { gpuPrices, leaseRequests, leases, quotas, teams } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { fitsNow } from "#server/scheduler/fits-now.ts";
import { roomOf } from "#server/scheduler/room.ts";
import { guaranteedNow, usedBy } from "#server/scheduler/share.ts";
import type { Waiting, World } from "#server/scheduler/types.ts";
import { leaseItems } from "./list.ts";
import { waitingIn } from "./waiting.ts";
import { loadWorld } from "./world.ts";

/**
 * What a person holds, waits for and may get: the GPUs page and the launch form read it. Of what waits an admin sees all,
 * unless only what is the person's and their teams' is asked for.
 */
export async function board(ctx: Context, whose: "seen" | "teams" = "seen"): Promise<LeaseBoard> {
  authorize(ctx.principal, "lease.list");
  if (ctx.principal.kind !== "user") throw new SluiceError("forbidden", "Only a person has leases to look at.");
  const person = ctx.principal;
  const live = and(eq(leases.userId, person.userId), ne(leases.state, "ended"));
  const [held, mine] = await Promise.all([leaseItems(ctx, live), readQuotas(ctx, person)]);
  const types = new Set(mine.map((quota) => quota.gpuType));
  const seesAll = person.isAdmin && whose === "seen";
  for (const gpuType of await typesWaitedFor(ctx, person, seesAll)) types.add(gpuType);
  const worlds = await Promise.all([...types].map((gpuType) => loadWorld(ctx.db, gpuType, ctx.now())));
  const isSeen = ({ userId, teamId }: Waiting) =>
    seesAll || userId === person.userId || person.teams[teamId] !== undefined;
  const requests = await Promise.all(worlds.map((world) => waitingIn(ctx, person, world, isSeen)));
  const worldOf = new Map(worlds.map((world) => [world.gpuType, world]));
  return {
    currency: env().SLUICE_CURRENCY,
    leases: held,
    requests: requests.flat(),
    quotas: mine.flatMap((quota) => {
      const world = worldOf.get(quota.gpuType);
      return world === undefined ? [] : [nowOf(quota, world, person)];
    }),
  };
}

/** The types for which somebody waits whose request is shown: no other world has to be loaded for the queue. */
async function typesWaitedFor(ctx: Context, person: UserPrincipal, seesAll: boolean): Promise<string[]> {
  const own = eq(leaseRequests.userId, person.userId);
  const seen = seesAll ? undefined : or(own, inArray(leaseRequests.teamId, Object.keys(person.teams)));
  const rows = await ctx.db
    .selectDistinct({ gpuType: leaseRequests.gpuType })
    .from(leaseRequests)
    .where(and(eq(leaseRequests.state, "queued"), seen));
  return rows.map(({ gpuType }) => gpuType);
}

type QuotaRow = Pick<TeamQuotaNow, "teamId" | "teamName" | "gpuType" | "guaranteedMilli" | "limitMilli" | "hourMicro">;

async function readQuotas(ctx: Context, person: UserPrincipal): Promise<QuotaRow[]> {
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

function nowOf(quota: QuotaRow, world: World, person: UserPrincipal): TeamQuotaNow {
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
    queued: world.queue.length,
  };
}
