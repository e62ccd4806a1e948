/** The egress process: outgoing connections of local workspaces. */
import { database } from "#server/db/client.ts";
import { checkSchema } from "#server/db/migrate.ts";
import { env } from "#server/env.ts";
import { logger } from "#server/log.ts";
import { keepOutput } from "#server/output.ts";
import { startEgress } from "./egress-service.ts";

keepOutput();
const log = logger("egress");
process.on("unhandledRejection", (error) => log.error({ err: error }, "unhandled rejection"));
const opened = database();
await checkSchema(opened.sql);
const egress = await startEgress(opened.db, { stateDir: env().SLUICE_STATE_DIR, log, environment: process.env });
console.log(JSON.stringify({ ready: "egress" }));

let stopping = false;
const stop = async (): Promise<void> => {
  if (stopping) return;
  stopping = true;
  log.info("stopping");
  setTimeout(() => process.exit(0), 5_000).unref();
  await egress.close();
  await opened.close();
  process.exit(0);
};
process.on("SIGTERM", () => void stop());
process.on("SIGINT", () => void stop());
