import { and, eq, ne } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseList } from "#server/contracts/gpu-server.ts";
import { type TeamInput, teamInput } from "#server/contracts/team.ts";
import { leases } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { leaseItems } from "./list.ts";

/** Who in a team holds what now. Every member sees it: they wait for each other. */
export async function teamLeases(ctx: Context, raw: TeamInput): Promise<LeaseList> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.read", { teamId: id });
  return { leases: await leaseItems(ctx, and(eq(leases.teamId, id), ne(leases.state, "ended"))) };
}
