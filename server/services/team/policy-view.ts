import type { Context } from "#server/context.ts";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";
import type { teamPolicies } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { DEFAULT_IDLE_SECONDS, DEFAULT_MAX_LEASE_SECONDS, RECLAIM_POLICY } from "#server/services/lease/policy.ts";
import { installationPolicy } from "#server/services/workspace-size/policy.ts";

/** What counts where a team says nothing. */
export async function policyEverywhere(ctx: Context): Promise<TeamPolicyView["installation"]> {
  const { customSizes, maxCpuMilli, maxMemoryBytes } = await installationPolicy(ctx);
  return {
    maxLeaseSeconds: DEFAULT_MAX_LEASE_SECONDS,
    idleSeconds: DEFAULT_IDLE_SECONDS,
    workspaceIdleSeconds: env().SLUICE_WORKSPACE_IDLE_SECONDS,
    minRunSeconds: RECLAIM_POLICY.minRunMs / 1000,
    noticeSeconds: RECLAIM_POLICY.noticeMs / 1000,
    longKernelSeconds: env().SLUICE_LONG_KERNEL_SECONDS,
    ...{ customSizes, maxCpuMilli, maxMemoryBytes },
  };
}

/** A team's policy from its row, if it has one: pure. */
export function policyView(
  row: typeof teamPolicies.$inferSelect | null | undefined,
  installation: TeamPolicyView["installation"],
): TeamPolicyView {
  return {
    maxLeaseSeconds: row?.maxLeaseSeconds ?? null,
    idleSeconds: row?.idleSeconds ?? null,
    workspaceIdleSeconds: row?.workspaceIdleSeconds ?? null,
    coTenancy: row?.coTenancy ?? "any",
    computeCeiling: row?.computeCeiling ?? "none",
    minRunSeconds: row?.minRunSeconds ?? null,
    noticeSeconds: row?.noticeSeconds ?? null,
    longKernelSeconds: row?.longKernelSeconds ?? null,
    customSizes: row?.customSizes ?? null,
    maxCpuMilli: row?.maxCpuMilli ?? null,
    maxMemoryBytes: row?.maxMemoryBytes ?? null,
    version: row?.version ?? 0,
    installation,
  };
}
