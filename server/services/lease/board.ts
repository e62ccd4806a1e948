import { and, eq, inArray, ne, or } from "drizzle-orm";
import type { UserPrincipal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import type { LeaseBoard } from "#server/contracts/lease-board.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import type { Waiting } from "#server/scheduler/types.ts";
import { leaseItems } from "./list.ts";
import { quotasIn, readQuotas } from "./quotas-now.ts";
import { waitingIn } from "./waiting.ts";
import { loadWorld } from "./world.ts";

/**
 * What a person holds, waits for and may get: the GPUs page reads it. Of what waits an admin sees all,
 * unless only what is the person's and their teams' is asked for.
 */
export async function board(ctx: Context, whose: "seen" | "teams" = "seen"): Promise<LeaseBoard> {
  authorize(ctx.principal, "lease.list");
  if (ctx.principal.kind !== "user") throw new SluiceError("forbidden", "Only a person has leases to look at.");
  const person = ctx.principal;
  const live = and(eq(leases.userId, person.userId), ne(leases.state, "ended"));
  const [held, mine] = await Promise.all([leaseItems(ctx, live), readQuotas(ctx, person)]);
  const types = new Set(mine.map((quota) => quota.gpuType));
  const seesAll = person.isAdmin && whose === "seen";
  for (const gpuType of await typesWaitedFor(ctx, person, seesAll)) types.add(gpuType);
  const worlds = await Promise.all([...types].map((gpuType) => loadWorld(ctx.db, gpuType, ctx.now())));
  const isSeen = ({ userId, teamId }: Waiting) =>
    seesAll || userId === person.userId || person.teams[teamId] !== undefined;
  const requests = await Promise.all(worlds.map((world) => waitingIn(ctx, person, world, isSeen)));
  return {
    currency: env().SLUICE_CURRENCY,
    leases: held,
    requests: requests.flat(),
    quotas: quotasIn(mine, worlds, person),
  };
}

/** The types for which somebody waits whose request is shown: no other world has to be loaded for the queue. */
async function typesWaitedFor(ctx: Context, person: UserPrincipal, seesAll: boolean): Promise<string[]> {
  const own = eq(leaseRequests.userId, person.userId);
  const seen = seesAll ? undefined : or(own, inArray(leaseRequests.teamId, Object.keys(person.teams)));
  const rows = await ctx.db
    .selectDistinct({ gpuType: leaseRequests.gpuType })
    .from(leaseRequests)
    .where(and(eq(leaseRequests.state, "queued"), seen));
  return rows.map(({ gpuType }) => gpuType);
}
