import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openDatabase, setDatabase } from "#server/db/client.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "#server/db/embedded.ts";
import { migrateDatabase } from "#server/db/migrate.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { resetEnv } from "#server/env.ts";
import { makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { startGateway } from "./gateway.ts";
import { closes, closesWithin, echo, gatewayOptions, openSocket, SOON, send, startUpstream } from "./testing.ts";

const ends: (() => Promise<unknown>)[] = [];
let folder: string;
let postgres: EmbeddedPostgres;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-gateway-pg-"));
  postgres = await startEmbeddedPostgres(folder, { settings: { fsync: "off" } });
  await migrateDatabase(postgres.url);
});

afterAll(async () => {
  for (const end of ends.reverse()) await end();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

it("keeps what is open while PostgreSQL is away, answers 503 meanwhile, and goes on by itself", async () => {
  const database = openDatabase(postgres.url);
  const before = setDatabase(database);
  ends.push(async () => setDatabase(before));
  const world = await makeWorld(database.db);
  const upstream = await startUpstream();
  ends.push(upstream.close);
  process.env.SLUICE_GATEWAY_URL = "http://localhost:3002";
  resetEnv();
  const gateway = await startGateway(database, gatewayOptions);
  ends.push(database.close, gateway.close);
  const { id } = await makeWorkspace(world, { owner: world.member });
  await database.db
    .update(workspaces)
    .set({ endpoint: upstream.endpoint, serverToken: "t" })
    .where(eq(workspaces.id, id));
  const host = `${id}.localhost:3002`;
  const way = new URL((await handover(world.member.ctx, { id })).url);
  const entered = await send(gateway.port, { host, path: `${way.pathname}${way.search}` });
  const cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
  const headers = { cookie, origin: `http://${host}` };
  const { socket } = await openSocket(gateway.port, { host, path: "/channels", headers });
  if (socket === undefined) throw new Error("not open");

  await postgres.stop();
  // Longer than the interval at which the gateway checks everything open.
  expect(await closesWithin(socket, 2_500)).toBe(false);
  expect(await echo(socket, "x = 42")).toBe("x = 42");
  const meanwhile = await send(gateway.port, { host, path: "/lab", headers: { cookie, accept: "text/html" } });
  expect(meanwhile).toMatchObject({
    status: 503,
    body: expect.stringContaining("database cannot be reached") as string,
  });

  postgres = await startEmbeddedPostgres(folder, { settings: { fsync: "off" } });
  await expect
    .poll(async () => (await send(gateway.port, { host, path: "/lab", headers: { cookie } })).status, SOON)
    .toBe(200);
  expect(await echo(socket, "still 42")).toBe("still 42");
  // And what happens from now on is heard again.
  await stop(world.member.ctx, { id });
  expect(await closes(socket)).toBe(true);
});
