import { asc, eq, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseListItem, PoolDevice, PoolOverview, QueueEntry } from "#server/contracts/gpu-server.ts";
import { gpuServers, gpus, leaseRequests, leases, teams, users, workspaces } from "#server/db/schema/index.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import { evaluateQueue, inOrder } from "#server/scheduler/queue.ts";
import { explain } from "#server/scheduler/reasons.ts";
import { leaseItems } from "#server/services/lease/list.ts";
import { knownGpuTypes, loadWorld } from "#server/services/lease/world.ts";
import { list } from "./list.ts";

/** A lease that has done no GPU work for this long is held idle. */
const IDLE_MS = 5 * 60_000;

/** The pool as its page shows it: figures by type, devices with who holds them, and the queue with its reasons. */
export async function overview(ctx: Context): Promise<PoolOverview> {
  authorize(ctx.principal, "pool.read");
  const now = ctx.now();
  const [{ servers }, deviceRows, live, types] = await Promise.all([
    list(ctx),
    ctx.db
      .select({ gpu: gpus, server: gpuServers })
      .from(gpus)
      .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
      .where(ne(gpuServers.state, "removed"))
      .orderBy(asc(gpuServers.createdAt), asc(gpus.name)),
    leaseItems(ctx, ne(leases.state, "ended"), 10_000),
    knownGpuTypes(ctx.db),
  ]);
  const devices = deviceRows.map(({ gpu, server }) => deviceView(gpu, server, live));
  const queue = (await Promise.all(types.map(async (gpuType) => await queueOf(ctx, gpuType)))).flat();
  return {
    totals: types.map((gpuType) => {
      const ofType = devices.filter((device) => device.gpuType === gpuType);
      const held = live.filter((lease) => lease.gpuType === gpuType);
      return {
        gpuType,
        devices: ofType.length,
        capacityMilli: ofType.filter((device) => device.state === "active").length * WHOLE,
        leasedMilli: total(held),
        idleHeldMilli: total(held.filter((lease) => now.getTime() - lastWork(lease) >= IDLE_MS)),
        queued: queue.filter((entry) => entry.gpuType === gpuType).length,
      };
    }),
    servers,
    devices,
    queue,
  };
}

const total = (leases: LeaseListItem[]) => leases.reduce((sum, lease) => sum + lease.milli, 0);
const lastWork = (lease: LeaseListItem) => Date.parse(lease.lastWorkAt ?? lease.grantedAt);

function deviceView(
  gpu: typeof gpus.$inferSelect,
  server: typeof gpuServers.$inferSelect,
  live: LeaseListItem[],
): PoolDevice {
  const held = live.filter((lease) => lease.gpuId === gpu.id);
  const away = server.state === "lost" || server.state === "joining" || gpu.state === "lost";
  return {
    id: gpu.id,
    uuid: gpu.uuid,
    name: gpu.name,
    gpuType: gpu.gpuType,
    model: gpu.model,
    computeCapability: gpu.computeCapability,
    serverId: server.id,
    serverName: server.name,
    state: away ? "lost" : server.state === "draining" ? "draining" : gpu.state,
    memoryBytes: gpu.memoryBytes,
    leasedMilli: total(held),
    leasedMemoryBytes: held.reduce((sum, lease) => sum + lease.memoryBytes, 0),
    usedMemoryBytes: held.reduce((sum, lease) => sum + lease.usedMemoryBytes, 0),
    computePercent: Math.min(
      100,
      Math.round(held.reduce((sum, lease) => sum + (lease.computePercent * lease.milli) / WHOLE, 0) * 10) / 10,
    ),
    leases: held,
  };
}

async function queueOf(ctx: Context, gpuType: string): Promise<QueueEntry[]> {
  const [world, rows] = await Promise.all([
    loadWorld(ctx.db, gpuType, ctx.now()),
    ctx.db
      .select({ request: leaseRequests, teamName: teams.name, userName: users.name, workspaceName: workspaces.name })
      .from(leaseRequests)
      .innerJoin(teams, eq(teams.id, leaseRequests.teamId))
      .innerJoin(users, eq(users.id, leaseRequests.userId))
      .innerJoin(workspaces, eq(workspaces.id, leaseRequests.workspaceId))
      .where(eq(leaseRequests.state, "queued")),
  ]);
  const verdicts = evaluateQueue(world);
  return inOrder(world.queue).flatMap((waiting) => {
    const verdict = verdicts.find((candidate) => candidate.requestId === waiting.requestId);
    const row = rows.find(({ request }) => request.id === waiting.requestId);
    if (verdict?.state !== "queued" || row === undefined) return [];
    return {
      requestId: waiting.requestId,
      gpuType,
      milli: waiting.milli,
      position: verdict.position,
      of: verdict.of,
      teamName: row.teamName,
      userName: row.userName,
      workspaceName: row.workspaceName,
      label: row.request.owner.label ?? null,
      reason: explain(waiting, verdict.obstacle, world).message,
      rule: verdict.obstacle.rule,
      waitingSince: row.request.createdAt.toISOString(),
    };
  });
}
