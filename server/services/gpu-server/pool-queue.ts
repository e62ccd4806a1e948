/** Who waits, with the place and the reason of each, and what is free and serves none of them. */
import { eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { QueueEntry } from "#server/contracts/gpu-server.ts";
import { leaseRequests, teams, users, workspaces } from "#server/db/schema/index.ts";
import { ESTIMATED, estimates } from "#server/scheduler/estimate.ts";
import { inOrder, judged } from "#server/scheduler/queue.ts";
import { sentence } from "#server/scheduler/reasons.ts";
import { seenBy } from "#server/scheduler/seen-by.ts";
import { strandedMilli } from "#server/scheduler/stranded.ts";
import type { World } from "#server/scheduler/types.ts";
import { readerOf } from "#server/services/lease/reader.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import type { PoolSight } from "./pool-sight.ts";

type PoolQueue = {
  /** Those of teams that are seen; their places are among all. */
  queue: QueueEntry[];
  /** Type → how many wait, whoever they are. */
  queued: ReadonlyMap<string, number>;
  /** Type → what is free and stranded there, thousandths; nothing is said where nobody waits. */
  strandedMilli: ReadonlyMap<string, number>;
};

/** The queues of all types, one after the other, as somebody sees them. */
export async function readPoolQueue(ctx: Context, sees: PoolSight): Promise<PoolQueue> {
  const rows = await ctx.db
    .select({ request: leaseRequests, teamName: teams.name, userName: users.name, workspaceName: workspaces.name })
    .from(leaseRequests)
    .innerJoin(teams, eq(teams.id, leaseRequests.teamId))
    .innerJoin(users, eq(users.id, leaseRequests.userId))
    .innerJoin(workspaces, eq(workspaces.id, leaseRequests.workspaceId))
    .where(eq(leaseRequests.state, "queued"));
  // Nobody's reason is asked for where nobody waits: a world of a large pool takes a while to load.
  const types = [...new Set(rows.map(({ request }) => request.gpuType))].sort();
  const byId = new Map(rows.filter(({ request }) => sees(request.teamId)).map((row) => [row.request.id, row]));
  const worlds = await Promise.all(types.map((gpuType) => loadWorld(ctx.db, gpuType, ctx.now())));
  return {
    queue: worlds.flatMap((world) => queueOf(ctx, world, byId)),
    queued: new Map(worlds.map((world) => [world.gpuType, world.queue.length])),
    strandedMilli: new Map(worlds.map((world) => [world.gpuType, strandedMilli(world)])),
  };
}

type Row = {
  request: typeof leaseRequests.$inferSelect;
  teamName: string;
  userName: string;
  workspaceName: string;
};

function queueOf(ctx: Context, read: World, rows: ReadonlyMap<string, Row>): QueueEntry[] {
  const { world, verdicts: told } = judged(read);
  const seen = seenBy(readerOf(ctx), world);
  const verdicts = new Map(told.map((verdict) => [verdict.requestId, verdict]));
  const inTurn = inOrder(world.queue);
  const first = inTurn.slice(0, ESTIMATED).map(({ requestId }) => requestId);
  const guesses = estimates(first, world, told);
  return inTurn.flatMap((waiting) => {
    const verdict = verdicts.get(waiting.requestId);
    const row = rows.get(waiting.requestId);
    if (verdict?.state !== "queued" || row === undefined) return [];
    return {
      requestId: waiting.requestId,
      gpuType: world.gpuType,
      milli: waiting.milli,
      position: verdict.position,
      of: verdict.of,
      teamName: row.teamName,
      userName: row.userName,
      workspaceName: row.workspaceName,
      label: row.request.owner.label ?? null,
      reason: sentence(waiting, verdict.obstacle, seen),
      rule: verdict.obstacle.rule,
      waitingSince: row.request.createdAt.toISOString(),
      likelySeconds: guesses.get(waiting.requestId)?.likely ?? null,
    };
  });
}
