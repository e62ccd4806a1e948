import { inArray } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import type { GiveBackAnswer } from "#server/contracts/lease.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { leases } from "#server/db/schema/index.ts";
import { isAway, SluiceError } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { parse } from "#server/parse.ts";
import { beginEnds, type Ending } from "./ending.ts";
import { GIVE_BACK_MS } from "./policy.ts";
import { workspacePrincipal } from "./request.ts";
import { type LeaseRow, ownPlaced, type PlacedLease, placedLeases } from "./view.ts";
import type { Watcher } from "./watch.ts";

const giveBackInput = z.strictObject({
  leaseId: z.string().max(64),
  /** Keep what is allocated in gpud's host memory for the next lease of this owner. */
  park: z.boolean().default(false),
});
export type GiveBackInput = z.input<typeof giveBackInput>;

type Db = Database | Transaction;

/** Those who give back at one time do so in one transaction. */
const endings = groupOf<Db, Ending, void>(
  (db) =>
    new Group<Ending, void>(async (joined) => {
      await db.transaction(async (tx) => await beginEnds(tx, joined));
      return joined.map(() => ({ ok: true as const, value: undefined }));
    }, isAway),
);

/** Leases with their places by id, read together. */
const placed = groupOf<Db, string, PlacedLease | undefined>(
  (db) =>
    new Group(async (ids) => {
      const rows = await placedLeases(db).where(inArray(leases.id, [...ids]));
      const byId = new Map(rows.map((row) => [row.lease.id, row]));
      return ids.map((id) => ({ ok: true as const, value: byId.get(id) }));
    }, isAway),
);

/** Gives a GPU back; answers when gpud has parked or ended the workers. Giving back twice is giving back once. */
export async function giveBack(ctx: Context, raw: GiveBackInput, watcher: Watcher): Promise<GiveBackAnswer> {
  const input = parse(giveBackInput, raw);
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.give-back", { workspaceId });
  const { lease: held, server } = ownPlaced(await placed(ctx.db).join(input.leaseId), workspaceId);
  const watch = watcher(held.id);
  try {
    await endings(ctx.db).join({
      by: ctx,
      leaseId: held.id,
      how: { reason: "given back", mode: input.park ? "park" : "kill" },
    });
    const until = ctx.now().getTime() + GIVE_BACK_MS;
    for (;;) {
      const { lease } = ownPlaced(await placed(ctx.db).join(held.id), workspaceId);
      if (lease.state === "ended") return answer(lease);
      const left = until - ctx.now().getTime();
      if (left <= 0) break;
      await watch.changed(left);
    }
  } finally {
    watch.close();
  }
  throw new SluiceError(
    "unavailable",
    `GPU server ${server.name} has not answered yet; the GPU is given back as soon as it does, within a minute at most.`,
  );
}

function answer(lease: LeaseRow): GiveBackAnswer {
  const ended = lease.endedAt ?? lease.grantedAt;
  return {
    leaseId: lease.id,
    parkedBytes: lease.parkedBytes,
    heldSeconds: Math.max(0, (ended.getTime() - lease.grantedAt.getTime()) / 1000),
  };
}
