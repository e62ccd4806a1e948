import { and, eq, ne, notInArray } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import type { DeviceReport, GpudMessage } from "#server/contracts/control.ts";
import type { Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leases } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import type { ClusterAccount } from "#server/launchers/kubernetes/cluster-account.ts";
import { notify } from "#server/live.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { closeLeases } from "#server/services/lease/ending.ts";
import { lockGpuTypes } from "#server/services/lease/world.ts";
import { findServer } from "./find.ts";
import { kindOfModel } from "./kind-of-model.ts";
import { inOnePod, placeOf } from "./pod-of.ts";

export type Hello = Extract<GpudMessage, { type: "hello" }>;
/** leases: those whose workers gpud keeps (also those it is about to be told to end). */
export type Connected = { name: string; epoch: number; leases: string[] };

/**
 * A gpud has proved its key: its devices are brought up to date, and its leases to what both sides know. A lease whose
 * workers were there and are gone (gpud was killed) ends here; one that waits for its first connection goes on. `account`:
 * in which pod it runs now; without it that stays as it was.
 */
export async function connect(ctx: Context, hello: Hello, account?: ClusterAccount): Promise<Connected> {
  authorize(ctx.principal, "gpu-server.control", { serverId: hello.serverId });
  const write = async (tx: Locked) => {
    const before = await tx.db.select().from(gpus).where(eq(gpus.serverId, hello.serverId));
    const types = await lockGpuTypes(
      tx.db,
      [...before, ...hello.devices].map((device) => device.gpuType),
    );
    const server = await findServer(tx, hello.serverId);
    await tx.db
      .update(gpuServers)
      .set({
        state: server.drainedAt === null ? "online" : "draining",
        dataAddress: hello.dataAddress,
        tlsFingerprint: hello.tlsFingerprint,
        version: hello.version,
        lastSeenAt: tx.now(),
        ...(account === undefined ? {} : placeOf(account)),
      })
      .where(eq(gpuServers.id, server.id));
    await keepDevices(tx, server.id, hello.devices, before);
    const kept = await reconcileLeases(tx, hello);
    await notify(tx.db, "pool", server.id);
    for (const gpuType of types) await advanceQueue(tx, gpuType);
    return { name: server.name, epoch: server.epoch, leases: kept };
  };
  return await inOnePod(account, async () => await inTransaction(ctx, write));
}

type Locked = Context & { db: Transaction };

async function keepDevices(
  ctx: Locked,
  serverId: string,
  reports: DeviceReport[],
  before: (typeof gpus.$inferSelect)[],
): Promise<void> {
  for (const report of reports) {
    const known = before.find((device) => device.uuid === report.uuid);
    const facts = {
      name: `${report.gpuType}-${report.index}`,
      gpuType: report.gpuType,
      model: report.model,
      computeCapability: `${report.profile.computeCapabilityMajor}.${report.profile.computeCapabilityMinor}`,
      memoryBytes: report.memoryBytes,
      linkGroup: report.linkGroup ?? null,
      profile: report.profile,
    };
    if (known === undefined) {
      await ctx.db.insert(gpus).values({
        ...{ id: newId("gpu"), serverId, uuid: report.uuid, ...facts, state: "active", createdAt: ctx.now() },
        // Asked once: an admin who knows better is not overruled by the next connection.
        kind: kindOfModel(report.model),
      });
    } else {
      await ctx.db
        .update(gpus)
        .set({ ...facts, state: "active" })
        .where(eq(gpus.id, known.id));
    }
  }
  const uuids = reports.map((report) => report.uuid);
  await ctx.db
    .update(gpus)
    .set({ state: "lost" })
    .where(and(eq(gpus.serverId, serverId), uuids.length > 0 ? notInArray(gpus.uuid, uuids) : undefined));
}

async function reconcileLeases(ctx: Locked, hello: Hello): Promise<string[]> {
  const rows = await ctx.db
    .select({ lease: leases, gpuState: gpus.state })
    .from(leases)
    .innerJoin(gpus, eq(gpus.id, leases.gpuId))
    .where(and(eq(leases.serverId, hello.serverId), ne(leases.state, "ended")));
  const held = new Set(hello.held.map((usage) => usage.leaseId));
  const over = rows.filter(({ lease, gpuState }) => {
    if (gpuState === "lost") return true;
    if (held.has(lease.id)) return false;
    return lease.state === "ending" || (lease.claimedAt !== null && lease.disconnectedAt === null);
  });
  const overIds = over.map(({ lease }) => lease.id);
  await closeLeases(
    ctx.db,
    overIds.map((leaseId) => ({ by: ctx, leaseId })),
    { reason: "server lost", mode: "kill", note: "gpud was restarted" },
  );
  const kept = rows.filter(({ lease }) => !overIds.includes(lease.id));
  for (const { lease } of kept) {
    if (lease.state !== "unreachable") continue;
    await ctx.db
      .update(leases)
      .set({ state: lease.claimedAt === null ? "granted" : "active" })
      .where(eq(leases.id, lease.id));
    await notify(ctx.db, "lease", lease.id);
  }
  return kept.map(({ lease }) => lease.id);
}
