/** Answers of a workspace whose programs choose every byte, and clients that send more than they are asked for. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makeWorkspace } from "#server/services/testing.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { SOON, send, startTestGateway, type TestGateway } from "./testing.ts";

let database: TestDatabase;
let gateway: TestGateway["gateway"];
let close: TestGateway["close"];
let server: Server;
let host: string;
let cookie: string;
/** What the workspace answers to every request. */
let answer: string;
let flood: boolean;

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.on("data", () => {
      socket.write(answer, "latin1");
      if (!flood) return;
      const more = () => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65_536)));
      };
      socket.on("drain", more);
      more();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  database = await useTestDatabase();
  const made = await startTestGateway(database);
  ({ gateway, close } = made);
  const { member } = made.world;
  const { id } = await makeWorkspace(made.world, { owner: member });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await database.db.update(workspaces).set({ endpoint, serverToken: "t" }).where(eq(workspaces.id, id));
  host = `${id}.localhost:3002`;
  const way = new URL((await handover(member.ctx, { id })).url);
  const entered = await send(gateway.port, { host, path: `${way.pathname}${way.search}` });
  cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
});

afterAll(async () => {
  server.close();
  await close();
  await database.drop();
});

const ask = async (path = "/lab") => await send(gateway.port, { host, path, headers: { cookie } });

it.each([
  ["a control character in the reason", "HTTP/1.1 200 a\u0001b\r\ncontent-length: 2\r\n\r\nok", 200, "ok"],
  ["a status that is none", "HTTP/1.1 099 x\r\ncontent-length: 2\r\n\r\nok", 502, "broke the rules of HTTP"],
  ["a trailer for a body of known length", "HTTP/1.1 200 OK\r\ntrailer: x\r\ncontent-length: 2\r\n\r\nok", 200, "ok"],
  ["an upgrade that nobody asked for", "HTTP/1.1 101 x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", 502, ""],
])("goes on after %s", async (_, bytes, status, body) => {
  answer = bytes;
  flood = false;
  const given = await ask();
  expect(given.status).toBe(status);
  expect(given.body).toContain(body);
  expect((await send(gateway.port, { host: "localhost:3002", path: "/healthz" })).status).toBe(200);
});

it("keeps its guard headers, whatever the workspace calls hop-by-hop", async () => {
  answer =
    "HTTP/1.1 200 OK\r\nconnection: x-frame-options, x-content-type-options, x-mine\r\nx-mine: 1\r\ncontent-length: 2\r\n\r\nok";
  const { headers } = await ask();
  expect(headers).toMatchObject({ "x-frame-options": "SAMEORIGIN", "x-content-type-options": "nosniff" });
  expect(headers["x-mine"]).toBeUndefined();
});

const upgrade = (more: string[] = []) =>
  [
    ...["GET /channels HTTP/1.1", `host: ${host}`, `origin: http://${host}`, "connection: Upgrade"],
    ...["upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==", ...more],
  ].join("\r\n");

async function open(text: string): Promise<Socket> {
  const socket = connect(gateway.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.resume();
  await once(socket, "connect");
  socket.write(`${text}\r\n\r\n`);
  return socket;
}

it("answers an upgrade that the workspace refuses by itself, and keeps nothing of the workspace's answer", async () => {
  answer = "HTTP/1.1 200 OK\r\nset-cookie: stolen=1; Domain=localhost\r\ncontent-length: 999999999999\r\n\r\n";
  flood = true;
  const before = process.memoryUsage().arrayBuffers;
  const socket = await open(upgrade([`cookie: ${cookie}`]));
  let text = "";
  socket.on("data", (part: Buffer) => {
    text += part.toString("latin1");
  });
  await once(socket, "close");
  expect(text).toMatch(/^HTTP\/1\.1 502 /);
  expect(text).not.toContain("stolen");
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 << 20);
}, 30_000);

const openSockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;

it("closes refused upgrades whose clients send on and leave", async () => {
  const before = openSockets();
  for (let count = 0; count < 50; count++) {
    const socket = await open(upgrade());
    socket.write(Buffer.alloc(100_000));
    socket.end();
  }
  await expect.poll(openSockets, SOON).toBeLessThanOrEqual(before);
}, 30_000);

it("ends a request to itself that never comes to its end", async () => {
  const lines = ["POST /healthz HTTP/1.1", "host: localhost:3002", "transfer-encoding: chunked"];
  const socket = await open(lines.join("\r\n"));
  await once(socket, "close");
}, 30_000);
