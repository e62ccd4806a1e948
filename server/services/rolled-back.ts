import { type Context, inTransaction } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";

/** Carries the answer out of a transaction that must not stay. */
class Undo<T> extends Error {
  readonly answer: T;
  constructor(answer: T) {
    super("a preview is never kept");
    this.answer = answer;
  }
}

/** What it would answer: all that it writes is undone. */
export async function rolledBack<T>(ctx: Context, run: (tx: Context & { db: Transaction }) => Promise<T>): Promise<T> {
  try {
    return await inTransaction(ctx, async (tx): Promise<T> => {
      throw new Undo(await run(tx));
    });
  } catch (error) {
    if (error instanceof Undo) return error.answer as T;
    throw error;
  }
}
