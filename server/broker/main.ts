/** The broker's process: leases, the control channel of every gpud, and the reconciler of workspaces. */
import { readFile } from "node:fs/promises";
import { startReconciler } from "#server/broker/reconciler/reconciler.ts";
import { openDatabase, setDatabase } from "#server/db/client.ts";
import { awaitSchema } from "#server/db/migrate.ts";
import { databaseUrl, env } from "#server/env.ts";
import { configuredLaunchers } from "#server/launchers/configured.ts";
import { clusterSettings } from "#server/launchers/kubernetes/settings.ts";
import type { Live } from "#server/live.ts";
import { logger } from "#server/log.ts";
import { keepOutput } from "#server/output.ts";
import { egressPolicyOf } from "#server/services/team/egress-policy-of.ts";
import { type BrokerOptions, type Certificate, startBroker } from "./broker.ts";
import { startDatasetMeasuring } from "./dataset-measuring.ts";
import { startEnvironmentChecks } from "./environment-check/loop.ts";
import { startKeptFilesLimit } from "./kept-files-limit.ts";
import { startWorkspaceWatch } from "./workspace-watch.ts";

keepOutput();
const log = logger("broker");
const database = openDatabase(databaseUrl(), { max: 20, applicationName: "sluice-broker" });
setDatabase(database);

async function main(): Promise<void> {
  await awaitSchema(database.sql, log);
  const launchers = await configuredLaunchers({ egressPolicyOf: (id) => egressPolicyOf(database.db, id) });
  const broker = await startBroker({
    database,
    launchers,
    env: env(),
    log,
    port: env().SLUICE_BROKER_PORT,
    internalPort: env().SLUICE_BROKER_INTERNAL_PORT,
    host: env().SLUICE_LISTEN,
    ...(launchers.has("local") && { stateDir: env().SLUICE_STATE_DIR }),
    ...(await certificates()),
  });
  const reconciler = await startReconciler(database, { launchers, log: logger("reconciler") });
  const cluster = await followCluster(broker.live);
  const watch = startWorkspaceWatch(database, { launchers, log: logger("workspace-watch") });
  // Folders lie on the machine of the local launcher.
  const measuring = launchers.has("local") ? startDatasetMeasuring(database, logger("datasets")) : undefined;
  const limits = [...launchers.values()].map((launcher) => launcher.watchLimits?.(logger("limits")));
  const keptFiles = startKeptFilesLimit(database, { launchers, log: logger("kept-files") });
  const checks = startEnvironmentChecks(database, logger("environment-checks"));
  process.stdout.write(`${JSON.stringify({ ready: "broker", port: broker.port })}\n`);

  let stopping = false;
  const stop = (signal: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ signal }, "broker stops");
    // What hangs must not keep the process: everything that matters is in the tables.
    setTimeout(() => process.exit(0), 10_000).unref();
    void Promise.allSettled([
      watch.stop(),
      reconciler.stop(),
      cluster?.stop(),
      measuring?.stop(),
      keptFiles.stop(),
      checks.stop(),
      ...limits.map((each) => each?.stop()),
      broker.stop(),
    ])
      .then(async () => await database.close())
      .finally(() => process.exit(0));
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

/** Pods and nodes of the cluster that Sluice runs on; the libraries are large, and loaded for a cluster alone. */
async function followCluster(live: Live) {
  const settings = await clusterSettings();
  if (settings === undefined) return undefined;
  const { startClusterWatch } = await import("#server/broker/cluster/cluster-watch.ts");
  return startClusterWatch({ database, live, log: logger("cluster"), settings });
}

async function certificates(): Promise<Pick<BrokerOptions, "tls" | "internalTls">> {
  const [tls, internalTls] = [await certificateOf("BROKER_TLS"), await certificateOf("BROKER_INTERNAL_TLS")];
  if (internalTls !== undefined && tls === undefined)
    throw new Error(
      "SLUICE_BROKER_INTERNAL_TLS_CERTIFICATE is beside SLUICE_BROKER_TLS_CERTIFICATE, which is not set.",
    );
  return { ...(tls && { tls }), ...(internalTls && { internalTls }) };
}

async function certificateOf(port: "BROKER_TLS" | "BROKER_INTERNAL_TLS"): Promise<Certificate | undefined> {
  const [certificate, key] = [`SLUICE_${port}_CERTIFICATE`, `SLUICE_${port}_KEY`] as const;
  const { [certificate]: certificateFile, [key]: keyFile } = env();
  if (certificateFile === undefined && keyFile === undefined) return undefined;
  if (certificateFile === undefined || keyFile === undefined)
    throw new Error(`${certificate} and ${key} are set together, or neither is.`);
  return { cert: await readFile(certificateFile, "utf8"), key: await readFile(keyFile, "utf8") };
}

process.on("unhandledRejection", (error) => log.error({ err: error }, "unhandled rejection"));

main().catch((error: unknown) => {
  log.fatal({ err: error }, "broker could not start");
  process.exit(1);
});
