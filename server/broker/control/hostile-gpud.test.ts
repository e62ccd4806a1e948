/** Connections to the control channel that send too much, before and after they have proved a server's key. */

import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type Broker, startBroker } from "#server/broker/broker.ts";
import { systemContext } from "#server/context.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { logger } from "#server/log.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { joinSimulatedGpud, type SimulatedGpud } from "./testing-gpud.ts";
import { MOST_OF_ADDRESS } from "./unproved.ts";

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

describe("connections without proof of a key", () => {
  /** Behind a proxy, so that the test can have many addresses. */
  const url = () => `${brokerUrl().replace(/^http/, "ws")}/v1/control`;
  const from = (address: string) => new WebSocket(url(), { headers: { "x-forwarded-for": address } });
  const opened: WebSocket[] = [];
  async function openFrom(address: string): Promise<WebSocket> {
    const socket = from(address).on("error", () => undefined);
    await once(socket, "message");
    opened.push(socket);
    return socket;
  }
  /** A hello of a server that does not exist; only the database can reject it. */
  const hello = JSON.stringify({
    ...{ type: "hello", serverId: "gsv-none", version: "0", protocol: 2, signature: "" },
    ...{ dataAddress: "", tlsFingerprint: null, devices: [], held: [] },
  });

  beforeAll(() => {
    process.env.SLUICE_BROKER_PROXY_HOPS = "1";
    resetEnv();
  });
  afterEach(async () => {
    await Promise.all(
      opened.splice(0).map(async (socket) => {
        if (socket.readyState === WebSocket.CLOSED) return;
        socket.terminate();
        await once(socket, "close");
      }),
    );
  });
  afterAll(() => {
    delete process.env.SLUICE_BROKER_PROXY_HOPS;
    resetEnv();
  });

  it("replaces the oldest silent connection of the same address only", async () => {
    const other = await openFrom("192.0.2.9");
    const held: WebSocket[] = [];
    for (let count = 0; count < MOST_OF_ADDRESS; count++) held.push(await openFrom("192.0.2.1"));
    const [oldest] = held;
    if (oldest === undefined) throw new Error("no connection");
    const end = closed(oldest);
    await openFrom("192.0.2.1");
    expect(await end).toBe(1006);
    expect([...held.slice(1), other].every(({ readyState }) => readyState === WebSocket.OPEN)).toBe(true);
  });

  it("accepts a gpud while silent connections fill the limit", async () => {
    for (let network = 0; network < 512 / MOST_OF_ADDRESS; network++)
      await Promise.all(Array.from({ length: MOST_OF_ADDRESS }, async () => await openFrom(`198.51.100.${network}`)));
    const { token } = await createJoinToken(systemContext(database.db));
    const gpud = await joinSimulatedGpud({ brokerUrl, joinToken: token, name: "late", devices: 1 });
    expect(opened.filter(({ readyState }) => readyState !== WebSocket.OPEN)).toHaveLength(1);
    gpud.close();
  }, 30_000);

  it("refuses only the address with all of its connections waiting for their proof", async () => {
    // While the table is locked, no hello is answered.
    await database.db.transaction(async (locked) => {
      await locked.execute(sql`lock table gpu_servers in access exclusive mode`);
      for (let count = 0; count < MOST_OF_ADDRESS; count++) (await openFrom("192.0.2.2")).send(hello);
      const answer = async () => {
        const socket = from("192.0.2.2").on("error", () => undefined);
        const refused = once(socket, "unexpected-response").then(
          ([, response]) => (response as IncomingMessage).statusCode,
        );
        const accepted = once(socket, "open").then(() => opened.push(socket) && "accepted");
        return await Promise.race([refused, accepted]);
      };
      // The broker may not have read all hellos at the first attempt.
      await expect.poll(answer).toBe(503);
      await openFrom("192.0.2.3");
    });
  }, 30_000);
});

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
