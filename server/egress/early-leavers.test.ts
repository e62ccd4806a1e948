/** Clients of the egress proxy that leave before their connection is made. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createEgressProxy, type EgressProxy } from "./egress-proxy.ts";
import { LoopbackIsPublic } from "./testing.ts";
import { upstreamOf } from "./upstream.ts";

const LEAVERS = Number(process.env.SLUICE_TEST_LEAVERS ?? 150);
const SOON = { timeout: 10_000, interval: 25 };

let folder: string;
let socketPath: string;
/** A server that accepts connections and never answers. */
let silent: Server;
let made: number;
let proxy: EgressProxy | undefined;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-leavers-"));
  socketPath = path.join(folder, "egress.sock");
  made = 0;
  silent = createServer((socket) => {
    made += 1;
    socket.on("error", () => undefined);
    socket.resume();
  });
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
});
afterEach(async () => {
  proxy?.close();
  silent.close();
  await rm(folder, { recursive: true });
});

async function serve(resolve: () => Promise<{ address: string; family: number }[]>, env: NodeJS.ProcessEnv) {
  proxy = createEgressProxy({
    rules: new LoopbackIsPublic(() => ({ own: [], gateways: [], networks: [] })),
    policy: () => ({ mode: "all", allow: [] }),
    gpuServers: () => new Set(),
    indexes: new Set(),
    upstream: upstreamOf(env),
    resolve,
  });
  proxy.server.listen(socketPath);
  await once(proxy.server, "listening");
}

/** The three ways to ask for a connection to `host`. */
function openings(host: string, port: number): Buffer[] {
  const name = Buffer.from(host);
  return [
    Buffer.from(`CONNECT ${host}:${port} HTTP/1.1\r\n\r\n`),
    Buffer.from(`GET http://${host}:${port}/ HTTP/1.1\r\nhost: ${host}\r\n\r\n`),
    Buffer.from([5, 1, 0, 5, 1, 0, 3, name.length, ...name, port >> 8, port & 255]),
  ];
}

async function ask(opening: Buffer) {
  const client = connect(socketPath);
  client.on("error", () => undefined);
  client.resume();
  await once(client, "connect");
  client.write(opening);
  return client;
}

const connections = async (server: Server) =>
  await new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });

it("keeps no connection of clients that leave while their host is looked up", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  let lookups = 0;
  await serve(
    async () => {
      lookups += 1;
      await gate;
      return [{ address: "127.0.0.1", family: 4 }];
    },
    { NODE_ENV: "test" },
  );
  const { port } = silent.address() as AddressInfo;
  const ways = openings("slow.test", port);
  const clients = await Promise.all(Array.from({ length: LEAVERS }, (_, at) => ask(ways[at % 3] as Buffer)));
  await expect.poll(() => lookups, SOON).toBeGreaterThan(0);
  await sleep(100);
  for (const client of clients) client.destroy();
  await sleep(100);
  open();
  await expect.poll(() => lookups, SOON).toBe(LEAVERS);
  await expect.poll(async () => await connections(proxy?.server as Server), SOON).toBe(0);
  await expect.poll(async () => await connections(silent), SOON).toBe(0);
  // HTTP notices the end of a client. The other ways leave one direction open, and notice it when they answer.
  expect(made).toBeLessThanOrEqual((2 * LEAVERS) / 3);
}, 30_000);

it("ends the attempts through the host's proxy when it closes", async () => {
  const { port } = silent.address() as AddressInfo;
  const environment = { NODE_ENV: "test", HTTPS_PROXY: `http://127.0.0.1:${port}` } as const;
  await serve(async () => [{ address: "203.0.113.9", family: 4 }], environment);
  for (const opening of openings("far.test", 443)) await ask(opening);
  await expect.poll(() => made, SOON).toBe(3);
  proxy?.close();
  await expect.poll(async () => await connections(silent), SOON).toBe(0);
}, 30_000);
