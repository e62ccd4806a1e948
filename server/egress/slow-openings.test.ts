/** Clients of the egress proxy that send their opening byte by byte. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createEgressProxy, type EgressProxy } from "./egress-proxy.ts";
import { LoopbackIsPublic } from "./testing.ts";

const OPENING_MS = 500;

let folder: string;
let socketPath: string;
let echo: Server;
let proxy: EgressProxy;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-openings-"));
  socketPath = path.join(folder, "egress.sock");
  echo = createServer((socket) => socket.pipe(socket).on("error", () => undefined));
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
  proxy = createEgressProxy({
    rules: new LoopbackIsPublic(() => ({ own: [], gateways: [], networks: [] })),
    policy: () => ({ mode: "all", allow: [] }),
    gpuServers: () => new Set(),
    indexes: new Set(),
    resolve: async (host) => [{ address: host, family: 4 }],
    openingMs: OPENING_MS,
  });
  proxy.server.listen(socketPath);
  await once(proxy.server, "listening");
});
afterAll(async () => {
  proxy.close();
  echo.close();
  await rm(folder, { recursive: true });
});

it.each<[string, Buffer]>([
  ["nothing at all", Buffer.alloc(0)],
  ["a CONNECT request", Buffer.from(`CONNECT 127.0.0.1:80 HTTP/1.1\r\nx-long: ${"a".repeat(200)}`)],
  ["a plain request", Buffer.from(`GET http://127.0.0.1/ HTTP/1.1\r\nx-long: ${"a".repeat(200)}`)],
  ["a SOCKS5 greeting", Buffer.from([5, 255, ...Buffer.alloc(255)])],
  ["a SOCKS5 request", Buffer.from([5, 1, 0, 5, 1, 0, 3, 255, ...Buffer.alloc(255, "a")])],
])("ends the connection of a client that slowly sends %s", async (_, opening) => {
  const client = connect(socketPath);
  client.on("error", () => undefined).resume();
  const began = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < opening.length) client.write(opening.subarray(sent, ++sent));
  }, 20);
  await new Promise((resolve) => client.once("close", resolve));
  clearInterval(timer);
  expect(performance.now() - began).toBeGreaterThan(OPENING_MS - 50);
  expect(performance.now() - began).toBeLessThan(OPENING_MS + 2_000);
  // The deadline passed during the opening.
  expect(sent).toBeLessThanOrEqual(opening.length === 0 ? 0 : opening.length - 1);
});

it("leaves connections open after a complete opening", async () => {
  const client = connect(socketPath);
  client.write(`CONNECT 127.0.0.1:${(echo.address() as AddressInfo).port} HTTP/1.1\r\n\r\n`);
  const [answer] = (await once(client, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  await sleep(OPENING_MS + 200);
  client.write("still there");
  expect(String((await once(client, "data"))[0])).toBe("still there");
  client.destroy();
});
