import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";
import { type TeamInput, teamInput } from "#server/contracts/team.ts";
import { teamPolicies } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { parse } from "#server/parse.ts";
import { DEFAULT_IDLE_SECONDS, DEFAULT_MAX_LEASE_SECONDS, RECLAIM_POLICY } from "#server/services/lease/policy.ts";
import { installationPolicy } from "#server/services/workspace-size/policy.ts";
import { get } from "./get.ts";

/** A team's policy, and what counts where it says nothing. */
export async function readPolicy(ctx: Context, raw: TeamInput): Promise<TeamPolicyView> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.read", { teamId: id });
  await get(ctx, { id });
  const [row] = await ctx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, id));
  const sizes = await installationPolicy(ctx);
  return {
    maxLeaseSeconds: row?.maxLeaseSeconds ?? null,
    idleSeconds: row?.idleSeconds ?? null,
    workspaceIdleSeconds: row?.workspaceIdleSeconds ?? null,
    coTenancy: row?.coTenancy ?? "any",
    minRunSeconds: row?.minRunSeconds ?? null,
    noticeSeconds: row?.noticeSeconds ?? null,
    longKernelSeconds: row?.longKernelSeconds ?? null,
    customSizes: row?.customSizes ?? null,
    maxCpuMilli: row?.maxCpuMilli ?? null,
    maxMemoryBytes: row?.maxMemoryBytes ?? null,
    version: row?.version ?? 0,
    installation: {
      maxLeaseSeconds: DEFAULT_MAX_LEASE_SECONDS,
      idleSeconds: DEFAULT_IDLE_SECONDS,
      workspaceIdleSeconds: env().SLUICE_WORKSPACE_IDLE_SECONDS,
      minRunSeconds: RECLAIM_POLICY.minRunMs / 1000,
      noticeSeconds: RECLAIM_POLICY.noticeMs / 1000,
      longKernelSeconds: env().SLUICE_LONG_KERNEL_SECONDS,
      customSizes: sizes.customSizes,
      maxCpuMilli: sizes.maxCpuMilli,
      maxMemoryBytes: sizes.maxMemoryBytes,
    },
  };
}
