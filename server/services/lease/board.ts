import { and, asc, eq, inArray, ne } from "drizzle-orm";
import type { UserPrincipal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseBoard, TeamQuotaNow, WaitingRequest } from "#server/contracts/lease-board.ts";
import { gpuPrices, leaseRequests, leases, quotas, teams, users, workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { estimate } from "#server/scheduler/estimate.ts";
import { fitsNow } from "#server/scheduler/fits-now.ts";
import { judged } from "#server/scheduler/queue.ts";
import { explain } from "#server/scheduler/reasons.ts";
import { roomOf } from "#server/scheduler/room.ts";
import { seenBy } from "#server/scheduler/seen-by.ts";
import { guaranteedNow, usedBy } from "#server/scheduler/share.ts";
import type { World } from "#server/scheduler/types.ts";
import { leaseItems } from "./list.ts";
import { readerOf } from "./reader.ts";
import { loadWorld } from "./world.ts";

/** What a person holds, waits for and may get: the GPUs page, the pill in the top bar, and the launch form read it. */
export async function board(ctx: Context): Promise<LeaseBoard> {
  authorize(ctx.principal, "lease.list");
  if (ctx.principal.kind !== "user") throw new SluiceError("forbidden", "Only a person has leases to look at.");
  const person = ctx.principal;
  const live = and(eq(leases.userId, person.userId), ne(leases.state, "ended"));
  const [held, mine] = await Promise.all([leaseItems(ctx, live), readQuotas(ctx, person)]);
  const types = new Set(mine.map((quota) => quota.gpuType));
  const waiting = await ctx.db
    .selectDistinct({ gpuType: leaseRequests.gpuType })
    .from(leaseRequests)
    .where(eq(leaseRequests.state, "queued"));
  for (const { gpuType } of waiting) types.add(gpuType);
  const worlds = await Promise.all([...types].map((gpuType) => loadWorld(ctx.db, gpuType, ctx.now())));
  const requests = await Promise.all(worlds.map((world) => waitingIn(ctx, person, world)));
  return {
    currency: env().SLUICE_CURRENCY,
    leases: held,
    requests: requests.flat(),
    quotas: mine.flatMap((quota) => {
      const world = worlds.find((each) => each.gpuType === quota.gpuType);
      return world === undefined ? [] : [nowOf(quota, world, person)];
    }),
  };
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

/** The queue of one type, as far as the person may see it, each with its place and reason. */
async function waitingIn(ctx: Context, person: UserPrincipal, read: World): Promise<WaitingRequest[]> {
  const seen = read.queue.filter(
    (request) => person.isAdmin || request.userId === person.userId || person.teams[request.teamId] !== undefined,
  );
  if (seen.length === 0) return [];
  const { world, verdicts } = judged(read);
  const rows = await ctx.db
    .select({ request: leaseRequests, teamName: teams.name, userName: users.name, workspaceName: workspaces.name })
    .from(leaseRequests)
    .innerJoin(teams, eq(teams.id, leaseRequests.teamId))
    .innerJoin(users, eq(users.id, leaseRequests.userId))
    .innerJoin(workspaces, eq(workspaces.id, leaseRequests.workspaceId))
    .where(
      and(
        eq(leaseRequests.state, "queued"),
        inArray(
          leaseRequests.id,
          seen.map((request) => request.requestId),
        ),
      ),
    )
    .orderBy(asc(leaseRequests.createdAt));
  return rows.flatMap(({ request, teamName, userName, workspaceName }) => {
    const verdict = verdicts.find((each) => each.requestId === request.id);
    const asked = world.queue.find((each) => each.requestId === request.id);
    if (verdict?.state !== "queued" || asked === undefined) return [];
    return [
      {
        requestId: request.id,
        gpuType: request.gpuType,
        milli: request.milli,
        position: verdict.position,
        of: verdict.of,
        teamId: request.teamId,
        teamName,
        userId: request.userId,
        userName,
        workspaceId: request.workspaceId,
        workspaceName,
        label: request.owner.label ?? null,
        reason: explain(asked, verdict.obstacle, seenBy(readerOf(ctx), world)),
        waitingSince: request.createdAt.toISOString(),
        likelySeconds: estimate(request.id, world, verdicts)?.likely ?? null,
      },
    ];
  });
}
