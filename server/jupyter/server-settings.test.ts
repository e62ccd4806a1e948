/** Messages and answers of a hostile Jupyter server. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type WebSocket from "ws";
import { WebSocketServer } from "ws";
import { lastActivity } from "./activity.ts";
import { listKernels } from "./kernels.ts";
import { runInKernel } from "./notebook-kernel.ts";
import { runCode } from "./run-code.ts";
import { type JupyterServer, serverSettings } from "./server-settings.ts";
import { usageWithin } from "./usage.ts";

let http: Server;
let sockets: WebSocketServer;
let server: JupyterServer;
let sent: number;

beforeEach(async () => {
  sent = 0;
  http = createServer((_, answer) => {
    const more = () => {
      while (!answer.destroyed && answer.write(Buffer.alloc(65_536, "["))) sent += 65_536;
      answer.once("drain", more);
    };
    more();
  });
  sockets = new WebSocketServer({ server: http, perMessageDeflate: true });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  server = { endpoint: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, token: "secret" };
});
afterEach(() => {
  for (const socket of sockets.clients) socket.terminate();
  http.closeAllConnections();
  http.close();
});

it("ends a WebSocket whose message is larger than 16 MiB, and takes none compressed", async () => {
  sockets.on("connection", (socket) => socket.send(Buffer.alloc(17 * 1024 * 1024)));
  const { WebSocket: Socket, wsUrl } = serverSettings(server);
  const socket = new Socket(`${wsUrl}/api/kernels/one/channels`) as unknown as WebSocket;
  const messages: unknown[] = [];
  socket.on("message", (message) => messages.push(message));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const [error] = (await once(socket, "error")) as [Error];
  expect(error.message).toContain("Max payload size exceeded");
  await closed;
  expect(messages).toEqual([]);
  expect(socket.extensions).toBe("");
});

it("lists few kernels of a server that names very many, all with one long path", async () => {
  const id = "0".repeat(36);
  const path = "p".repeat(3 << 20);
  http.removeAllListeners("request").on("request", ({ url }, answer) => {
    const kernels = Array.from({ length: 5_000 }, (_, n) => ({
      id: n < 100 ? id : `${id.slice(4)}${1000 + n}`,
      name: "p",
    }));
    answer.setHeader("content-type", "application/json");
    const session = { id: "s", path, name: "", type: "notebook", kernel: { id, name: "p" } };
    answer.end(JSON.stringify(url?.startsWith("/api/sessions") ? [session] : kernels));
  });
  const listed = await listKernels(server);
  expect(listed.length).toBeLessThanOrEqual(200);
  expect(listed.filter((kernel) => kernel.id === id)).toHaveLength(1);
  expect(JSON.stringify(listed).length).toBeLessThan(100_000);
});

/** One binary message of 8 MiB that claims a million parts, each as long as the message. */
function overlapping(): Buffer {
  const message = Buffer.alloc(8 << 20);
  const count = message.length / 8 - 1;
  message.writeBigUInt64LE(BigInt(count));
  for (let at = 1; at <= count; at++) message.writeBigUInt64LE(at % 2 === 0 ? BigInt(message.length) : 0n, at * 8);
  return message;
}

describe("a kernel that sends something else than Jupyter's messages", () => {
  const messages: [string, () => string | Buffer][] = [
    ["text", () => "x"],
    ["JSON without a header", () => "{}"],
    ["JSON of another type", () => "null"],
    ["overlapping parts", overlapping],
  ];

  beforeEach(() => {
    const kernel = JSON.stringify({ id: "one", name: "python3" });
    http.removeAllListeners("request");
    http.on("request", (request, answer) => {
      answer.writeHead(request.method === "POST" ? 201 : 200, { "content-type": "application/json" });
      answer.end(
        request.url?.startsWith("/api/kernels/") === true ? kernel : request.method === "POST" ? kernel : "[]",
      );
    });
  });

  it.each(messages)("gets no answer, and ends nothing here: %s", async (_, message) => {
    const protocols: (string | undefined)[] = [];
    sockets.on("connection", (socket, request) => {
      protocols.push(request.headers["sec-websocket-protocol"]);
      socket.send(message());
    });
    const before = process.memoryUsage.rss();
    await expect(runCode(server, "print(1)", { timeoutMs: 1_500 })).rejects.toThrow("No kernel answered");
    const outputs: unknown[] = [];
    const signal = AbortSignal.timeout(1_500);
    for await (const output of runInKernel(server, "one", "print(1)", signal)) outputs.push(output);
    expect(outputs.at(-1)).toEqual({ kind: "done", ok: false });
    expect(protocols.length).toBeGreaterThan(0);
    expect(protocols.every((offered) => offered === undefined)).toBe(true);
    expect(process.memoryUsage.rss() - before).toBeLessThan(512 << 20);
  });
});

it.each([
  ["kernels", listKernels],
  ["activity", async (from: JupyterServer) => await lastActivity(from, new Date())],
  ["usage", usageWithin],
])("reads %s of an endless answer to a limit only", async (_, ask) => {
  await expect(ask(server)).rejects.toThrow();
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});
