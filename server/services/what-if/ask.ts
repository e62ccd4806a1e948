import { createHash } from "node:crypto";
import { desc, eq, notInArray, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type WhatIfInput, type WhatIfQuestion, type WhatIfView, whatIfInput } from "#server/contracts/what-if.ts";
import { whatIfs } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { parse } from "#server/parse.ts";
import type { Time } from "#server/scheduler/simulate/outcome.ts";
import { knownGpuTypes } from "#server/services/lease/world.ts";
import { observedSince } from "#server/services/utilisation/observed-since.ts";
import { type Present, readPresent, readTeamNames } from "./present.ts";
import { readLog } from "./read-log.ts";
import { pending, SILENT_MS, start } from "./run.ts";
import { viewOf } from "./view.ts";

const DAY_MS = 24 * 3_600_000;
const LONGEST_DAYS = 92;
/** Of all types together: a minute or two of one core for each pool. */
export const MOST_REQUESTS = 50_000;
/** Those after it have to wait for these, and nobody waits that long. */
const MOST_PENDING = 5;
/** Answers that are kept. */
const KEPT = 100;
/** Raised when the same question would be answered otherwise. */
const ENGINE = 1;

/**
 * Plays the demand of a time again on another pool. Answers at once with the row of the question: with its answer when
 * the same was asked before and nothing has changed since; else the work goes on, and topic `what-if` tells how far.
 */
export async function ask(ctx: Context, raw: WhatIfInput): Promise<WhatIfView> {
  const question = parse(whatIfInput, raw);
  authorize(ctx.principal, "what-if.ask");
  const time = await timeOf(ctx, question);
  await refuseUnknown(ctx, question);
  const present = await readPresent(
    ctx,
    question.types.map(({ gpuType }) => gpuType),
    time,
  );
  const mark = await markOf(ctx, question, time);
  refuseCount(mark.count);
  const now = ctx.now();
  const types = question.types.map(({ gpuType, gpus, quotas }) => ({ gpuType, gpus: gpus ?? null, quotas }));
  const key = createHash("sha256")
    .update(JSON.stringify([ENGINE, time, types, present, mark, env().SLUICE_CURRENCY]))
    .digest("hex");
  const [known] = await ctx.db.select().from(whatIfs).where(eq(whatIfs.key, key));
  const alive = known !== undefined && now.getTime() - known.aliveAt.getTime() < SILENT_MS;
  if (known?.state === "done" || (known?.state === "running" && alive)) return viewOf(known);
  if (pending() >= MOST_PENDING) {
    throw new SluiceError("unavailable", "Other questions are being worked on. Ask again when they are answered.");
  }
  const row = await inTransaction(ctx, async (tx) => {
    const askedBy = tx.principal.kind === "user" ? tx.principal.userId : null;
    const fresh = { question, state: "running" as const, progress: 0, message: null, aliveAt: now, askedBy };
    const [saved] = await tx.db
      .insert(whatIfs)
      .values({ ...fresh, id: newId("wif"), key, createdAt: now })
      .onConflictDoUpdate({ target: whatIfs.key, set: { ...fresh, createdAt: now } })
      .returning();
    if (saved === undefined) throw new Error("a question that was written is there");
    const newest = tx.db.select({ id: whatIfs.id }).from(whatIfs).orderBy(desc(whatIfs.createdAt)).limit(KEPT);
    await tx.db.delete(whatIfs).where(notInArray(whatIfs.id, newest));
    await audit(tx, { action: "what-if.ask", subject: saved.id, detail: { from: question.from, to: question.to } });
    return saved;
  });
  void start(ctx, {
    id: row.id,
    currency: env().SLUICE_CURRENCY,
    read: () => readInputs(ctx, question, time, present),
  });
  return viewOf(row);
}

