/**
 * How long a launch takes: from the API call to a kernel that answered, with the environment built. The reconciler,
 * the local launcher and PostgreSQL are the real ones, on a state directory of their own.
 */
import { startReconciler } from "#server/broker/reconciler/reconciler.ts";
import { openDatabase, setDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { resetEnv } from "#server/env.ts";
import { makeTestState } from "#server/launchers/local/testing.ts";
import { createLive } from "#server/live.ts";
import { makeWorld } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { get } from "#server/services/workspace/get.ts";
import { stop } from "#server/services/workspace/stop.ts";

const LAUNCHES = 10;

export const targets = { p50_s: "<= 5" };

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const state = await makeTestState((line) => console.log(`  ${line}`));
  process.env.SLUICE_STATE_DIR = state.stateDir;
  process.env.SLUICE_LOG_LEVEL ??= "warn";
  const postgres = await startEmbeddedPostgres(state.stateDir);
  process.env.DATABASE_URL = postgres.url;
  resetEnv();
  await migrateDatabase(postgres.url);
  const database = openDatabase(postgres.url);
  setDatabase(database);
  const reconciler = await startReconciler(database);
  const live = createLive(database.sql);
  try {
    const { ctx } = (await makeWorld(database.db)).member;
    const seconds: number[] = [];
    const settled = async (id: string, wanted: string): Promise<void> => {
      const deadline = AbortSignal.timeout(60_000);
      for (;;) {
        const changed = new Promise<void>((resolve) => {
          const unsubscribe = live.subscribe(["workspace"], () => {
            unsubscribe();
            resolve();
          });
        });
        const { observed, message } = await get(ctx, { id });
        if (observed === wanted) return;
        if (observed === "failed") throw new Error(message ?? "The launch failed.");
        deadline.throwIfAborted();
        await changed;
      }
    };
    for (let turn = 0; turn < LAUNCHES; turn++) {
      const started = performance.now();
      const { id } = await create(ctx, { name: `launch ${turn}`, image: "cuda-python" });
      await settled(id, "running");
      seconds.push((performance.now() - started) / 1000);
      await stop(ctx, { id });
      await settled(id, "stopped");
    }
    seconds.sort((a, b) => a - b);
    const at = (share: number) =>
      seconds[Math.min(seconds.length - 1, Math.floor(seconds.length * share))] ?? Number.NaN;
    return { metrics: { p50_s: at(0.5), p95_s: at(0.95), launches: seconds.length } };
  } finally {
    await live.close();
    await reconciler.stop();
    await database.close();
    await postgres.stop();
    await state.drop();
  }
}
