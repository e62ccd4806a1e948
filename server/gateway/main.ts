/** The gateway's process. */
import { database } from "#server/db/client.ts";
import { awaitSchema } from "#server/db/migrate.ts";
import { env } from "#server/env.ts";
import { logger } from "#server/log.ts";
import { keepOutput } from "#server/output.ts";
import { stopOnSignal } from "#server/stop-on-signal.ts";
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
await awaitSchema(opened.sql, log);
const gateway = await startGateway(opened, { host, url, port, portalUrl, listen, log });

stopOnSignal(log, async () => {
  await gateway.close();
  await opened.close();
});
console.log(JSON.stringify({ ready: "gateway", port: gateway.port }));
