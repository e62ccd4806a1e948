import { and, count, desc, eq, inArray, ne, type SQL } from "drizzle-orm";
import { isAllowed } from "#server/auth/authorize.ts";
import type { Principal } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import {
  gpuServers,
  gpus,
  images,
  imageVersions,
  leases,
  teamPolicies,
  teams,
  users,
  workspaceSizes,
  workspaces,
} from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { idleEndOf } from "#server/services/lease/holder.ts";
import { DEFAULT_IDLE_SECONDS } from "#server/services/lease/policy.ts";
import type { LeaseRow } from "#server/services/lease/view.ts";
import { type GivenRole, roleOf } from "./given-role.ts";
import { idleLimit, stopTime } from "./idle-limit.ts";
import { resourceOf, type WorkspaceRow } from "./load.ts";
import { offeredUpdate } from "./offered-update.ts";

/** Workspaces that are not removed, newest first, as pages and API show them to this principal. */
export async function readWorkspaces(ctx: Context, where: SQL | undefined, limit?: number): Promise<WorkspaceView[]> {
  const query = ctx.db
    .select({
      workspace: workspaces,
      ownerName: users.name,
      teamName: teams.name,
      image: images,
      version: imageVersions.version,
      update: offeredUpdate,
      teamIdleSeconds: teamPolicies.workspaceIdleSeconds,
      role: roleOf(ctx.principal),
      sizeName: workspaceSizes.name,
    })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.ownerId))
    .innerJoin(teams, eq(teams.id, workspaces.teamId))
    .innerJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .leftJoin(teamPolicies, eq(teamPolicies.teamId, workspaces.teamId))
    .leftJoin(workspaceSizes, eq(workspaceSizes.id, workspaces.sizeId))
    .where(and(ne(workspaces.desired, "removed"), where))
    .orderBy(desc(workspaces.createdAt), desc(workspaces.id));
  const rows = await (limit === undefined ? query : query.limit(limit));
  const held = await readLeases(
    ctx,
    rows.map((row) => row.workspace.id),
  );
  const installation = env().SLUICE_WORKSPACE_IDLE_SECONDS;
  const limitOf = (w: WorkspaceRow, team: number | null) => idleLimit({ own: w.idleSeconds, team, installation });
  return rows.map(({ workspace: w, ownerName, teamName, image, version, update, teamIdleSeconds, role, sizeName }) => ({
    id: w.id,
    name: w.name,
    owner: { id: w.ownerId, name: ownerName },
    team: { id: w.teamId, name: teamName },
    role: ctx.principal.kind === "user" && ctx.principal.userId === w.ownerId ? "owner" : role,
    image: { id: image.id, name: image.name, title: image.title, version },
    update,
    launcher: w.launcher,
    size: sizeOf(w, sizeName),
    defaultAmount: w.defaultAmount,
    gpuPolicy: w.gpuPolicy,
    gpuType: w.gpuType,
    desired: w.desired,
    observed: w.observed,
    message: w.message,
    generation: w.generation,
    createdAt: w.createdAt.toISOString(),
    startedAt: w.startedAt?.toISOString() ?? null,
    stoppedAt: w.stoppedAt?.toISOString() ?? null,
    lastActivityAt: w.lastActivityAt?.toISOString() ?? null,
    cpuMilli: w.observed === "running" ? w.cpuMilli : null,
    memoryBytes: w.observed === "running" ? w.memoryBytes : null,
    idleSeconds: limitOf(w, teamIdleSeconds),
    ownIdleSeconds: w.idleSeconds,
    stopsAt: stopTime(w, limitOf(w, teamIdleSeconds))?.toISOString() ?? null,
    movesAt: w.movesAt?.toISOString() ?? null,
    versions: { gpuPolicy: w.gpuPolicyVersion, idleLimit: w.idleLimitVersion, size: w.sizeVersion },
    filesKeptDays: env().SLUICE_REMOVED_WORKSPACE_DAYS,
    leases: held.get(w.id) ?? [],
    can: possibilities(ctx.principal, w, role),
  }));
}

