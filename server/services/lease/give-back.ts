import { sql } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import type { GiveBackAnswer } from "#server/contracts/lease.ts";
import { among } from "#server/db/among.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { leases } from "#server/db/schema/index.ts";
import { isAway, SluiceError } from "#server/errors.ts";
import { Group, groupOf } from "#server/group.ts";
import { parse } from "#server/parse.ts";
import { beginEnds, type Ending } from "./ending.ts";
import { GIVE_BACK_MS } from "./policy.ts";
import { workspacePrincipal } from "./request.ts";
import { type LeaseRow, noSuchLease } from "./view.ts";
import type { Watcher } from "./watch.ts";

const giveBackInput = z.strictObject({
  leaseId: z.string().max(64),
  /** Keep what is allocated in gpud's host memory for the next lease of this owner. */
  park: z.boolean().default(false),
});
export type GiveBackInput = z.input<typeof giveBackInput>;

type Db = Database | Transaction;
/** A lease, and the GPUs of it: each is a row of its own. */
type Held = Pick<LeaseRow, "id" | "workspaceId" | "state" | "grantedAt" | "endedAt"> & {
  devices: GiveBackAnswer["devices"];
  /** A GPU server that has yet to end its part; null when all have. */
  waitsFor: string | null;
};
/** A lease's other devices end with it, and are looked at again so soon, then after twice as long each time. */
const OTHERS_MS = 50;

/** Those who give back at one time do so by one statement. Whether the lease was held until then. */
const endings = groupOf<Db, Group<Ending, boolean>>(
  (db) =>
    new Group<Ending, boolean>(async (joined) => {
      const ids = new Set((await beginEnds(db, joined)).map(({ id }) => id));
      return joined.map(({ leaseId }) => ({ ok: true as const, value: ids.has(leaseId) }));
    }, isAway),
);

/** How leases stand, by id, read together. */
const standing = groupOf<Db, Group<string, Held | undefined>>((db) => {
  const { id, workspaceId, state, grantedAt, endedAt } = leases;
  // The outer row is named as PostgreSQL has it: in a query of one table a column would stand without its table's name.
  const ofAll = {
    devices: sql<GiveBackAnswer["devices"]>`(
      select json_agg(json_build_object('leaseId', part.id, 'parkedBytes', part.parked_bytes) order by part.ordinal)
      from leases part where part.request_id = leases.request_id)`,
    waitsFor: sql<string | null>`(
      select min(server.name) from leases part join gpu_servers server on server.id = part.server_id
      where part.request_id = leases.request_id and part.state <> 'ended')`,
  };
  const query = db
    .select({ id, workspaceId, state, grantedAt, endedAt, ...ofAll })
    .from(leases)
    .where(among(id, sql.placeholder("ids")))
    .prepare("given_back");
  return new Group(async (ids) => {
    const rows = await query.execute({ ids: JSON.stringify(ids) });
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((leaseId) => ({ ok: true as const, value: byId.get(leaseId) }));
  }, isAway);
});

/** Gives a GPU back; answers when gpud has parked or ended the workers. Giving back twice is giving back once. */
export async function giveBack(ctx: Context, raw: GiveBackInput, watcher: Watcher): Promise<GiveBackAnswer> {
  const { leaseId, park } = parse(giveBackInput, raw);
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.give-back", { workspaceId });
  const watch = watcher(leaseId);
  try {
    const how = { reason: "given back" as const, mode: park ? ("park" as const) : ("kill" as const) };
    let waits = await endings(ctx.db).join({ by: ctx, leaseId, workspaceId, how });
    const until = ctx.now().getTime() + GIVE_BACK_MS;
    let others: number | undefined;
    for (;;) {
      // One that was held a moment ago is not over before gpud has heard of it.
      if (waits) await watch.changed(Math.min(others ?? Number.POSITIVE_INFINITY, until - ctx.now().getTime()));
      waits = true;
      const held = await standing(ctx.db).join(leaseId);
      if (held?.workspaceId !== workspaceId) throw noSuchLease();
      if (held.waitsFor === null) return answer(held);
      if (held.state === "ended") others = others === undefined ? OTHERS_MS : 2 * others;
      if (ctx.now().getTime() >= until) throw notYet(held.waitsFor);
    }
  } finally {
    watch.close();
  }
}

function notYet(serverName: string): SluiceError {
  return new SluiceError(
    "unavailable",
    `GPU server ${serverName} has not answered yet; the GPU is given back as soon as it does, within a minute at most.`,
  );
}

function answer(lease: Held): GiveBackAnswer {
  const ended = lease.endedAt ?? lease.grantedAt;
  return {
    leaseId: lease.id,
    parkedBytes: lease.devices.reduce((sum, { parkedBytes }) => sum + parkedBytes, 0),
    heldSeconds: Math.max(0, (ended.getTime() - lease.grantedAt.getTime()) / 1000),
    devices: lease.devices,
  };
}
