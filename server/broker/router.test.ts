import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import pino from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import type { Database } from "#server/db/client.ts";
import { createRouter, type Observed, type Route } from "./router.ts";

let server: Server;
const lines: string[] = [];
const observed: Observed[] = [];
let completing = 0;
let isAsked: () => void = () => undefined;

beforeAll(async () => {
  const fail: Route = {
    ...{ method: "GET", path: "/fails", auth: "none" },
    handle: async () => {
      throw new TypeError("a fault of the handler");
    },
  };
  const wait: Route = {
    ...{ method: "GET", path: "/waits", auth: "none" },
    handle: async (_, { signal }) => {
      isAsked();
      await once(signal, "abort");
      signal.throwIfAborted();
    },
  };
  const complete: Route = {
    ...{ method: "GET", path: "/completes", auth: "none" },
    handle: async (_, { signal }) => {
      completing += 1;
      await once(signal, "abort");
      return {};
    },
  };
  // These routes read no credential, so no database.
  const db = undefined as unknown as Database;
  const log = pino({ level: "info" }, { write: (line: string) => lines.push(line) });
  server = createServer(createRouter({ routes: [fail, wait, complete], db, log, onDone: (one) => observed.push(one) }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => server.close());

const port = () => (server.address() as AddressInfo).port;

it("counts a client that leaves, and reports no fault", async () => {
  const asked = new Promise<void>((resolve) => {
    isAsked = resolve;
  });
  const leaving = request({ port: port(), host: "127.0.0.1", path: "/waits", agent: false });
  leaving.on("error", () => undefined).end();
  await asked;
  leaving.destroy();
  await expect.poll(() => observed.map(({ route, status }) => [route, status])).toEqual([["/waits", 499]]);
  expect(lines).toEqual([]);
});

it("counts a client that leaves a handler which completes", async () => {
  observed.length = 0;
  const leaving = request({ port: port(), host: "127.0.0.1", path: "/completes", agent: false });
  leaving.on("error", () => undefined).end();
  await expect.poll(() => completing).toBe(1);
  leaving.destroy();
  await expect.poll(() => observed.map(({ route, status }) => [route, status])).toEqual([["/completes", 499]]);
});

it("logs a fault of a handler with the trace id of the answer", async () => {
  const answer = await fetch(`http://127.0.0.1:${port()}/fails`);
  expect(answer.status).toBe(500);
  await answer.arrayBuffer();
  const { traceId } = z.object({ traceId: z.string() }).parse(JSON.parse(lines[0] ?? ""));
  expect(lines[0]).toContain("a fault of the handler");
  expect(answer.headers.get("x-trace-id")).toBe(traceId);
});
