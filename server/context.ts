/** What every service gets: who acts, on which database, when, under which trace id. */
import { type SQL, sql } from "drizzle-orm";
import { authorize } from "#server/auth/authorize.ts";
import type { Principal } from "#server/auth/principal.ts";
import { system } from "#server/auth/principal.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { insertion } from "#server/db/insertion.ts";
import { auditEvents } from "#server/db/schema/index.ts";
import { type Change, notification, notify, notifyAll } from "#server/live.ts";
import { newTraceId } from "#server/log.ts";

export { authorize };

export type Context = {
  db: Database | Transaction;
  principal: Principal;
  now: () => Date;
  traceId: string;
  /** Where the request came from (server/http/client-address.ts), for the audit; left out for the product's own work. */
  address?: string | undefined;
};

/** The context of Sluice's own work: start-up, scheduler, reconcilers. */
export function systemContext(
  db: Database | Transaction,
  options: { now?: () => Date; traceId?: string } = {},
): Context {
  return { db, principal: system, now: options.now ?? (() => new Date()), traceId: options.traceId ?? newTraceId() };
}

/** Runs `fn` in one transaction (a savepoint when the context is in one already). */
export async function inTransaction<T>(
  ctx: Context,
  fn: (tx: Context & { db: Transaction }) => Promise<T>,
): Promise<T> {
  return await ctx.db.transaction(async (db) => await fn({ ...ctx, db }));
}

export type AuditInput = {
  /** `noun.verb`. */
  action: string;
  /** The id of what it was done to. */
  subject?: string;
  teamId?: string;
  /** What a reader wants to know besides; never a secret. */
  detail?: Record<string, unknown>;
};

/** Writes who did what, in the caller's transaction. */
export async function audit(ctx: Context, input: AuditInput): Promise<void> {
  await ctx.db.insert(auditEvents).values(auditRow(ctx, input));
  await notify(ctx.db, "audit", input.subject ?? input.action);
}

/** One entry of the audit log, and who it is about: each has a context of its own. */
export type AuditEntry = { by: Context; input: AuditInput };

/**
 * Writes what several did and tells every process what has changed, in one statement of this transaction; `also` are
 * other writes that go with it.
 */
export async function record(
  db: Database | Transaction,
  entries: readonly AuditEntry[],
  changes: readonly Change[],
  also: readonly SQL[] = [],
): Promise<void> {
  const audited = entries.map(({ input }) => ({ topic: "audit" as const, id: input.subject ?? input.action }));
  const rows = entries.map(({ by, input }) => auditRow(by, input));
  const writes = rows.length === 0 ? also : [...also, insertion(auditEvents, rows)];
  if (writes.length === 0) return await notifyAll(db, changes);
  const parts = writes.map((write, index) => sql`${sql.raw(`write_${index}`)} as (${write})`);
  await db.execute(sql`with ${sql.join(parts, sql`, `)} ${notification([...changes, ...audited])}`);
}

function auditRow(ctx: Context, input: AuditInput) {
  const actor = actorOf(ctx.principal);
  return {
    at: ctx.now(),
    actorKind: actor.kind,
    actorId: actor.id,
    action: input.action,
    subject: input.subject ?? null,
    teamId: input.teamId ?? null,
    detail: input.detail ?? {},
    traceId: ctx.traceId,
    address: ctx.address ?? null,
    tokenId: ctx.principal.kind === "user" ? (ctx.principal.tokenId ?? null) : null,
  };
}

/** Who acts, as the audit log names it. */
export function actorOf(principal: Principal): { kind: "user" | "workspace" | "gpud" | "system"; id: string | null } {
  switch (principal.kind) {
    case "user":
      return { kind: "user", id: principal.userId };
    case "workspace":
      return { kind: "workspace", id: principal.workspaceId };
    case "gpud":
      return { kind: "gpud", id: principal.serverId };
    case "system":
    case "anonymous":
      // Nobody signed in acts only through a one-time code, and the service sets the person it made as principal.
      return { kind: "system", id: null };
  }
}
