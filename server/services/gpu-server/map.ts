import { asc, eq, ne, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { type PoolMap, type PoolMapInput, type PoolMapServer, poolMapInput } from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leases, teams, users, workspaces } from "#server/db/schema/index.ts";
import { pageOf } from "#server/page-of.ts";
import { parse } from "#server/parse.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import { computePercent, devicePercent, recentGpuTime } from "#server/services/lease/usage.ts";
import { readServers } from "./list.ts";
import { type PoolSight, poolSight } from "./pool-sight.ts";
import { poolState } from "./pool-state.ts";
import { queuedByType } from "./queued.ts";
import { strandedNow } from "./stranded-now.ts";
import { teamHolds } from "./team-holds.ts";

/** A lease that has done no GPU work for this long is held idle. */
const IDLE_MS = 5 * 60_000;

/**
 * The pool at a glance: figures by type, and a short record of each device under its server. A thousand devices fit on a
 * page this way; who holds what of a device is told by `devices`, who waits by `queue`.
 */
export async function map(ctx: Context, raw: PoolMapInput = {}): Promise<PoolMap> {
  const input = parse(poolMapInput, raw);
  const { servers, textOf, ...rest } = await readPool(ctx, poolSight(ctx));
  const page = pageOf(servers, textOf, input);
  return { ...rest, servers: page.rows, serverCount: page.total, next: page.next };
}

/** All of the pool as somebody sees it, and the words by which a server is found. */
export async function readPool(ctx: Context, sees: PoolSight) {
  const [servers, deviceRows, live, queued, stranded] = await Promise.all([
    readServers(ctx),
    readDeviceRows(ctx),
    readHeld(ctx),
    queuedByType(ctx.db),
    strandedNow(ctx.db, ctx.now()),
  ]);
  const byDevice = Map.groupBy(live, (lease) => lease.gpuId);
  const devices = deviceRows.map(({ serverState, state, drainedAt, ...device }) => {
    const held = byDevice.get(device.id) ?? [];
    return {
      ...device,
      state: poolState({ state, drainedAt }, serverState),
      leasedMilli: total(held),
      idleHeldMilli: total(held.filter((lease) => lease.idle)),
      computePercent: devicePercent(held),
    };
  });
  const byServer = Map.groupBy(devices, (device) => device.serverId);
  const rows = servers.map((server): PoolMapServer => {
    const own = byServer.get(server.id) ?? [];
    const held = teamHolds(own.flatMap((device) => byDevice.get(device.id) ?? []));
    return {
      ...server,
      teams: held.map(({ teamId, milli }) => ({ teamId, milli })),
      devices: own.map(({ serverId: _, ...device }) => device),
    };
  });
  const holders = (server: PoolMapServer) =>
    server.devices
      .flatMap((device) => byDevice.get(device.id) ?? [])
      .map((lease) => (sees(lease.teamId) ? `${lease.teamName} ${lease.names}` : lease.teamName));
  const textOf = (server: PoolMapServer) =>
    [
      ...[server.name, server.state, server.zone ?? "", server.dataAddress ?? ""],
      ...server.devices.map((device) => `${device.name} ${device.gpuType} ${device.kind} ${device.state}`),
      ...holders(server),
    ].join(" ");
  return {
    totals: [...stranded].map(([gpuType, strandedMilli]) => {
      const ofType = devices.filter((device) => device.gpuType === gpuType);
      const held = live.filter((lease) => lease.gpuType === gpuType);
      return {
        gpuType,
        devices: ofType.length,
        lostDevices: ofType.filter((device) => device.state === "lost").length,
        capacityMilli: ofType.filter((device) => device.state === "active").length * WHOLE,
        leasedMilli: total(held),
        idleHeldMilli: total(held.filter((lease) => lease.idle)),
        leasedMemoryBytes: held.reduce((sum, lease) => sum + lease.memoryBytes, 0),
        usedMemoryBytes: held.reduce((sum, lease) => sum + lease.usedMemoryBytes, 0),
        queued: queued.get(gpuType) ?? 0,
        strandedMilli,
      };
    }),
    teams: teamHolds(live),
    servers: rows,
    textOf,
  };
}

const total = (leases: { milli: number }[]) => leases.reduce((sum, lease) => sum + lease.milli, 0);

async function readDeviceRows(ctx: Context) {
  return await ctx.db
    .select({
      ...{ id: gpus.id, name: gpus.name, gpuType: gpus.gpuType, kind: gpus.kind, serverId: gpus.serverId },
      ...{ state: gpus.state, drainedAt: gpus.drainedAt, serverState: gpuServers.state },
    })
    .from(gpus)
    .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
    .where(ne(gpuServers.state, "removed"))
    .orderBy(sql`length(${gpus.name})`, asc(gpus.name));
}

/** Every lease that still counts, as far as figures and a search need it. */
async function readHeld(ctx: Context) {
  const now = ctx.now();
  const rows = await ctx.db
    .select({
      ...{ id: leases.id, gpuId: leases.gpuId, gpuType: leases.gpuType, milli: leases.milli },
      ...{ memoryBytes: leases.memoryBytes, usedMemoryBytes: leases.usedMemoryBytes },
      ...{ grantedAt: leases.grantedAt, usageAt: leases.usageAt },
      ...{ teamId: leases.teamId, userName: users.name, teamName: teams.name, workspaceName: workspaces.name },
    })
    .from(leases)
    .innerJoin(users, eq(users.id, leases.userId))
    .innerJoin(teams, eq(teams.id, leases.teamId))
    .leftJoin(workspaces, eq(workspaces.id, leases.workspaceId))
    .where(ne(leases.state, "ended"));
  const times = await recentGpuTime(
    ctx.db,
    rows.map((lease) => lease.id),
    now,
  );
  return rows.map(({ id, grantedAt, usageAt, userName, workspaceName, ...lease }) => ({
    ...lease,
    computePercent: computePercent(times.get(id) ?? 0, lease.milli, grantedAt, now),
    idle: now.getTime() - (usageAt ?? grantedAt).getTime() >= IDLE_MS,
    /** Of the person and the workspace. */
    names: `${userName} ${workspaceName ?? ""}`,
  }));
}
