/** One transaction that holds the lock of the GPU type it is about. */
import { type Context, inTransaction } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { lockGpuType } from "./world.ts";

type Locked = Context & { db: Transaction };

/** Runs `fn` with the lock of one GPU type. */
export async function withTypeLock<T>(ctx: Context, gpuType: string, fn: (tx: Locked) => Promise<T>): Promise<T> {
  return await inTransaction(ctx, async (tx) => {
    await lockGpuType(tx.db, gpuType);
    return await fn(tx);
  });
}
