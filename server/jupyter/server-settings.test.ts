/** Messages and answers of a hostile Jupyter server. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import type WebSocket from "ws";
import { WebSocketServer } from "ws";
import { lastActivity } from "./activity.ts";
import { listKernels } from "./kernels.ts";
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

it.each([
  ["kernels", listKernels],
  ["activity", async (from: JupyterServer) => await lastActivity(from, new Date())],
  ["usage", usageWithin],
])("reads %s of an endless answer to a limit only", async (_, ask) => {
  await expect(ask(server)).rejects.toThrow();
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});