/** How many workspaces that are not removed there are of a kind. */
export async function countWorkspaces(ctx: Context, where: SQL | undefined): Promise<number> {
  const [row] = await ctx.db
    .select({ n: count() })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.ownerId))
    .innerJoin(teams, eq(teams.id, workspaces.teamId))
    .innerJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
    .innerJoin(images, eq(images.id, imageVersions.imageId))
    .where(and(ne(workspaces.desired, "removed"), where));
  return row?.n ?? 0;
}

function sizeOf(w: WorkspaceRow, name: string | null): WorkspaceView["size"] {
  const { sizeCpuMilli: cpuMilli, sizeMemoryBytes: memoryBytes } = w;
  if (cpuMilli === null || memoryBytes === null) return null;
  const given = { cpuMilli: w.givenCpuMilli, memoryBytes: w.givenMemoryBytes };
  const runsWith =
    w.desired !== "running" || given.cpuMilli === null || given.memoryBytes === null
      ? null
      : { cpuMilli: given.cpuMilli, memoryBytes: given.memoryBytes };
  const differs = runsWith?.cpuMilli !== cpuMilli || runsWith.memoryBytes !== memoryBytes;
  return { name, cpuMilli, memoryBytes, runsWith: differs ? runsWith : null };
}

function possibilities(principal: Principal, w: WorkspaceRow, role: GivenRole | null): WorkspaceView["can"] {
  const resource = resourceOf(w, role);
  const down = w.desired === "stopped" || w.observed === "failed";
  return {
    open: w.desired === "running" && w.observed === "running" && isAllowed(principal, "workspace.open", resource),
    start: down && isAllowed(principal, "workspace.start", resource),
    stop: w.desired === "running" && isAllowed(principal, "workspace.stop", resource),
    restart: w.desired === "running" && isAllowed(principal, "workspace.restart", resource),
    duplicate: isAllowed(principal, "workspace.duplicate", resource),
    work: isAllowed(principal, "workspace.work", resource),
    change: isAllowed(principal, "workspace.change", resource),
    unshare: isAllowed(principal, "workspace.unshare", resource),
    remove: isAllowed(principal, "workspace.remove", resource),
  };
}

async function readLeases(ctx: Context, workspaceIds: string[]): Promise<Map<string, WorkspaceView["leases"]>> {
  const found = new Map<string, WorkspaceView["leases"]>();
  if (workspaceIds.length === 0) return found;
  const rows = await ctx.db
    .select({
      lease: leases,
      deviceName: gpus.name,
      serverName: gpuServers.name,
      idleSeconds: teamPolicies.idleSeconds,
    })
    .from(leases)
    .leftJoin(teamPolicies, eq(teamPolicies.teamId, leases.teamId))
    .innerJoin(gpus, eq(gpus.id, leases.gpuId))
    .innerJoin(gpuServers, eq(gpuServers.id, leases.serverId))
    .where(and(inArray(leases.workspaceId, workspaceIds), ne(leases.state, "ended")))
    .orderBy(leases.grantedAt);
  const partsOf = ({ requestId }: LeaseRow) =>
    rows.flatMap(({ lease }) => (lease.requestId === requestId ? [lease] : []));
  for (const { lease, deviceName, serverName, idleSeconds } of rows) {
    if (lease.state === "ended") continue;
    const list = found.get(lease.workspaceId) ?? [];
    list.push({
      id: lease.id,
      gpuType: lease.gpuType,
      milli: lease.milli,
      deviceName,
      serverName,
      label: lease.owner.label ?? null,
      state: lease.state,
      grantedAt: lease.grantedAt.toISOString(),
      expiresAt: lease.expiresAt.toISOString(),
      idleEndsAt: idleEndOf(partsOf(lease), (idleSeconds ?? DEFAULT_IDLE_SECONDS) * 1000)?.toISOString() ?? null,
      releaseAt: lease.releaseAt?.toISOString() ?? null,
    });
    found.set(lease.workspaceId, list);
  }
  return found;
}
