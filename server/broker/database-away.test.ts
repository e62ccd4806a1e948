/** The database goes away for a while: the broker says so, keeps every gpud connected, and goes on by itself. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { systemContext } from "#server/context.ts";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";
import { type OpenDatabase, openDatabase } from "#server/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { leases } from "#server/db/schema/index.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { makeTeam, makeWorkspace, type TestWorkspace } from "#server/services/lease/testing.ts";
import { type Broker, startBroker } from "./broker.ts";
import { joinSimulatedGpud, noUsage, type SimulatedGpud } from "./control/testing-gpud.ts";

let folder: string;
let server: EmbeddedPostgres;
let database: OpenDatabase;
let broker: Broker;
let gpud: SimulatedGpud;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-away-"));
  server = await startEmbeddedPostgres(folder);
  await migrateDatabase(server.url);
  database = openDatabase(server.url);
  broker = await startBroker({ database, env: { SLUICE_STATE_DIR: folder }, log: pino({ level: "silent" }), port: 0 });
  const { token } = await createJoinToken(systemContext(database.db));
  gpud = await joinSimulatedGpud({ brokerUrl: url, joinToken: token, name: "local", devices: 1 });
});
afterAll(async () => {
  gpud.close();
  await broker.stop();
  await database.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const url = () => `http://127.0.0.1:${broker.port}`;

async function call<T>(
  who: TestWorkspace,
  method: string,
  address: string,
  body?: unknown,
): Promise<{ status: number; body: T }> {
  const response = await fetch(`${url()}${address}`, {
    method,
    headers: { authorization: `Bearer ${who.credential}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

test("PostgreSQL down for 10 s loses nothing, and nothing has to be restarted", async () => {
  const team = await makeTeam(database.db, "vision", { guaranteedMilli: 500, limitMilli: 1000 });
  const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
  const ask = (pid: number) => ({ requestId: randomUUID(), amount: "1", owner: { kind: "kernel", pid, startTime: 1 } });
  const held = await call<LeaseRequestAnswer>(ada, "POST", "/v1/lease-requests", ask(1));
  if (held.body.state !== "granted") throw new Error(JSON.stringify(held.body));
  const leaseId = held.body.lease.id;
  gpud.held.set(leaseId, noUsage(leaseId));
  gpud.send({ type: "session-opened", leaseId, sessionId: randomUUID() });
  const waiting = await call<LeaseRequestAnswer>(lin, "POST", "/v1/lease-requests", ask(2));
  expect(waiting.body.state).toBe("queued");
  const welcomes = () => gpud.received.filter((message) => message.type === "welcome").length;
  expect(welcomes()).toBe(1);

  await server.stop();
  for (let second = 0; second < 10; second++) {
    const answer = await call<{ error: { code: string } }>(ada, "GET", "/v1/status");
    expect(answer).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
    if (second === 3) gpud.send({ type: "session-closed", leaseId, sessionId: "s", clean: true });
    if (second === 4) gpud.send({ type: "session-opened", leaseId, sessionId: "t" });
    await sleep(1000);
  }
  server = await startEmbeddedPostgres(folder);

  await vi.waitFor(async () => expect((await call(ada, "GET", "/v1/status")).status).toBe(200), {
    timeout: 20_000,
    interval: 25,
  });
  expect(welcomes(), "gpud stayed connected").toBe(1);
  const [lease] = await database.db.select().from(leases);
  expect(lease?.state).toBe("active");

  // Changes are heard again: the long poll of the next in the queue is woken, not timed out.
  const poll = call<LeaseRequestAnswer>(lin, "GET", `/v1/lease-requests/${waiting.body.requestId}?wait=25`);
  await sleep(1500);
  const started = performance.now();
  expect((await call(ada, "DELETE", `/v1/leases/${leaseId}`)).status).toBe(200);
  expect((await poll).body).toMatchObject({ state: "granted" });
  expect(performance.now() - started).toBeLessThan(15_000);
}, 90_000);
