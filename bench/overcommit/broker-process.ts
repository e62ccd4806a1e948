/** A broker on its own, as a process that can be killed: no workspaces are started on its behalf. */

import { startBroker } from "#server/broker/broker.ts";
import { openDatabase } from "#server/db/client.ts";
import { databaseUrl, env } from "#server/env.ts";
import { logger } from "#server/log.ts";

const database = openDatabase(databaseUrl(), { max: 20 });
const broker = await startBroker({ database, env: env(), log: logger("broker"), port: env().SLUICE_BROKER_PORT });
process.stdout.write(`${JSON.stringify({ ready: "broker", port: broker.port })}\n`);
process.once("SIGTERM", () => process.exit(0));