async function timeOf(ctx: Context, question: WhatIfQuestion): Promise<Time> {
  // A time that is not over ends on a round minute, so that who asks twice asks the same.
  const to = Math.min(Date.parse(question.to), Math.floor(ctx.now().getTime() / 60_000) * 60_000);
  const from = Date.parse(question.from);
  if (from >= to) throw new SluiceError("invalid", "from: The time begins before it ends, and before now.");
  if (to - from > LONGEST_DAYS * DAY_MS)
    throw new SluiceError("invalid", `from: Ask for ${LONGEST_DAYS} days at most.`);
  // Before the first GPU joined, the current pool would count as idle, and the recorded pool would not.
  const since = (await observedSince(ctx.db))?.getTime() ?? from;
  return { from: since < to ? Math.max(from, since) : from, to };
}

async function refuseUnknown(ctx: Context, { types }: WhatIfQuestion): Promise<void> {
  const known = await knownGpuTypes(ctx.db);
  const names = await readTeamNames(ctx);
  for (const { gpuType, quotas } of types) {
    if (!known.includes(gpuType)) throw new SluiceError("invalid", `types: There is no GPU type ${gpuType}.`);
    for (const { teamId, guaranteedMilli, limitMilli } of quotas) {
      const name = names.get(teamId);
      if (name === undefined) throw new SluiceError("invalid", `types: There is no team ${teamId}.`);
      if (limitMilli < guaranteedMilli) {
        throw new SluiceError("invalid", `types: The limit of ${name} for ${gpuType} is below what is guaranteed.`);
      }
    }
  }
  if (new Set(types.map(({ gpuType }) => gpuType)).size < types.length) {
    throw new SluiceError("invalid", "types: Name each GPU type once.");
  }
}

type Mark = { count: number; decided: string | null; ended: string | null };

/** The state of the log in that time: the same mark, the same log. */
async function markOf(ctx: Context, { types }: WhatIfQuestion, { from, to }: Time): Promise<Mark> {
  const names = sql.param(types.map(({ gpuType }) => gpuType));
  const [start, end] = [from, to].map((at) => sql`${new Date(at).toISOString()}::timestamptz`);
  const [mark] = await ctx.db.execute<Mark>(sql`
    select count(*)::int as count, max(r.decided_at)::text as decided,
      (select max(ended_at)::text from leases where gpu_type = any(${names}::text[])
        and granted_at < ${end} and ended_at > ${start}) as ended
    from lease_requests r
    where r.gpu_type = any(${names}::text[]) and r.created_at >= ${start} and r.created_at < ${end}`);
  return mark ?? { count: 0, decided: null, ended: null };
}

function refuseCount(count: number): void {
  if (count === 0) throw new SluiceError("invalid", "Nobody asked for a GPU in this time. Choose another.");
  if (count <= MOST_REQUESTS) return;
  const [have, most] = [count, MOST_REQUESTS].map((each) => each.toLocaleString("en"));
  throw new SluiceError(
    "invalid",
    `from: There are ${have} requests in this time, ${most} at most are played. Choose a shorter one.`,
  );
}

async function readInputs(ctx: Context, question: WhatIfQuestion, time: Time, present: Present[]) {
  const teamNames = await readTeamNames(ctx);
  const inputs = [];
  for (const { gpuType, gpus, quotas } of question.types) {
    const pool = present.find((one) => one.gpuType === gpuType);
    if (pool === undefined) continue;
    const log = await readLog(ctx, gpuType, time, MOST_REQUESTS);
    const proposed = quotas.filter((quota) => changes(quota, pool));
    const amounts = proposed.map(({ teamId, ...rest }) => [teamId, rest] as const);
    const proposal = { gpus: gpus ?? pool.devices.length, quotas: new Map(amounts) };
    inputs.push({ ...pool, time, now: ctx.now().getTime(), log, teamNames, proposal });
  }
  return inputs;
}

/** A quota that is proposed as it is changes nothing, its calendar included. */
function changes(quota: WhatIfQuestion["types"][number]["quotas"][number], { rules }: Present): boolean {
  const now = rules.quotas.find(({ teamId }) => teamId === quota.teamId);
  return now?.guaranteedMilli !== quota.guaranteedMilli || now.limitMilli !== quota.limitMilli;
}
