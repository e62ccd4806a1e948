/** One network that opens connections without end, beside another one. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { ConnectionLimit, type ConnectionLimitOptions } from "./connection-limit.ts";

const opened: Socket[] = [];
let server: Server | undefined;
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
  server?.closeAllConnections();
  server?.close();
});

async function serve(options: Omit<ConnectionLimitOptions, "most">): Promise<ConnectionLimit> {
  const limit = new ConnectionLimit({ ...options, most: 3 });
  // Answers `/soon`; another request waits.
  server = createServer(limit.around((asked, response) => void (asked.url === "/soon" && response.end("yes")))).listen(
    0,
    "127.0.0.1",
  );
  limit.watch(server);
  await once(server, "listening");
  return limit;
}

const port = () => ((server as Server).address() as AddressInfo).port;

/** Whether the server answers on a new connection, which stays open. */
async function isKept(localAddress: string): Promise<boolean> {
  const socket = connect({ port: port(), host: "127.0.0.1", localAddress });
  opened.push(socket);
  await once(socket, "connect");
  socket.on("error", () => undefined);
  socket.write("GET /soon HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const isAnswered = async (event: string) =>
    await once(socket, event).then(
      () => event === "data",
      () => false,
    );
  return await Promise.race([isAnswered("close"), isAnswered("data")]);
}

async function statusOf(path: string, forwarded: string): Promise<number | undefined> {
  const asked = request({ port: port(), host: "127.0.0.1", path, headers: { "x-forwarded-for": forwarded } });
  asked.on("error", () => undefined);
  asked.on("socket", (socket) => opened.push(socket));
  asked.end();
  const [response] = (await once(asked, "response")) as [{ statusCode?: number; resume: () => void }];
  response.resume();
  return response.statusCode;
}

it("ends a network's connections beyond the limit, and serves another network and a later connection", async () => {
  const limit = await serve({ hops: 0, isExempt: () => false });
  expect(await Promise.all(Array.from({ length: 5 }, () => isKept("127.0.0.1")))).toEqual([
    ...[true, true, true],
    ...[false, false],
  ]);
  expect(await isKept("127.0.0.2")).toBe(true);
  opened[0]?.destroy();
  await expect.poll(() => isKept("127.0.0.1"), { timeout: 10_000 }).toBe(true);
  expect(await isKept("127.0.0.1")).toBe(false);
  const { localPort = 0 } = opened[1] ?? {};
  limit.release({ remoteAddress: "127.0.0.1", remotePort: localPort });
  expect(await isKept("127.0.0.1")).toBe(true);
}, 30_000);

it("forgets a connection whose port a new one has before it is closed", async () => {
  const limit = new ConnectionLimit({ hops: 0, most: 3, isExempt: () => false });
  const listeners: ((socket: Socket) => void)[] = [];
  const listening = { on: (_: string, listener: (socket: Socket) => void) => listeners.push(listener) };
  limit.watch(listening as unknown as Server);
  const connection = () => {
    const socket = new Socket();
    Object.defineProperties(socket, { remoteAddress: { value: "192.0.2.1" }, remotePort: { value: 4000 } });
    for (const listener of listeners) listener(socket);
    return socket;
  };
  let last = connection();
  for (let count = 0; count < 10; count++) {
    const next = connection();
    last.emit("close");
    last = next;
  }
  expect(last.destroyed).toBe(false);
});

it("behind a proxy refuses a network's requests beyond the limit, and answers another network", async () => {
  await serve({ hops: 1 });
  const waiting = Array.from({ length: 3 }, (_, index) => statusOf("/wait", `2001:db8:1:2::${index}`));
  for (const each of waiting) each.catch(() => undefined);
  await expect.poll(() => statusOf("/soon", "2001:db8:1:2::9"), { timeout: 10_000 }).toBe(429);
  expect(await statusOf("/soon", "2001:db8:1:3::1")).toBe(200);
}, 30_000);
