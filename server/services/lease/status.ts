import { and, eq, inArray } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseStatus } from "#server/contracts/lease.ts";
import { leases, quotas, teams, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { WHOLE } from "#server/scheduler/amount.ts";
import { fitsNow } from "#server/scheduler/fits-now.ts";
import { usedBy } from "#server/scheduler/share.ts";
import { lastWorkOf } from "./holder.ts";
import { workspacePrincipal } from "./request.ts";
import { computePercent, recentGpuTime } from "./usage.ts";
import { type LeaseRow, leaseViewOf, placedLeases } from "./view.ts";
import { knownGpuTypes, loadWorld } from "./world.ts";

const statusInput = z.strictObject({ leaseId: z.string().max(64).optional() });
export type StatusInput = z.infer<typeof statusInput>;

/** Everything `%gpu` shows: what this workspace holds, what the team may use, what is free. */
export async function status(ctx: Context, raw: StatusInput): Promise<LeaseStatus> {
  const input = parse(statusInput, raw);
  const { workspaceId, teamId, userId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.status", { workspaceId });
  const now = ctx.now();
  const [[found], limits, types, held] = await Promise.all([
    ctx.db
      .select({ workspace: workspaces, teamName: teams.name })
      .from(workspaces)
      .innerJoin(teams, eq(teams.id, workspaces.teamId))
      .where(eq(workspaces.id, workspaceId)),
    ctx.db.select().from(quotas).where(eq(quotas.teamId, teamId)),
    knownGpuTypes(ctx.db),
    placedLeases(ctx.db).where(
      and(
        eq(leases.workspaceId, workspaceId),
        inArray(leases.state, ["granted", "active", "unreachable"]),
        eq(leases.ordinal, 0),
        input.leaseId === undefined ? undefined : eq(leases.id, input.leaseId),
      ),
    ),
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
  const asker = { requestId: "", teamId, userId, who: "", guaranteedOnly: false };
  return {
    workspace: {
      id: workspaceId,
      name: found.workspace.name,
      defaultMilli: found.workspace.defaultMilli,
      gpuType: found.workspace.gpuType,
    },
    team: {
      name: found.teamName,
      quotas: limits
        .sort((a, b) => a.gpuType.localeCompare(b.gpuType))
        .map(({ gpuType, guaranteedMilli, limitMilli }) => {
          const world = worlds.get(gpuType);
          return { gpuType, guaranteedMilli, limitMilli, usedMilli: world === undefined ? 0 : usedBy(teamId, world) };
        }),
    },
    free: [...worlds].map(([gpuType, world]) => {
      const open = world.devices.filter((device) => device.state === "open");
      const taken = world.holdings.filter((holding) => open.some((device) => device.id === holding.gpuId));
      const freeMilli = open.length * WHOLE - taken.reduce((sum, holding) => sum + holding.milli, 0);
      return { gpuType, grantedAtOnceMilli: fitsNow(asker, world), freeMilli };
    }),
    leases: held.map((placed) => {
      const { lease } = placed;
      const heldSeconds = Math.max(0, (now.getTime() - lease.grantedAt.getTime()) / 1000);
      return {
        lease: leaseViewOf(placed),
        owner: lease.owner,
        usedMemoryBytes: lease.usedMemoryBytes,
        gpuTimeUs: lease.gpuTimeUs,
        computePercent: computePercent(gpuTimes.get(lease.id) ?? 0, lease.milli, lease.grantedAt, now),
        gpuMilliHours: Math.round((lease.milli * heldSeconds) / 3600),
        idleEndsAt: idleEndOf(lease, worlds.get(lease.gpuType)?.quotas.get(lease.teamId)?.idleMs),
      };
    }),
  };
}

/** When a lease that does no GPU work is parked and released. */
function idleEndOf(lease: LeaseRow, idleMs: number | undefined): string | null {
  if (lease.state !== "active" || idleMs === undefined) return null;
  return new Date(lastWorkOf(lease).getTime() + idleMs).toISOString();
}
