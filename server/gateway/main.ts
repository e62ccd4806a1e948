/** The gateway's process. */
import { database } from "#server/db/client.ts";
import { checkSchema } from "#server/db/migrate.ts";
import { env } from "#server/env.ts";
import { logger } from "#server/log.ts";
import { keepOutput } from "#server/output.ts";
import { startGateway } from "./gateway.ts";

keepOutput();

const {
  SLUICE_GATEWAY_HOST: host,
  SLUICE_GATEWAY_URL: url,
  SLUICE_GATEWAY_PORT: port,
  // Plain HTTP: for this machine only, unless what ends TLS stands in front of us elsewhere.
  SLUICE_LISTEN: listen,
  SLUICE_PORTAL_URL: portalUrl,
} = env();
const log = logger("gateway");
const opened = database();
await checkSchema(opened.sql);
const gateway = await startGateway(opened, { host, url, port, portalUrl, listen, log });
console.log(JSON.stringify({ ready: "gateway", port: gateway.port }));

let stopping = false;
const stop = async (): Promise<void> => {
  if (stopping) return;
  stopping = true;
  log.info("stopping");
  setTimeout(() => process.exit(0), 5_000).unref();
  await gateway.close();
  await opened.close();
  process.exit(0);
};
process.on("SIGTERM", () => void stop());
process.on("SIGINT", () => void stop());
