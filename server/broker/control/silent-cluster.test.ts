/** A gpud that shows a pod's token while the cluster's API server takes requests and answers none. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { dumpYaml } from "@kubernetes/client-node";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Broker, startBroker } from "#server/broker/broker.ts";
import { systemContext } from "#server/context.ts";
import { gpuServers } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { logger } from "#server/log.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { joinSimulatedGpud } from "./testing-gpud.ts";

let folder: string;
let database: TestDatabase;
let broker: Broker;
let silent: Server;
/** What the cluster was asked. */
const asked: (string | undefined)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-silent-"));
  silent = createServer(({ url }) => void asked.push(url));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const kubeconfig = path.join(folder, "kubeconfig");
  const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const cluster = {
    ...{ apiVersion: "v1", kind: "Config", "current-context": "it" },
    clusters: [{ name: "it", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "it", user: { token: "it" } }],
    contexts: [{ name: "it", context: { cluster: "it", user: "it" } }],
  };
  await writeFile(kubeconfig, dumpYaml(cluster));
  const settings = path.join(folder, "settings.json");
  const told = {
    ...{ kubeconfig, environments: {}, sizes: {}, home: { size: "1Gi" }, team: {} },
    network: { from: [{ addresses: "127.0.0.1/32" }], to: [] },
    gpuServers: { namespace: "sluice", account: "gpud" },
  };
  await writeFile(settings, JSON.stringify(told));
  process.env.SLUICE_KUBERNETES_SETTINGS = settings;
  resetEnv();
  database = await useTestDatabase({ max: 10 });
  const env = { SLUICE_STATE_DIR: folder };
  broker = await startBroker({ database, env, log: logger("test"), port: 0 });
});
afterAll(async () => {
  delete process.env.SLUICE_KUBERNETES_SETTINGS;
  resetEnv();
  await broker?.stop();
  await database?.drop();
  silent?.closeAllConnections();
  silent?.close();
  await rm(folder, { recursive: true, force: true });
});

it("has it in the pool all the same, where it was before", async () => {
  const { token } = await createJoinToken(systemContext(database.db));
  const brokerUrl = () => `http://127.0.0.1:${broker.port}`;
  // Of a token's form; whose it is only the cluster could tell.
  const account = "header.claims.signature";
  const gpud = await joinSimulatedGpud({ brokerUrl, joinToken: token, name: "quiet", devices: 1, account });
  expect(asked).toEqual(["/apis/authentication.k8s.io/v1/tokenreviews"]);
  const is = eq(gpuServers.id, gpud.serverId);
  const row = async () => (await database.db.select().from(gpuServers).where(is))[0];
  expect(await row()).toMatchObject({ state: "online", nodeName: null, podUid: null });
  await database.db.update(gpuServers).set({ nodeName: "node-1", podUid: "pod-1" }).where(is);
  gpud.cut();
  await gpud.connect();
  expect(asked).toHaveLength(2);
  expect(await row()).toMatchObject({ state: "online", nodeName: "node-1", podUid: "pod-1" });
  gpud.close();
}, 60_000);
