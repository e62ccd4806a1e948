/** Connections to the control channel that send too much, before and after they have proved a server's key. */

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import WebSocket from "ws";
import { type Broker, startBroker } from "#server/broker/broker.ts";
import { systemContext } from "#server/context.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { logger } from "#server/log.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { joinSimulatedGpud, type SimulatedGpud } from "./testing-gpud.ts";

let folder: string;
let database: TestDatabase;
let broker: Broker;
const brokerUrl = () => `http://127.0.0.1:${broker.port}`;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-hostile-"));
  database = await useTestDatabase({ max: 10 });
  broker = await startBroker({ database, env: { SLUICE_STATE_DIR: folder }, log: logger("test"), port: 0 });
}, 60_000);
afterAll(async () => {
  await broker?.stop();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

async function open(): Promise<WebSocket> {
  const socket = new WebSocket(`${brokerUrl().replace(/^http/, "ws")}/v1/control`);
  // A broken connection is what is tested.
  socket.on("error", () => undefined);
  await once(socket, "message");
  return socket;
}

/** The code with which the broker closed; 1006: without a word. */
async function closed(socket: WebSocket): Promise<number> {
  const [code] = (await once(socket, "close")) as [number];
  return code;
}

it("closes a connection whose message is larger than 4 MiB", async () => {
  const socket = await open();
  const end = closed(socket);
  socket.send(" ".repeat(5 * 1024 * 1024));
  expect([1006, 1009]).toContain(await end);
});

it("ends an unproved connection that sends more than a hello", async () => {
  const large = await open();
  const end = closed(large);
  large.send(" ".repeat(2 * 1024 * 1024));
  expect(await end).toBe(1006);
  const many = await open();
  const ended = closed(many);
  const usage = JSON.stringify({ type: "usage", leases: [] });
  for (let count = 0; count < 10; count++) many.send(usage);
  expect([1006, 1008]).toContain(await ended);
});

it("refuses connections above those that may be unproved, and takes them again when others have gone", async () => {
  const all = await Promise.all(Array.from({ length: 512 }, open));
  const refused = new WebSocket(`${brokerUrl().replace(/^http/, "ws")}/v1/control`);
  const [error] = (await once(refused, "error")) as [Error];
  expect(error.message).toContain("503");
  const ended = all.map(closed);
  for (const socket of all) socket.terminate();
  await Promise.all(ended);
  await expect.poll(async () => await open().then((socket) => socket.terminate(), String)).toBeUndefined();
}, 30_000);

it("ends the connection of a gpud that speaks of ever more leases", async () => {
  const { token } = await createJoinToken(systemContext(database.db));
  const gpud: SimulatedGpud = await joinSimulatedGpud({ brokerUrl, joinToken: token, name: "liar", devices: 1 });
  const usage = { sessions: 1, memoryBytes: 0, parkedBytes: 0, gpuTimeUs: 0, deliveredUs: 0, promisedUs: 0 };
  const rest = { calls: 0, bytesIn: 0, bytesOut: 0, smActivity: null, running: null };
  for (let part = 0; part < 11; part++) {
    const leases = Array.from({ length: 1_000 }, (_, at) => ({ leaseId: `ls-${part}-${at}`, ...usage, ...rest }));
    gpud.send({ type: "usage", leases });
  }
  const connected = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${broker.internalPort}/metrics`)).text();
    return /^sluice_control_connections (\d+)$/m.exec(metrics)?.[1];
  };
  await expect.poll(connected, { timeout: 10_000 }).toBe("0");
  gpud.close();
}, 30_000);
