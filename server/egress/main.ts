/** The egress process: outgoing connections of local workspaces. */
import { database } from "#server/db/client.ts";
import { awaitSchema } from "#server/db/migrate.ts";
import { env } from "#server/env.ts";
import { logger } from "#server/log.ts";
import { keepOutput } from "#server/output.ts";
import { stopOnSignal } from "#server/stop-on-signal.ts";
import { startEgress } from "./egress-service.ts";
import { serveEgressHealth } from "./health.ts";

keepOutput();
const log = logger("egress");
process.on("unhandledRejection", (error) => log.error({ err: error }, "unhandled rejection"));
const opened = database();
await awaitSchema(opened.sql, log);
const { SLUICE_STATE_DIR: stateDir } = env();
const egress = await startEgress(opened.db, { stateDir, log, environment: process.env });
const closeHealth = await serveEgressHealth(opened.db, stateDir);

stopOnSignal(log, async () => {
  closeHealth();
  await egress.close();
  await opened.close();
});
console.log(JSON.stringify({ ready: "egress" }));
