/** Who waits for one GPU type, as far as a person may see it. */
import { and, eq, inArray } from "drizzle-orm";
import type { UserPrincipal } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import type { WaitingRequest } from "#server/contracts/lease-board.ts";
import { leaseRequests, teams, users, workspaces } from "#server/db/schema/index.ts";
import { ESTIMATED, estimates } from "#server/scheduler/estimate.ts";
import { inOrder, judged } from "#server/scheduler/queue.ts";
import { explain } from "#server/scheduler/reasons.ts";
import { seenBy } from "#server/scheduler/seen-by.ts";
import type { Waiting, World } from "#server/scheduler/types.ts";
import { readerOf } from "./reader.ts";

/** Those of the queue that are `shown`, oldest first, each with its place and reason. */
export async function waitingIn(
  ctx: Context,
  person: UserPrincipal,
  read: World,
  shown: (request: Waiting) => boolean,
): Promise<WaitingRequest[]> {
  const asked = inOrder(read.queue.filter(shown));
  if (asked.length === 0) return [];
  const { world, verdicts } = judged(read);
  const rows = await ctx.db
    .select({ request: leaseRequests, teamName: teams.name, userName: users.name, workspaceName: workspaces.name })
    .from(leaseRequests)
    .innerJoin(teams, eq(teams.id, leaseRequests.teamId))
    .innerJoin(users, eq(users.id, leaseRequests.userId))
    .innerJoin(workspaces, eq(workspaces.id, leaseRequests.workspaceId))
    .where(
      and(
        eq(leaseRequests.state, "queued"),
        inArray(
          leaseRequests.id,
          asked.map((request) => request.requestId),
        ),
      ),
    );
  const rowOf = new Map(rows.map((row) => [row.request.id, row]));
  const verdictOf = new Map(verdicts.map((verdict) => [verdict.requestId, verdict]));
  const seen = seenBy(readerOf(ctx), world);
  const played = asked.filter(({ userId }, at) => at < ESTIMATED || userId === person.userId);
  const guesses = estimates(
    played.map(({ requestId }) => requestId),
    world,
    verdicts,
  );
  return asked.flatMap((waiting) => {
    const verdict = verdictOf.get(waiting.requestId);
    const row = rowOf.get(waiting.requestId);
    if (verdict?.state !== "queued" || row === undefined) return [];
    const { request, ...names } = row;
    return [
      {
        requestId: request.id,
        gpuType: request.gpuType,
        milli: request.milli,
        position: verdict.position,
        of: verdict.of,
        teamId: request.teamId,
        userId: request.userId,
        workspaceId: request.workspaceId,
        ...names,
        label: request.owner.label ?? null,
        reason: explain(waiting, verdict.obstacle, seen),
        waitingSince: request.createdAt.toISOString(),
        likelySeconds: guesses.get(request.id)?.likely ?? null,
        soonestSeconds: guesses.get(request.id)?.soonest ?? null,
      },
    ];
  });
}
