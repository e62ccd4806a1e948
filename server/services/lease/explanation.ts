import { and, eq, or, type SQL } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import { type LeaseExplanation, type LeaseReason, leaseReason } from "#server/contracts/lease.ts";
import { leaseRequests, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { seenBy } from "#server/scheduler/seen-by.ts";
import { explainRules } from "#server/scheduler/why.ts";
import { elsewhere } from "./elsewhere.ts";
import { readerOf } from "./reader.ts";
import { shownWorld } from "./shown.ts";

const explanationInput = z.strictObject({ id: z.string().max(64) });
export type ExplanationInput = z.infer<typeof explanationInput>;

/** Which rule holds a request back, who holds what as far as the reader may see it, what fits now, and when. */
export async function explanation(ctx: Context, raw: ExplanationInput): Promise<LeaseExplanation> {
  const { id } = parse(explanationInput, raw);
  const [found] = await ctx.db
    .select({ request: leaseRequests, teamName: teams.name })
    .from(leaseRequests)
    .innerJoin(teams, eq(teams.id, leaseRequests.teamId))
    .where(or(eq(leaseRequests.id, id), ofOwnKey(ctx, id)))
    .limit(1);
  const request = found?.request;
  authorize(ctx.principal, "lease.explain", {
    workspaceId: request?.workspaceId,
    ownerId: request?.userId,
    teamId: request?.teamId,
  });
  if (found === undefined || request === undefined) {
    throw new SluiceError("not-found", "There is no such request. Reload the page to see what waits.");
  }
  const now = ctx.now();
  const common = {
    requestId: request.id,
    gpuType: request.gpuType,
    milli: request.milli,
    teamName: found.teamName,
    waitedSeconds: Math.max(0, ((request.decidedAt ?? now).getTime() - request.createdAt.getTime()) / 1000),
  };
  if (request.state !== "queued") {
    const reason = leaseReason.safeParse(request.reason);
    const rest = { asOf: now.toISOString(), position: 0, of: 0, rules: [], estimate: null, elsewhere: [] };
    return {
      ...common,
      ...rest,
      state: request.state,
      reason: reason.success ? asTold(reason.data, request, ctx) : null,
    };
  }
  const [{ world, verdicts }, others] = await Promise.all([shownWorld(ctx.db, request, now), elsewhere(ctx, request)]);
  const asOf = new Date(world.now).toISOString();
  const why = explainRules(request.id, seenBy(readerOf(ctx), world), verdicts);
  return { ...common, state: "queued", asOf, elsewhere: others, ...why };
}

/**
 * A decision is kept as the asker was told it; what they hold in other teams, which may stand in it, is told to nobody
 * else.
 */
function asTold(reason: LeaseReason, { userId }: { userId: string }, ctx: Context): LeaseReason {
  const reader = readerOf(ctx);
  return reader.userId === userId || reader.seesAll
    ? reason
    : { rule: reason.rule, message: reason.message, gpuType: reason.gpuType };
}

/** A workspace knows its requests by the key that it made; another's may be the same. */
function ofOwnKey({ principal }: Context, key: string): SQL | undefined {
  if (principal.kind !== "workspace") return undefined;
  return and(eq(leaseRequests.workspaceId, principal.workspaceId), eq(leaseRequests.idempotencyKey, key));
}
