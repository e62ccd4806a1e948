/**
 * Rounds for many at once: whoever asks, or has changed a queue, joins the next round of its GPU type, and one round in
 * one transaction decides for all who joined. The type's lock is taken once a round, not once a request.
 */
import { sql } from "drizzle-orm";
import { type AuditEntry, type Context, inTransaction, systemContext } from "#server/context.ts";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { isAway } from "#server/errors.ts";
import { Group, groupOf, type Outcome } from "#server/group.ts";
import type { World } from "#server/scheduler/types.ts";
import { type Advanced, type Arrivals, advanceQueue } from "./advance.ts";
import { answerFor, queuedIn, type RequestRow } from "./answer.ts";
import { type Ask, chargeFor, requestRow, settleEarlier } from "./asking.ts";
import { leaseViewOf } from "./view.ts";
import { lockGpuType } from "./world.ts";
import { readWorldRows } from "./world-rows.ts";

type Tx = Context & { db: Transaction };
type Db = Database | Transaction;

/** Any number that no other lock of ours uses; the second half is the workspace. */
const WORKSPACE_LOCK = 7_411_012;

/** What a round tells one who joined: an answer, a row that is known already, or to come again with the next round. */
type Told = { answer: LeaseRequestAnswer } | { known: RequestRow } | { again: true } | undefined;

const rounds = groupOf<Db, Group<Ask | undefined, Told>>(
  (db, gpuType) =>
    new Group(
      async (joined) => await inTransaction(systemContext(db), async (tx) => await round(tx, gpuType, joined)),
      isAway,
    ),
);

/** Asks for a GPU of this type and answers what the round decided. */
export async function ask(gpuType: string, asked: Ask): Promise<LeaseRequestAnswer> {
  const { db } = asked.ctx;
  for (;;) {
    const told = await rounds(db, gpuType).join(asked);
    if (told === undefined || "again" in told) continue;
    return "answer" in told ? told.answer : await answerFor(db, told.known, asked.ctx.now());
  }
}

/**
 * Advances the queue of a type after a change that is committed; settles when the round that saw it is. Inside a
 * transaction (nothing is committed yet) call `advanceQueue` under the lock instead.
 */
export async function advanceTogether(db: Db, gpuType: string): Promise<void> {
  await rounds(db, gpuType).join(undefined);
}

async function round(tx: Tx, gpuType: string, joined: readonly (Ask | undefined)[]): Promise<Outcome<Told>[]> {
  const asks = firstOfEachWorkspace(joined);
  const told = new Map<Ask, Outcome<Told>>();
  // One at a time in a workspace: the same key twice is one request, and one owner waits for one thing. All of it goes out
  // at once; the server works it off in this order, each statement seeing what was committed before it began.
  const [, , settled, read] = await Promise.all([
    lockWorkspaces(tx.db, asks),
    lockGpuType(tx.db, gpuType),
    settleEarlier(tx, asks),
    readWorldRows(tx.db, gpuType, tx.now()),
  ]);
  for (const one of asks) {
    const known = settled.known.get(one);
    const error = settled.conflicts.get(one);
    if (known) told.set(one, { ok: true, value: { known } });
    else if (error) told.set(one, { ok: false, error });
  }
  const rows = new Map<Ask, RequestRow>();
  const arrivals: Arrivals = (world) => {
    for (const one of asks) if (!told.has(one)) arrive(one, world, rows, told);
    return [...rows].map(([one, row]) => ({
      row,
      who: one.who,
      waits: one.input.waitSeconds > 0,
      entry: entryOf(one, row),
    }));
  };
  const advanced = await advanceQueue(tx, gpuType, { arrivals, ...(settled.changed ? {} : { rows: read }) });
  for (const [one, row] of rows) told.set(one, { ok: true, value: { answer: answerOf(one, row, advanced, tx.now()) } });
  return joined.map((one) => (one === undefined ? done : (told.get(one) ?? again)));
}

const done: Outcome<Told> = { ok: true, value: undefined };
const again: Outcome<Told> = { ok: true, value: { again: true } };

/** Two of one workspace come in two rounds: the later may be the same request, or take the place of the earlier. */
function firstOfEachWorkspace(joined: readonly (Ask | undefined)[]): Ask[] {
  const first = new Map<string, Ask>();
  for (const one of joined) {
    if (one !== undefined && !first.has(one.principal.workspaceId)) first.set(one.principal.workspaceId, one);
  }
  return [...first.values()];
}

/** In one order, so that two rounds never wait for each other. */
async function lockWorkspaces(db: Transaction, asks: readonly Ask[]): Promise<void> {
  if (asks.length === 0) return;
  const ids = JSON.stringify(asks.map(({ principal }) => principal.workspaceId));
  await db.execute(sql`
    select pg_advisory_xact_lock(${WORKSPACE_LOCK}, half)
    from (select distinct hashtext(id) as half from json_array_elements_text(${ids}::json) id order by half) ordered`);
}

function arrive(one: Ask, world: World, rows: Map<Ask, RequestRow>, told: Map<Ask, Outcome<Told>>): void {
  const charge = chargeFor(one, world);
  if (charge.ok) rows.set(one, requestRow(one, world.gpuType, charge));
  else {
    const { requestId } = one.input;
    told.set(one, { ok: true, value: { answer: { state: "refused", requestId, reason: charge.reason } } });
  }
}

function entryOf({ ctx, input }: Ask, { id, teamId, milli, gpuType }: RequestRow): AuditEntry {
  const detail = { amount: input.amount, milli, gpuType, guaranteed: input.guaranteed };
  return { by: ctx, input: { action: "lease.request", subject: id, teamId, detail } };
}

function answerOf(one: Ask, row: RequestRow, advanced: Advanced, now: Date): LeaseRequestAnswer {
  const { requestId } = one.input;
  const { world, verdicts, granted, refused } = advanced;
  const parts = granted.get(row.id);
  const reason = refused.get(row.id);
  const [first] = parts ?? [];
  if (first) return { state: "granted", requestId, lease: leaseViewOf(first, parts) };
  return reason ? { state: "refused", requestId, reason } : queuedIn(world, row, now, verdicts);
}
