import { and, asc, eq, gt, inArray, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type DrainEffects, type DrainEffectsInput, drainEffectsInput } from "#server/contracts/gpu-server.ts";
import { gpus, leases } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import { type Room, roomOf } from "#server/scheduler/room.ts";
import { leaseItems } from "#server/services/lease/list.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { findDevice, findServer } from "./find.ts";

/** As many leases are told one by one. */
const MOST = 200;

/** Whom a drain of a server, or of one device, concerns: who holds what there, whose memory is parked there, what is left. */
export async function drainEffects(ctx: Context, raw: DrainEffectsInput): Promise<DrainEffects> {
  const input = parse(drainEffectsInput, raw);
  authorize(ctx.principal, "gpu-server.drain");
  const devices = await devicesOf(ctx, input);
  const ids = devices.map(({ id }) => id);
  const there = inArray(leases.gpuId, ids);
  const holds = and(there, ne(leases.state, "ended"));
  const [leaseCount, held, parked, types] = await Promise.all([
    ctx.db.$count(leases, holds),
    leaseItems(ctx, holds, MOST),
    leaseItems(ctx, and(there, eq(leases.state, "ended"), gt(leases.parkedBytes, 0)), MOST),
    Promise.all([...new Set(devices.map(({ gpuType }) => gpuType))].sort().map((type) => leftOf(ctx, type, ids))),
  ]);
  const roomsOf = new Map(types.map(({ left, rooms }) => [left.gpuType, rooms]));
  const fitsElsewhere = ({ gpuType, milli, memoryBytes }: (typeof held)[number]) =>
    (roomsOf.get(gpuType) ?? []).some((room) => milli <= room.freeMilli && memoryBytes <= room.freeBytes);
  return {
    leaseCount,
    leases: held.map((lease) => ({
      ...{ id: lease.id, gpuType: lease.gpuType, milli: lease.milli, usedMemoryBytes: lease.usedMemoryBytes },
      ...{ userName: lease.userName, teamName: lease.teamName, workspaceName: lease.workspaceName },
      ...{ expiresAt: lease.expiresAt, fitsElsewhere: fitsElsewhere(lease) },
    })),
    parked: parked.map(({ id, userName, teamName, workspaceName, parkedBytes }) => {
      return { id, userName, teamName, workspaceName, parkedBytes };
    }),
    types: types.map(({ left }) => left),
  };
}

async function devicesOf(ctx: Context, input: DrainEffectsInput): Promise<{ id: string; gpuType: string }[]> {
  if ("gpuId" in input) return [(await findDevice(ctx, input.gpuId)).device];
  const server = await findServer(ctx, input.serverId);
  const { id, gpuType } = gpus;
  return await ctx.db.select({ id, gpuType }).from(gpus).where(eq(gpus.serverId, server.id)).orderBy(asc(gpus.name));
}

/** What takes leases of a type now and would then, and what would be free on each device that is left. */
async function leftOf(
  ctx: Context,
  gpuType: string,
  drained: readonly string[],
): Promise<{ left: DrainEffects["types"][number]; rooms: Room[] }> {
  const world = await loadWorld(ctx.db, gpuType, ctx.now());
  const open = world.devices.filter((device) => device.state === "open");
  const staying = open.filter((device) => !drained.includes(device.id));
  const rooms = [...roomOf(staying, world.holdings).values()];
  const guaranteed = [...world.quotas.values()].reduce((sum, quota) => sum + quota.guaranteedMilli, 0);
  const left = {
    gpuType,
    openMilli: { before: open.length * WHOLE, after: staying.length * WHOLE },
    guaranteedMilli: guaranteed,
    largestFreeMilli: Math.max(0, ...rooms.map((room) => room.freeMilli)),
  };
  return { left, rooms };
}
