import { and, asc, count, isNotNull, ne } from "drizzle-orm";
import { isAllowed } from "#server/auth/authorize.ts";
import { authorize, type Context } from "#server/context.ts";
import type { SizeList } from "#server/contracts/workspace-size.ts";
import { workspaceSizes, workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { capacityOf } from "#server/launchers/capacity.ts";
import { installationPolicy, ruleIn } from "./policy.ts";

/** The sizes that whoever asks may choose from, and in which of their teams they may choose another. */
export async function list(ctx: Context): Promise<SizeList> {
  authorize(ctx.principal, "workspace-size.list");
  const all = isAllowed(ctx.principal, "workspace-size.edit");
  const own = ctx.principal.kind === "user" ? Object.keys(ctx.principal.teams) : [];
  const rows = await ctx.db
    .select()
    .from(workspaceSizes)
    .orderBy(asc(workspaceSizes.position), asc(workspaceSizes.cpuMilli), asc(workspaceSizes.memoryBytes));
  const uses = all ? await usesOf(ctx) : undefined;
  const custom = await Promise.all(own.map((teamId) => ruleIn(ctx, teamId)));
  return {
    sizes: rows
      .filter(({ teamIds }) => all || teamIds === null || teamIds.some((each) => own.includes(each)))
      .map(({ createdAt: _, ...row }) => ({
        ...row,
        // To which other teams it is offered is theirs to know.
        teamIds: all ? row.teamIds : (row.teamIds?.filter((each) => own.includes(each)) ?? null),
        workspaces: uses === undefined ? null : (uses.get(row.id) ?? 0),
      })),
    custom: custom.map(({ customSizes: _, ...rule }) => rule),
    launchers: await readLaunchers(),
    policy: await installationPolicy(ctx),
  };
}

async function usesOf(ctx: Context): Promise<Map<string | null, number>> {
  const rows = await ctx.db
    .select({ id: workspaces.sizeId, n: count() })
    .from(workspaces)
    .where(and(isNotNull(workspaces.sizeId), ne(workspaces.desired, "removed")))
    .groupBy(workspaces.sizeId);
  return new Map(rows.map(({ id, n }) => [id, n]));
}

async function readLaunchers(): Promise<SizeList["launchers"]> {
  const { SLUICE_LAUNCHERS, SLUICE_ENVIRONMENT_LAUNCHERS } = env();
  const names = [...new Set([...SLUICE_LAUNCHERS, ...Object.values(SLUICE_ENVIRONMENT_LAUNCHERS)])];
  const known = await Promise.all(names.map(async (launcher) => ({ launcher, most: await capacityOf(launcher) })));
  return known.flatMap(({ launcher, most }) =>
    most === undefined ? [] : [{ launcher, maxCpuMilli: most.cpuMilli, maxMemoryBytes: most.memoryBytes }],
  );
}
