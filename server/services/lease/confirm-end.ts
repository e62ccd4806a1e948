import { authorize, type Context } from "#server/context.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { type ClosedRow, type Closing, closeLeases } from "./ending.ts";

/** What gpud said of the end of a lease of its own. */
export type SaidOfEnd = Required<Pick<Closing, "parkedBytes" | "gpuTimeUs">>;

/** What several gpuds say at one time is written by one statement. */
const closings = groupOf<Database | Transaction, Group<readonly Closing[], ClosedRow[]>>(
  (db) =>
    new Group(async (joined) => {
      const how = { reason: "server lost" as const, mode: "kill" as const, note: "gpud ended it" };
      const closed = await closeLeases(db, joined.flat(), how);
      return joined.map(() => ({ ok: true as const, value: closed }));
    }, isAway),
);

/**
 * gpud has parked or ended the workers of these leases: they are closed. Returns the GPU types for whose queues there
 * is room now; the caller advances them.
 */
export async function confirmEnds(
  ctx: Context,
  { serverId, ends }: { serverId: string; ends: ReadonlyMap<string, SaidOfEnd> },
): Promise<Set<string>> {
  authorize(ctx.principal, "gpu-server.control", { serverId });
  const closed = await closings(ctx.db).join(
    [...ends].map(([leaseId, said]) => ({ by: ctx, serverId, leaseId, ...said })),
  );
  return new Set(closed.filter(({ id }) => ends.has(id)).map(({ gpuType }) => gpuType));
}
