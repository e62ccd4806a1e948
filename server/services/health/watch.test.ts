/** An open Health page and a broker that dies: it tells nothing, so it is asked. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { watchHealth } from "./watch.ts";

let test: TestDatabase;
let broker: Server;

const listen = async (port: number) => {
  broker = createServer((_request, response) => response.end(JSON.stringify({ status: "ok", version: "0.9.0" })));
  await new Promise<void>((resolve) => broker.listen(port, "127.0.0.1", resolve));
  return (broker.address() as AddressInfo).port;
};
const die = async () => {
  broker.closeAllConnections();
  await new Promise((resolve) => broker.close(resolve));
};
let port: number;

beforeAll(async () => {
  port = await listen(0);
  process.env.SLUICE_BROKER_URL = `http://127.0.0.1:${port}`;
  // Nothing listens on port 1.
  process.env.SLUICE_GATEWAY_PORT = "1";
  resetEnv();
  test = await useTestDatabase();
});
afterAll(async () => {
  delete process.env.SLUICE_BROKER_URL;
  delete process.env.SLUICE_GATEWAY_PORT;
  resetEnv();
  await die();
  await test.drop();
});

it("tells once when the broker has died, once when it is back, and nothing while all stays as it is", async () => {
  let told = 0;
  const stop = watchHealth(
    test.db,
    () => {
      told += 1;
    },
    20,
  );
  try {
    await expect.poll(() => told).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(told).toBe(1);
    await die();
    await expect.poll(() => told).toBe(2);
    await listen(port);
    await expect.poll(() => told).toBe(3);
  } finally {
    stop();
  }
  await die();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(told).toBe(3);
  await listen(port);
});
