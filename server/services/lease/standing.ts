/** What a request stands on besides its queue: its workspace, its person, its team's longest lease, the types there are. */
import { eq, inArray } from "drizzle-orm";
import type { Database, Transaction } from "#server/db/client.ts";
import { teamPolicies, users, workspaces } from "#server/db/schema/index.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { DEFAULT_MAX_LEASE_SECONDS } from "./policy.ts";
import { knownGpuTypes } from "./world.ts";

export type Standing = {
  workspace: typeof workspaces.$inferSelect | undefined;
  /** Name of its owner. */
  who: string;
  longestSeconds: number;
  knownTypes: string[];
};

/** By workspace; those who ask at one time are read together. */
export const standingOf = groupOf<Database | Transaction, string, Standing>(
  (db) =>
    new Group(async (workspaceIds) => {
      const [rows, knownTypes] = await Promise.all([
        db
          .select({ workspace: workspaces, who: users.name, policy: teamPolicies })
          .from(workspaces)
          .innerJoin(users, eq(users.id, workspaces.ownerId))
          .leftJoin(teamPolicies, eq(teamPolicies.teamId, workspaces.teamId))
          .where(inArray(workspaces.id, [...workspaceIds])),
        knownGpuTypes(db),
      ]);
      const byId = new Map(rows.map((row) => [row.workspace.id, row]));
      return workspaceIds.map((id) => {
        const found = byId.get(id);
        const longestSeconds = found?.policy?.maxLeaseSeconds ?? DEFAULT_MAX_LEASE_SECONDS;
        const value = { workspace: found?.workspace, who: found?.who ?? "", longestSeconds, knownTypes };
        return { ok: true as const, value };
      });
    }, isAway),
);
