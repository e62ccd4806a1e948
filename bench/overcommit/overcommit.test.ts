import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { joinSimulatedGpud } from "#server/broker/control/testing-gpud.ts";
import { systemContext } from "#server/context.ts";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";
import { openDatabase } from "#server/db/client.ts";
import { startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { makeTeam, makeWorkspace } from "#server/services/lease/testing.ts";
import { run } from "../overcommit.ts";
import { startBrokers } from "./brokers.ts";

test("64 clients and killed brokers over-commit nothing", async () => {
  const { metrics } = await run({ seconds: 8, killEveryMs: 3_000 });
  expect(metrics.overcommits).toBe(0);
  expect(metrics.granted).toBeGreaterThan(5);
  expect(metrics.broker_kills).toBeGreaterThan(0);
}, 180_000);

test("who waits when the broker is killed keeps the place, and is granted by the next", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-killed-"));
  const server = await startEmbeddedPostgres(folder);
  await migrateDatabase(server.url);
  const database = openDatabase(server.url);
  const brokers = await startBrokers(1, { DATABASE_URL: server.url, SLUICE_STATE_DIR: folder }, 4_000);
  const { token } = await createJoinToken(systemContext(database.db));
  const join = { brokerUrl: brokers.url, joinToken: token, name: "local", devices: 1, reconnects: true };
  const gpud = await joinSimulatedGpud(join);
  try {
    const team = await makeTeam(database.db, "vision", { guaranteedMilli: 0, limitMilli: 1000 });
    const { credential } = await makeWorkspace(database.db, team, "Ada");
    const call = async (method: string, address: string, body?: unknown): Promise<LeaseRequestAnswer> => {
      const headers = { authorization: `Bearer ${credential}` };
      const text = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await fetch(`${brokers.url()}${address}`, { method, headers, ...text });
      return (await response.json()) as LeaseRequestAnswer;
    };
    const ask = (pid: number) => ({
      requestId: randomUUID(),
      amount: "1",
      owner: { kind: "kernel", pid, startTime: 1 },
    });
    const held = await call("POST", "/v1/lease-requests", ask(1));
    if (held.state !== "granted") throw new Error(JSON.stringify(held));
    const waiting = await call("POST", "/v1/lease-requests", ask(2));
    expect(waiting).toMatchObject({ state: "queued", position: 1 });

    // The long poll is under way when the broker dies.
    await expect(call("GET", `/v1/lease-requests/${waiting.requestId}?wait=25`)).rejects.toThrow();
    expect(brokers.kills()).toBe(1);
    const retry = async (method: string, address: string): Promise<LeaseRequestAnswer> => {
      for (;;) {
        const answer = await call(method, address).catch(() => undefined);
        if (answer !== undefined) return answer;
        await sleep(100);
      }
    };
    const again = await retry("GET", `/v1/lease-requests/${waiting.requestId}`);
    expect(again).toMatchObject({ state: "queued", position: 1 });
    await retry("DELETE", `/v1/leases/${held.lease.id}`);
    const poll = await retry("GET", `/v1/lease-requests/${waiting.requestId}?wait=2`);
    expect(poll.state).toBe("granted");
  } finally {
    gpud.close();
    await brokers.stop();
    await database.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}, 120_000);
