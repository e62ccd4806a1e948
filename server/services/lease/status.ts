import { and, eq, inArray, sql } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import { parseAmount } from "#server/contracts/amount.ts";
import type { DeviceNeeds, LeaseStatus } from "#server/contracts/lease.ts";
import { compareNames } from "#server/contracts/names.ts";
import { gpuPrices, imageVersions, leases, quotas, teams, workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import { fitsNow } from "#server/scheduler/fits-now.ts";
import { guaranteedNow, usedBy } from "#server/scheduler/share.ts";
import type { World } from "#server/scheduler/types.ts";
import { chargeFor } from "./asking.ts";
import { idleEndOf } from "./holder.ts";
import { workspacePrincipal } from "./request.ts";
import { computePercent, recentGpuTime, runningOf } from "./usage.ts";
import { type LeaseRow, leaseViewOf, type PlacedLease, placedLeases } from "./view.ts";
import { knownGpuTypes, loadWorld } from "./world.ts";

const statusInput = z.strictObject({ leaseId: z.string().max(64).optional() });
export type StatusInput = z.infer<typeof statusInput>;

/** Everything `%gpu` shows: what this workspace holds, what the team may use, what is free. */
export async function status(ctx: Context, raw: StatusInput): Promise<LeaseStatus> {
  const input = parse(statusInput, raw);
  const { workspaceId, teamId, userId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.status", { workspaceId });
  const now = ctx.now();
  const [[found], limits, types, held, prices] = await Promise.all([
    ctx.db
      .select({
        ...{ workspace: workspaces, teamName: teams.name },
        needs: sql<DeviceNeeds | null>`${imageVersions.spec}->'needs'`,
      })
      .from(workspaces)
      .innerJoin(teams, eq(teams.id, workspaces.teamId))
      .leftJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
      .where(eq(workspaces.id, workspaceId)),
    ctx.db.select().from(quotas).where(eq(quotas.teamId, teamId)),
    knownGpuTypes(ctx.db),
    placedLeases(ctx.db).where(
      and(eq(leases.workspaceId, workspaceId), inArray(leases.state, ["granted", "active", "unreachable"])),
    ),
    ctx.db.select().from(gpuPrices).where(eq(gpuPrices.basis, "hour")),
  ]);
  if (found === undefined) throw new SluiceError("not-found", "This workspace no longer exists.");
  const worlds = new Map(
    await Promise.all(types.map(async (gpuType) => [gpuType, await loadWorld(ctx.db, gpuType, now)] as const)),
  );
  const gpuTimes = await recentGpuTime(
    ctx.db,
    held.map(({ lease }) => lease.id),
    now,
  );
  const asker = {
    ...{ requestId: "", teamId, userId, who: "", guaranteedOnly: false },
    ...(found.needs === null ? {} : { needs: found.needs }),
  };
  const hourMicro = new Map(prices.map(({ gpuType, micro }) => [gpuType, micro]));
  return {
    currency: env().SLUICE_CURRENCY,
    workspace: {
      id: workspaceId,
      name: found.workspace.name,
      defaultAmount: found.workspace.defaultAmount,
      defaultMilli: defaultMilliOf(found, worlds.get(found.workspace.gpuType)),
      gpuType: found.workspace.gpuType,
      gpuPolicy: found.workspace.gpuPolicy,
    },
    team: {
      name: found.teamName,
      quotas: limits
        .sort((a, b) => compareNames(a.gpuType, b.gpuType))
        .map(({ gpuType, guaranteedMilli, limitMilli }) => {
          const world = worlds.get(gpuType);
          const guaranteedNowMilli = world === undefined ? 0 : guaranteedNow(teamId, world);
          const usedMilli = world === undefined ? 0 : usedBy(teamId, world);
          return { gpuType, guaranteedMilli, guaranteedNowMilli, limitMilli, usedMilli };
        }),
    },
    free: [...worlds].map(([gpuType, world]) => {
      const open = world.devices.filter((device) => device.state === "open");
      const taken = world.holdings.filter((holding) => open.some((device) => device.id === holding.gpuId));
      const freeMilli = open.length * WHOLE - taken.reduce((sum, holding) => sum + holding.milli, 0);
      return { gpuType, grantedAtOnceMilli: fitsNow(asker, world), freeMilli };
    }),
    leases: together(held)
      .filter((parts) => input.leaseId === undefined || parts.some(({ lease }) => lease.id === input.leaseId))
      .map((parts) => entryOf(parts, { gpuTimes, worlds, hourMicro, now })),
  };
}

/** What the default comes to in parts of a GPU; a whole one where nobody knows how much memory one has. */
function defaultMilliOf(
  { workspace, needs }: { workspace: { defaultAmount: string }; needs: DeviceNeeds | null },
  world: World | undefined,
): number {
  const parsed = parseAmount(workspace.defaultAmount);
  if (!parsed.ok || world === undefined) return WHOLE;
  const charge = chargeFor({ amount: parsed.amount, needs }, world);
  return charge.ok ? charge.milli : WHOLE;
}

/** The parts of each lease, in order: a lease of several GPUs has one for each. */
function together(held: readonly PlacedLease[]): [PlacedLease, ...PlacedLease[]][] {
  const byRequest = new Map<string, [PlacedLease, ...PlacedLease[]]>();
  for (const placed of [...held].sort((a, b) => a.lease.ordinal - b.lease.ordinal)) {
    const parts = byRequest.get(placed.lease.requestId);
    if (parts === undefined) byRequest.set(placed.lease.requestId, [placed]);
    else parts.push(placed);
  }
  return [...byRequest.values()];
}

type Seen = {
  gpuTimes: ReadonlyMap<string, number>;
  worlds: ReadonlyMap<string, World>;
  /** Of GPU types that have a price by the hour. */
  hourMicro: ReadonlyMap<string, number>;
  now: Date;
};

function entryOf(parts: [PlacedLease, ...PlacedLease[]], seen: Seen): LeaseStatus["leases"][number] {
  const { gpuTimes, worlds, hourMicro, now } = seen;
  const [first] = parts;
  const { lease } = first;
  const rows = parts.map((part) => part.lease);
  const idleMs = worlds.get(lease.gpuType)?.quotas.get(lease.teamId)?.idleMs;
  const sum = (of: (part: LeaseRow) => number) => rows.reduce((total, part) => total + of(part), 0);
  const heldSeconds = Math.max(0, (now.getTime() - lease.grantedAt.getTime()) / 1000);
  const gpuMilliHours = Math.round((sum((part) => part.milli) * heldSeconds) / 3600);
  const price = hourMicro.get(lease.gpuType);
  const percent = (part: LeaseRow) => computePercent(gpuTimes.get(part.id) ?? 0, part.milli, part.grantedAt, now);
  return {
    lease: leaseViewOf(first, parts),
    owner: lease.owner,
    usedMemoryBytes: sum((part) => part.usedMemoryBytes),
    gpuTimeUs: sum((part) => part.gpuTimeUs),
    computePercent: Math.round((sum(percent) / parts.length) * 10) / 10,
    gpuMilliHours,
    costMicro: price === undefined ? null : Math.round((gpuMilliHours * price) / WHOLE),
    running: rows.map(runningOf).find((running) => running !== null) ?? null,
    idleEndsAt: idleMs === undefined ? null : (idleEndOf(rows, idleMs)?.toISOString() ?? null),
    ...(parts.length > 1
      ? {
          devices: rows.map((part) => {
            return { leaseId: part.id, usedMemoryBytes: part.usedMemoryBytes, computePercent: percent(part) };
          }),
        }
      : {}),
  };
}
