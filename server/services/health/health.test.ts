/** The health of real parts: one that answers, one that does not, and servers in every state. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProcessHealth } from "#server/contracts/health.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { egressHealthSocket, serveEgressHealth } from "#server/egress/health.ts";
import { resetEnv } from "#server/env.ts";
import { newId } from "#server/ids.ts";
import { listenInFolder } from "#server/listen-in-folder.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { VERSION } from "#server/version.ts";
import { read } from "./read.ts";

type Launchers = NonNullable<ProcessHealth["launchers"]>;

let launchers: Launchers;
let test: TestDatabase;
let world: World;
let broker: Server;
let stateDir: string;

beforeAll(async () => {
  launchers = [
    { name: "local", isolated: false, reason: "this machine lets nobody make a user namespace" },
    { name: "kubernetes", isolated: true },
  ];
  broker = createServer((_request, response) =>
    response.end(JSON.stringify({ status: "ok", version: "0.9.0", launchers })),
  );
  await new Promise<void>((resolve) => broker.listen(0, "127.0.0.1", resolve));
  process.env.SLUICE_BROKER_URL = `http://127.0.0.1:${(broker.address() as AddressInfo).port}`;
  // Longer than the path of a socket may be.
  stateDir = await mkdtemp(path.join(tmpdir(), `sluice-health-${"x".repeat(100)}-`));
  process.env.SLUICE_STATE_DIR = stateDir;
  // Nothing listens on port 1.
  process.env.SLUICE_GATEWAY_PORT = "1";
  resetEnv();
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  await test.db.insert(gpuServers).values(
    (["lost", "draining", "joining", "removed"] as const).map((state) => ({
      ...{ id: newId("gsv"), name: state, publicKey: state, state },
    })),
  );
});
afterAll(async () => {
  delete process.env.SLUICE_BROKER_URL;
  delete process.env.SLUICE_GATEWAY_PORT;
  delete process.env.SLUICE_STATE_DIR;
  resetEnv();
  broker.close();
  await rm(stateDir, { recursive: true });
  await test.drop();
});

it("puts what is wrong first, and says what to do about it and nothing else", async () => {
  const { components } = await read(world.admin.ctx);
  const states = Object.fromEntries(components.map(({ name, state }) => [name, state]));
  expect(states).toMatchObject({
    ...{ Broker: "ok", Gateway: "down", Portal: "ok", "gpu-1": "ok" },
    ...{ "Launcher local": "warning", "Launcher kubernetes": "ok" },
    ...{ lost: "down", draining: "warning", joining: "warning" },
  });
  expect(states).not.toHaveProperty("removed");
  expect(components.find(({ name }) => name === "Broker")?.version).toBe("0.9.0");
  expect(components.find(({ name }) => name === "Launcher local")?.detail).toContain("user namespace");
  expect(components[0]?.state).toBe("down");
  for (const { state, next } of components) expect(next !== null).toBe(state !== "ok");
  await expect(read(world.lead.ctx)).rejects.toMatchObject({ code: "forbidden" });
});

it("says that a launcher refuses launches, and what to do", async () => {
  const refusal = { happened: "The disk of /state is almost full: 3 MiB left.", next: "Enlarge the disk." };
  const isolated = launchers;
  launchers = [{ name: "local", isolated: true, refusal }];
  try {
    const { components } = await read(world.admin.ctx);
    const local = components.find(({ name }) => name === "Launcher local");
    expect(local).toMatchObject({ state: "down", detail: refusal.happened, next: refusal.next });
  } finally {
    launchers = isolated;
  }
});

it("tells which limits hold for workspaces, and by what", async () => {
  const isolated = launchers;
  const sentence = "Memory by a watch every second. Why no control groups: cgroup v2 is not mounted.";
  launchers = [{ name: "local", isolated: true, limits: { by: "watch", sentence } }];
  try {
    const { components } = await read(world.admin.ctx);
    const local = components.find(({ name }) => name === "Launcher local");
    expect(local).toMatchObject({ state: "ok", next: null });
    expect(local?.detail).toContain(sentence);
  } finally {
    launchers = isolated;
  }
});

it("asks the gateway where it runs, and says of one on a cluster what is to be done there", async () => {
  const gateway = async () => (await read(world.admin.ctx)).components.find(({ kind }) => kind === "gateway");
  expect((await gateway())?.next).toContain("npm start");
  Object.assign(process.env, { SLUICE_GATEWAY_INTERNAL_URL: "http://127.0.0.1:2/", SLUICE_LAUNCHERS: "kubernetes" });
  resetEnv();
  try {
    const away = await gateway();
    expect(away).toMatchObject({ state: "down", detail: "does not answer at http://127.0.0.1:2" });
    expect(away?.next).not.toContain("npm start");
    expect(away?.next).toContain("kubectl logs -l app.kubernetes.io/component=gateway");
    process.env.SLUICE_GATEWAY_INTERNAL_URL = process.env.SLUICE_BROKER_URL;
    resetEnv();
    expect(await gateway()).toMatchObject({ state: "ok", version: "0.9.0" });
  } finally {
    delete process.env.SLUICE_GATEWAY_INTERNAL_URL;
    delete process.env.SLUICE_LAUNCHERS;
    resetEnv();
  }
});

describe("the egress process", () => {
  const egress = async () => (await read(world.admin.ctx)).components.find(({ kind }) => kind === "egress");

  it("responds on its socket, and is down with the next step after it ends", async () => {
    const close = await serveEgressHealth(test.db, stateDir);
    expect(await egress()).toMatchObject({ name: "Egress", state: "ok", version: VERSION, next: null });
    close();
    const ended = await egress();
    expect(ended).toMatchObject({ state: "down", version: null });
    expect(ended?.detail).toContain(`does not answer at unix:${egressHealthSocket(stateDir)}`);
    expect(ended?.next).toMatch(/no outgoing connections.*npm start.*logs\/egress\.log/);
  });

  it("is down while its database does not answer", async () => {
    const close = await serveEgressHealth({ execute: () => Promise.reject(new Error("away")) as never }, stateDir);
    expect(await egress()).toMatchObject({ state: "down", detail: expect.stringContaining("answers 503") as string });
    close();
  });

  it.each<[string, RequestListener]>([
    ["never", () => undefined],
    [
      "without end",
      (_, response) => {
        const timer = setInterval(() => response.write("x".repeat(100_000)), 1);
        response.once("close", () => clearInterval(timer));
      },
    ],
  ])("is down when it answers %s, within seconds", async (_, listener) => {
    const server = createServer(listener);
    await listenInFolder(server, path.join(stateDir, "egress"), "health.sock", 0o600);
    const began = Date.now();
    expect(await egress()).toMatchObject({ state: "down" });
    expect(Date.now() - began).toBeLessThan(4_000);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it("is absent without local workspaces", async () => {
    process.env.SLUICE_LAUNCHERS = "kubernetes";
    resetEnv();
    try {
      expect(await egress()).toBeUndefined();
    } finally {
      delete process.env.SLUICE_LAUNCHERS;
      resetEnv();
    }
  });
});

it("tells which guarantees are scaled down while servers are away", async () => {
  const guarantees = async () =>
    (await read(world.admin.ctx)).components.filter(({ kind }) => kind === "guarantees").map(({ detail }) => detail);
  expect(await guarantees()).toEqual([]);
  await test.db.update(gpus).set({ state: "lost" });
  expect(await guarantees()).toEqual([
    expect.stringMatching(/: (vision|nlp) 0\.0 of 0\.5, (vision|nlp) 0\.0 of 0\.5$/),
  ]);
  await test.db.update(gpus).set({ state: "active" }).where(eq(gpus.id, world.gpuIds[0]));
  expect(await guarantees()).toEqual([]);
});
