import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import pino from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#server/db/client.ts";
import { createRouter, type Observed, type Route } from "./router.ts";

let server: Server;
const lines: string[] = [];
const observed: Observed[] = [];
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
  // These routes read no credential, so no database.
  const db = undefined as unknown as Database;
  const log = pino({ level: "info" }, { write: (line: string) => lines.push(line) });
  server = createServer(createRouter({ routes: [fail, wait], db, log, onDone: (one) => observed.push(one) }));
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

it("logs a fault of a handler with the trace id of the answer", async () => {
  const answer = await fetch(`http://127.0.0.1:${port()}/fails`);
  expect(answer.status).toBe(500);
  await answer.arrayBuffer();
  expect(lines.join("")).toContain("a fault of the handler");
});
