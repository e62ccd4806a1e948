import { and, asc, eq, gt, inArray, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type DrainEffects, type DrainEffectsInput, drainEffectsInput } from "#server/contracts/gpu-server.ts";
import { gpus, leases } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
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
  const [held, parked, types] = await Promise.all([
    leaseItems(ctx, and(there, ne(leases.state, "ended")), MOST),
    leaseItems(ctx, and(there, eq(leases.state, "ended"), gt(leases.parkedBytes, 0)), MOST),
    Promise.all([...new Set(devices.map(({ gpuType }) => gpuType))].sort().map((type) => leftOf(ctx, type, ids))),
  ]);
  const roomOf = new Map(types.map(({ gpuType, largestFreeMilli }) => [gpuType, largestFreeMilli]));
  return {
    leases: held.map((lease) => ({
      ...{ id: lease.id, gpuType: lease.gpuType, milli: lease.milli, usedMemoryBytes: lease.usedMemoryBytes },
      ...{ userName: lease.userName, teamName: lease.teamName, workspaceName: lease.workspaceName },
      ...{ expiresAt: lease.expiresAt, fitsElsewhere: lease.milli <= (roomOf.get(lease.gpuType) ?? 0) },
    })),
    parked: parked.map(({ id, userName, teamName, workspaceName, parkedBytes }) => {
      return { id, userName, teamName, workspaceName, parkedBytes };
    }),
    types,
  };
}

async function devicesOf(ctx: Context, input: DrainEffectsInput): Promise<{ id: string; gpuType: string }[]> {
  if ("gpuId" in input) return [(await findDevice(ctx, input.gpuId)).device];
  const server = await findServer(ctx, input.serverId);
  const { id, gpuType } = gpus;
  return await ctx.db.select({ id, gpuType }).from(gpus).where(eq(gpus.serverId, server.id)).orderBy(asc(gpus.name));
}

/** What takes leases of a type now and would then, and the largest free piece that would be left. */
async function leftOf(
  ctx: Context,
  gpuType: string,
  drained: readonly string[],
): Promise<DrainEffects["types"][number]> {
  const world = await loadWorld(ctx.db, gpuType, ctx.now());
  const open = world.devices.filter((device) => device.state === "open");
  const left = open.filter((device) => !drained.includes(device.id));
  const heldOn = (id: string) =>
    world.holdings.reduce((sum, holding) => sum + (holding.gpuId === id ? holding.milli : 0), 0);
  const guaranteed = [...world.quotas.values()].reduce((sum, quota) => sum + quota.guaranteedMilli, 0);
  return {
    gpuType,
    openMilli: { before: open.length * WHOLE, after: left.length * WHOLE },
    guaranteedMilli: guaranteed,
    largestFreeMilli: Math.max(0, ...left.map((device) => WHOLE - heldOn(device.id))),
  };
}
