import { and, eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { WaitingRequest } from "#server/contracts/lease-board.ts";
import { type TeamInput, teamInput } from "#server/contracts/team.ts";
import { leaseRequests } from "#server/db/schema/index.ts";
import { parse } from "#server/parse.ts";
import { waitingIn } from "./waiting.ts";
import { loadWorld } from "./world.ts";

/** What waits of a team, type by type. Every member sees it: they wait for each other. */
export async function teamQueue(ctx: Context, raw: TeamInput): Promise<WaitingRequest[]> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.read", { teamId: id });
  const { principal } = ctx;
  if (principal.kind !== "user") return [];
  const types = await ctx.db
    .selectDistinct({ gpuType: leaseRequests.gpuType })
    .from(leaseRequests)
    .where(and(eq(leaseRequests.state, "queued"), eq(leaseRequests.teamId, id)))
    .orderBy(leaseRequests.gpuType);
  const queues = await Promise.all(
    types.map(async ({ gpuType }) =>
      waitingIn(ctx, principal, await loadWorld(ctx.db, gpuType, ctx.now()), ({ teamId }) => teamId === id),
    ),
  );
  return queues.flat();
}
