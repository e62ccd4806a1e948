/** Work on what-if questions behind the answer to whoever asked: one at a time, in a thread of its own. */
import path from "node:path";
import { Worker } from "node:worker_threads";
import { and, eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { WhatIfResult, WhatIfType } from "#server/contracts/what-if.ts";
import { whatIfs } from "#server/db/schema/index.ts";
import { messageFor } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { logger } from "#server/log.ts";
import type { ReplayInput } from "./replay.ts";

export type FromWorker = { progress: number } | { types: WhatIfType[] } | { failed: string };

/** Without a sign for so long, the process that worked on a question is gone. */
export const SILENT_MS = 30_000;
const SIGN_MS = 10_000;
/** Longer than anybody waits for an answer. */
const LONGEST_MS = 5 * 60_000;
const MEMORY_MB = 768;

type Job = { id: string; currency: string; read: () => Promise<ReplayInput[]> };
type Running = { ids: Set<string>; last: Promise<void> };
const shared = globalThis as typeof globalThis & { __sluiceWhatIfs?: Running };

/** Begins when those before it are done. Whatever becomes of it stands in its row. */
export function start(ctx: Pick<Context, "db">, job: Job): Promise<void> {
  shared.__sluiceWhatIfs ??= { ids: new Set(), last: Promise.resolve() };
  const running = shared.__sluiceWhatIfs;
  running.ids.add(job.id);
  const sign = setInterval(() => void save(ctx, job.id, {}).catch(() => undefined), SIGN_MS).unref();
  const done = running.last
    .then(() => work(ctx, job))
    .catch((error: unknown) => {
      logger("portal").error({ err: error, whatIf: job.id }, "a what-if could not be answered");
    })
    .finally(() => {
      clearInterval(sign);
      running.ids.delete(job.id);
    });
  running.last = done;
  return done;
}

/** How many are worked on or wait for their turn in this process. */
export const pending = (): number => shared.__sluiceWhatIfs?.ids.size ?? 0;

async function work(ctx: Pick<Context, "db">, { id, currency, read }: Job): Promise<void> {
  try {
    const types = await inThread(await read(), (progress) => {
      void save(ctx, id, { progress }).catch(() => undefined);
    });
    await save(ctx, id, { state: "done", progress: 1, result: { currency, types } satisfies WhatIfResult });
  } catch (error) {
    logger("portal").error({ err: error, whatIf: id }, "a what-if has failed");
    const message = messageFor(error);
    await save(ctx, id, { state: "failed", message });
  }
}

async function save(ctx: Pick<Context, "db">, id: string, change: Partial<typeof whatIfs.$inferInsert>): Promise<void> {
  // A sign of life that comes late must not undo what came of it.
  const which = change.state === undefined ? and(eq(whatIfs.id, id), eq(whatIfs.state, "running")) : eq(whatIfs.id, id);
  await ctx.db
    .update(whatIfs)
    .set({ ...change, aliveAt: new Date() })
    .where(which);
  await notify(ctx.db, "what-if", id);
}

/** Node reads the source itself: the bundler knows nothing of this file. */
function inThread(inputs: ReplayInput[], onProgress: (progress: number) => void): Promise<WhatIfType[]> {
  const file = path.join(/* turbopackIgnore: true */ process.cwd(), "server/services/what-if/worker.ts");
  const worker = new Worker(/* turbopackIgnore: true */ file, {
    workerData: inputs,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
  return new Promise<WhatIfType[]>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("It took too long. Look at a shorter time.")), LONGEST_MS);
    late.unref();
    worker.on("message", (message: FromWorker) => {
      if ("progress" in message) onProgress(message.progress);
      else if ("types" in message) resolve(message.types);
      else reject(new Error(message.failed));
    });
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("The replay ended without an answer. Ask again.")));
  }).finally(() => void worker.terminate());
}
