/**
 * What a request stands on besides its queue: its workspace with what its environment needs, its person, its team's
 * longest lease, the types there are.
 */
import { eq, sql } from "drizzle-orm";
import type { DeviceNeeds } from "#server/contracts/lease.ts";
import { among } from "#server/db/among.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { imageVersions, teamPolicies, users, workspaces } from "#server/db/schema/index.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { DEFAULT_MAX_LEASE_SECONDS } from "./policy.ts";
import { gpuTypesNow } from "./world.ts";

export type Standing = {
  workspace: Pick<typeof workspaces.$inferSelect, "desired" | "defaultAmount" | "gpuType" | "gpuPolicy"> | undefined;
  /** Name of its owner. */
  who: string;
  longestSeconds: number;
  knownTypes: string[];
  /** What its environment needs of a device. */
  needs: DeviceNeeds | null;
};

/** By workspace; those who ask at one time are read together. */
export const standingOf = groupOf<Database | Transaction, Group<string, Standing>>((db) => {
  const { id, desired, defaultAmount, gpuType, gpuPolicy } = workspaces;
  const query = db
    .select({
      ...{ id, desired, defaultAmount, gpuType, gpuPolicy },
      who: users.name,
      longestSeconds: teamPolicies.maxLeaseSeconds,
      knownTypes: gpuTypesNow,
      needs: sql<DeviceNeeds | null>`${imageVersions.spec}->'needs'`,
    })
    .from(workspaces)
    .innerJoin(users, eq(users.id, workspaces.ownerId))
    .leftJoin(imageVersions, eq(imageVersions.id, workspaces.imageVersionId))
    .leftJoin(teamPolicies, eq(teamPolicies.teamId, workspaces.teamId))
    .where(among(id, sql.placeholder("ids")))
    .prepare("standing");
  return new Group<string, Standing>(async (workspaceIds) => {
    const rows = await query.execute({ ids: JSON.stringify(workspaceIds) });
    const byId = new Map(rows.map((row) => [row.id, row]));
    return workspaceIds.map((workspaceId) => {
      const found = byId.get(workspaceId);
      const longestSeconds = found?.longestSeconds ?? DEFAULT_MAX_LEASE_SECONDS;
      const { who = "", knownTypes = [], needs = null } = found ?? {};
      return { ok: true as const, value: { workspace: found, who, longestSeconds, knownTypes, needs } };
    });
  }, isAway);
});
