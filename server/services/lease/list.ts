import { and, desc, eq, inArray, ne, or, type SQL, sql } from "drizzle-orm";
import type { Principal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import {
  type LeaseList,
  type LeaseListItem,
  type ListLeasesInput,
  listLeasesInput,
} from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leases, leaseWork, teams, users, workspaces } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { computePercent, recentGpuTime, runningOf } from "./usage.ts";

/** Leases that the asker may see: an admin all, others their own and those of teams that they lead. */
export async function list(ctx: Context, raw: ListLeasesInput = {}): Promise<LeaseList> {
  const input = parse(listLeasesInput, raw);
  authorize(ctx.principal, "lease.list");
  const which =
    input.which === "live"
      ? ne(leases.state, "ended")
      : input.which === "ended"
        ? eq(leases.state, "ended")
        : undefined;
  const filter = and(
    which,
    visibleTo(ctx.principal),
    input.teamId === undefined ? undefined : eq(leases.teamId, input.teamId),
    input.workspaceId === undefined ? undefined : eq(leases.workspaceId, input.workspaceId),
  );
  return { leases: await leaseItems(ctx, filter, input.limit) };
}

function visibleTo(principal: Principal): SQL | undefined {
  if (principal.kind !== "user" || principal.isAdmin) return undefined;
  const led = Object.entries(principal.teams)
    .filter(([, role]) => role === "lead")
    .map(([teamId]) => teamId);
  const own = eq(leases.userId, principal.userId);
  return led.length === 0 ? own : or(own, inArray(leases.teamId, led));
}

/** How much was delivered of what was promised, report by report. */
const keptUs = sql`(select coalesce(sum(${leaseWork.deliveredUs}), 0) from ${leaseWork} where ${leaseWork.leaseId} = ${leases.id})`;

/** Leases with the names that people know them by, latest first. The caller has authorised what it shows. */
export async function leaseItems(ctx: Context, filter: SQL | undefined, limit = 500): Promise<LeaseListItem[]> {
  const now = ctx.now();
  const rows = await ctx.db
    .select({
      lease: leases,
      deviceName: gpus.name,
      serverName: gpuServers.name,
      teamName: teams.name,
      userName: users.name,
      workspaceName: workspaces.name,
      keptUs: keptUs.mapWith(Number),
    })
    .from(leases)
    .innerJoin(gpus, eq(gpus.id, leases.gpuId))
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .innerJoin(teams, eq(teams.id, leases.teamId))
    .innerJoin(users, eq(users.id, leases.userId))
    .leftJoin(workspaces, eq(workspaces.id, leases.workspaceId))
    .where(filter)
    .orderBy(desc(leases.grantedAt))
    .limit(limit);
  const live = rows.filter(({ lease }) => lease.state !== "ended").map(({ lease }) => lease.id);
  const gpuTimes = await recentGpuTime(ctx.db, live, now);
  return rows.map(({ lease, workspaceName, keptUs, ...names }) => ({
    id: lease.id,
    state: lease.state,
    gpuType: lease.gpuType,
    milli: lease.milli,
    memoryBytes: lease.memoryBytes,
    borrowed: lease.borrowed === 1,
    gpuId: lease.gpuId,
    serverId: lease.serverId,
    teamId: lease.teamId,
    userId: lease.userId,
    workspaceId: lease.workspaceId,
    workspaceName: workspaceName ?? lease.workspaceId,
    ...names,
    owner: lease.owner,
    usedMemoryBytes: lease.usedMemoryBytes,
    parkedBytes: lease.parkedBytes,
    gpuTimeUs: lease.gpuTimeUs,
    deliveredUs: lease.deliveredUs,
    promisedUs: lease.promisedUs,
    deviationUs: Math.max(0, lease.deliveredUs + lease.promisedUs - 2 * keptUs),
    running: runningOf(lease),
    computePercent: computePercent(gpuTimes.get(lease.id) ?? 0, lease.milli, lease.grantedAt, now),
    grantedAt: lease.grantedAt.toISOString(),
    claimedAt: lease.claimedAt?.toISOString() ?? null,
    expiresAt: lease.expiresAt.toISOString(),
    lastWorkAt: lease.usageAt?.toISOString() ?? null,
    endedAt: lease.endedAt?.toISOString() ?? null,
    endReason: lease.endReason,
    endNote: lease.endNote,
    releaseAt: lease.state === "ended" ? null : (lease.releaseAt?.toISOString() ?? null),
  }));
}
