import { eq } from "drizzle-orm";
import { isAllowed } from "#server/auth/authorize.ts";
import type { Context } from "#server/context.ts";
import type { CustomSizeRule, SizeList } from "#server/contracts/workspace-size.ts";
import { sizePolicy, teamPolicies } from "#server/db/schema/index.ts";

/** Counts until an admin says otherwise. */
const FIRST = { customSizes: "leads", maxCpuMilli: 8000, maxMemoryBytes: 32 * 2 ** 30, version: 0 } as const;

/** Who may choose sizes freely where a team says nothing, and how large. */
export async function installationPolicy(ctx: Context): Promise<SizeList["policy"]> {
  const [row] = await ctx.db.select().from(sizePolicy);
  if (row === undefined) return FIRST;
  const { customSizes, maxCpuMilli, maxMemoryBytes, version } = row;
  return { customSizes, maxCpuMilli, maxMemoryBytes, version };
}

type TeamRule = CustomSizeRule & Pick<SizeList["policy"], "customSizes">;

/** What counts in a team for whoever asks. */
export async function ruleIn(ctx: Context, teamId: string): Promise<TeamRule> {
  const everywhere = await installationPolicy(ctx);
  const [own] = await ctx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, teamId));
  const customSizes = own?.customSizes ?? everywhere.customSizes;
  return {
    teamId,
    customSizes,
    mayChoose:
      customSizes === "everybody" ||
      (customSizes === "leads" && isAllowed(ctx.principal, "workspace-size.choose-freely", { teamId })),
    maxCpuMilli: own?.maxCpuMilli ?? everywhere.maxCpuMilli,
    maxMemoryBytes: own?.maxMemoryBytes ?? everywhere.maxMemoryBytes,
  };
}
