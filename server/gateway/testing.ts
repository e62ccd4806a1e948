/** For tests: a real small server in the place of a workspace's, and a client that sends exactly what it is told. */
import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import type { TestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { type Logger, logger } from "#server/log.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { type Gateway, startGateway } from "./gateway.ts";

/** The options of a gateway for tests, at `http://localhost:3002`. */
export const gatewayOptions = {
  host: "localhost",
  url: "http://localhost:3002",
  portalUrl: "http://localhost:3000",
  listen: "127.0.0.1",
  port: 0,
  log: logger("gateway-test"),
};

/** A gateway with people and teams, and one server for all workspaces. */
export type TestGateway = {
  world: World;
  upstream: Awaited<ReturnType<typeof startUpstream>>;
  gateway: Gateway;
  close: () => Promise<void>;
};

export async function startTestGateway(database: TestDatabase, log: Logger = gatewayOptions.log): Promise<TestGateway> {
  const world = await makeWorld(database.db);
  const upstream = await startUpstream();
  process.env.SLUICE_GATEWAY_URL = gatewayOptions.url;
  resetEnv();
  const gateway = await startGateway(database, { ...gatewayOptions, log });
  const close = async () => {
    await gateway.close();
    await upstream.close();
  };
  return { world, upstream, gateway, close };
}

export type Seen = { method: string; url: string; headers: IncomingHttpHeaders };

/** Answers every request with 200 and remembers it; echoes WebSocket messages; `/slow` never ends its answer, `/dies` breaks off in it. */
export async function startUpstream() {
  const seen: Seen[] = [];
  const server = createServer((incoming, response) => {
    seen.push({ method: incoming.method ?? "", url: incoming.url ?? "", headers: { ...incoming.headers } });
    response.setHeader("set-cookie", "_xsrf=1; Path=/; Domain=localhost");
    response.setHeader("access-control-allow-origin", "*");
    let bytes = 0;
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    incoming.on("end", () => {
      if (incoming.url === "/slow") response.write("begun");
      else if (incoming.url === "/dies") response.write("begun", () => incoming.socket.resetAndDestroy());
      else response.end(JSON.stringify({ hello: "workspace", bytes }));
    });
  });
  const sockets = new WebSocketServer({ noServer: true });
  // What is said first comes in one piece with the answer that makes it a WebSocket.
  server.on("upgrade", (incoming, socket, head) => {
    socket.cork();
    sockets.handleUpgrade(incoming, socket, head, (made) => sockets.emit("connection", made, incoming));
    socket.uncork();
  });
  sockets.on("connection", (socket, incoming) => {
    if (incoming.url?.startsWith("/speaks-first")) for (const word of ["one", "two"]) socket.send(word);
    seen.push({ method: "UPGRADE", url: incoming.url ?? "", headers: { ...incoming.headers } });
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: async () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type Answer = { status: number; headers: IncomingHttpHeaders; body: string };

export async function send(
  port: number,
  options: {
    host: string;
    path: string;
    method?: string;
    headers?: Record<string, string>;
    body?: Buffer;
    address?: string;
  },
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host: options.address ?? "127.0.0.1",
        port,
        path: options.path,
        method: options.method ?? "GET",
        headers: { host: options.host, ...options.headers },
        agent: false,
      },
      (answer) => {
        let body = "";
        answer.on("data", (chunk: Buffer) => {
          body += chunk.toString();
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }));
        answer.on("error", reject);
      },
    );
    outgoing.on("error", reject);
    outgoing.end(options.body);
  });
}

export type SocketResult = ({ status: 101; socket: WebSocket } | { status: number; socket: undefined }) & {
  /** Every message so far. */
  heard: string[];
};

/** Opens a WebSocket; settles with 101 and the socket, or with the status of the refusal. */
export async function openSocket(
  port: number,
  options: { host: string; path: string; headers: Record<string, string> },
): Promise<SocketResult> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${options.path}`, {
    headers: { host: options.host, ...options.headers },
  });
  const heard: string[] = [];
  socket.on("message", (data: Buffer) => heard.push(data.toString()));
  return await new Promise((resolve) => {
    socket.once("open", () => resolve({ status: 101, socket, heard }));
    socket.once("unexpected-response", (_, answer) => {
      resolve({ status: answer.statusCode ?? 0, socket: undefined, heard });
      answer.resume();
    });
    socket.once("error", () => resolve({ status: 0, socket: undefined, heard }));
  });
}

/** Opens a WebSocket and, as soon as it is open, breaks the connection off with a TCP reset. */
export async function resetSocket(
  port: number,
  options: { host: string; path: string; headers: Record<string, string> },
): Promise<void> {
  const outgoing = request({
    host: "127.0.0.1",
    port,
    path: options.path,
    headers: {
      host: options.host,
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      "sec-websocket-version": "13",
      ...options.headers,
    },
    agent: false,
  });
  await new Promise<void>((resolve, reject) => {
    outgoing.once("error", reject);
    outgoing.once("upgrade", (_, socket: Socket) => {
      socket.once("close", () => resolve());
      socket.resetAndDestroy();
    });
    outgoing.end();
  });
}

/** Limit for what a test waits for: generous for a loaded machine. A passing test does not wait that long. */
export const SOON = { timeout: 20_000, interval: 25 };

/** Settles when the socket is closed, with false when it is still open after a generous time. */
export async function closes(socket: WebSocket): Promise<boolean> {
  return await closesWithin(socket, SOON.timeout);
}

/** Settles when the socket is closed, with false when it is still open after the time. */
export async function closesWithin(socket: WebSocket, ms: number): Promise<boolean> {
  if (socket.readyState === WebSocket.CLOSED) return true;
  return await new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(true);
    });
    socket.once("error", () => undefined);
  });
}

/** Sends a message and gives the echo. */
export async function echo(socket: WebSocket, text: string): Promise<string> {
  return await new Promise((resolve, reject) => {
    const closed = () => reject(new Error("closed"));
    socket.once("close", closed);
    socket.once("message", (data: Buffer) => {
      socket.removeListener("close", closed);
      resolve(data.toString());
    });
    socket.send(text);
  });
}
