import { and, asc, eq, inArray, ne, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import {
  type GpuServerInput,
  gpuServerInput,
  type LeaseListItem,
  type PoolDevice,
  type PoolDeviceList,
} from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { leaseItems } from "#server/services/lease/list.ts";
import { devicePercent } from "#server/services/lease/usage.ts";
import { findServer } from "./find.ts";
import { type PoolSight, poolSight } from "./pool-sight.ts";
import { poolState } from "./pool-state.ts";
import { teamHolds } from "./team-holds.ts";

/** The devices of a GPU server with who holds what of them. */
export async function devices(ctx: Context, raw: GpuServerInput): Promise<PoolDeviceList> {
  const { serverId } = parse(gpuServerInput, raw);
  const sees = poolSight(ctx);
  await findServer(ctx, serverId);
  return { devices: await readDevices(ctx, sees, [serverId]) };
}

/** Devices with their leases, of these servers or of all, as somebody sees them. */
export async function readDevices(ctx: Context, sees: PoolSight, serverIds?: readonly string[]): Promise<PoolDevice[]> {
  if (serverIds?.length === 0) return [];
  const onThem = serverIds === undefined ? undefined : inArray(leases.serverId, [...serverIds]);
  const [rows, live] = await Promise.all([
    ctx.db
      .select({
        ...{ id: gpus.id, uuid: gpus.uuid, name: gpus.name, gpuType: gpus.gpuType, model: gpus.model },
        ...{ computeCapability: gpus.computeCapability, memoryBytes: gpus.memoryBytes, kind: gpus.kind },
        ...{ linkGroup: gpus.linkGroup, state: gpus.state, drainedAt: gpus.drainedAt },
        ...{ serverId: gpuServers.id, serverName: gpuServers.name, serverState: gpuServers.state },
      })
      .from(gpus)
      .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
      .where(
        and(
          ne(gpuServers.state, "removed"),
          serverIds === undefined ? undefined : inArray(gpus.serverId, [...serverIds]),
        ),
      )
      .orderBy(asc(gpuServers.createdAt), sql`length(${gpus.name})`, asc(gpus.name)),
    leaseItems(ctx, and(ne(leases.state, "ended"), onThem), 10_000),
  ]);
  const byDevice = Map.groupBy(live, (lease) => lease.gpuId);
  return rows.map(({ serverState, state, drainedAt, ...device }) => ({
    ...device,
    state: poolState({ state, drainedAt }, serverState),
    drained: drainedAt !== null,
    ...heldOf(byDevice.get(device.id) ?? [], sees),
  }));
}

function heldOf(held: LeaseListItem[], sees: PoolSight) {
  const sum = (pick: (lease: LeaseListItem) => number) => held.reduce((all, lease) => all + pick(lease), 0);
  return {
    leasedMilli: sum((lease) => lease.milli),
    leasedMemoryBytes: sum((lease) => lease.memoryBytes),
    usedMemoryBytes: sum((lease) => lease.usedMemoryBytes),
    computePercent: devicePercent(held),
    teams: teamHolds(held),
    leases: held.filter((lease) => sees(lease.teamId)),
  };
}
