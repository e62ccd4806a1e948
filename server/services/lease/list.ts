import { and, desc, eq, inArray, ne, or, type SQL, sql } from "drizzle-orm";
import type { Principal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import {
  type LeaseListItem,
  type LeasePage,
  type ListLeasesInput,
  listLeasesInput,
} from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leases, leaseWork, teams, users, workspaces } from "#server/db/schema/index.ts";
import { refuseUnknownPlace } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { leavesWithServer } from "./holder.ts";
import { computePercent, recentGpuTime, runningOf } from "./usage.ts";

/** As many are read at once for a file. */
const CHUNK = 500;

/**
 * Leases that the asker may see: an admin all, others their own and those of teams that they lead. Latest first, a page at a
 * time.
 */
export async function list(ctx: Context, raw: ListLeasesInput = {}): Promise<LeasePage> {
  const input = parse(listLeasesInput, raw);
  authorize(ctx.principal, "lease.list");
  const which =
    input.which === "live"
      ? ne(leases.state, "ended")
      : input.which === "ended"
        ? eq(leases.state, "ended")
        : undefined;
  const matching = and(
    which,
    visibleTo(ctx.principal),
    input.teamId === undefined ? undefined : eq(leases.teamId, input.teamId),
    input.workspaceId === undefined ? undefined : eq(leases.workspaceId, input.workspaceId),
  );
  const [rows, total] = await Promise.all([
    leaseItems(ctx, and(matching, input.after === undefined ? undefined : isAfter(input.after)), input.limit + 1),
    ctx.db.$count(leases, matching),
  ]);
  const row = (id: string) => and(visibleTo(ctx.principal), eq(leases.id, id));
  await refuseUnknownPlace(ctx, rows, { after: input.after, table: leases, row });
  const page = rows.slice(0, input.limit);
  return { leases: page, total, next: rows.length > input.limit ? (page.at(-1)?.id ?? null) : null };
}

/** All that match, latest first, read a part at a time. */
export async function* listAll(ctx: Context, input: ListLeasesInput): AsyncGenerator<LeaseListItem> {
  for (let after: string | null | undefined; after !== null; ) {
    const page: LeasePage = await list(ctx, { ...input, limit: CHUNK, after });
    yield* page.leases;
    after = page.next;
  }
}

/** Behind a lease in the order of the list: by its own place, so that those that are granted meanwhile move nothing. */
const isAfter = (id: string): SQL =>
  sql`(${leases.grantedAt}, ${leases.id}) < (select granted_at, id from leases where id = ${id})`;

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
    .orderBy(desc(leases.grantedAt), desc(leases.id))
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
    leavesWithServer: lease.state !== "ended" && leavesWithServer(lease),
  }));
}
