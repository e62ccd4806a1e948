/**
 * Who may call what of the broker: every route of its table, as every kind of machine and of person, over HTTP on a real
 * PostgreSQL. A route without a row in the matrix and a row without a route fail, and whoever is refused has changed
 * nothing of anybody's leases.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { and, eq } from "drizzle-orm";
import pino from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { tokenScopes } from "#server/contracts/access-token.ts";
import type { DeviceProfile } from "#server/contracts/control.ts";
import type { Database } from "#server/db/client.ts";
import { gpuServers, gpus, leaseRequests, leases, memberships, workspaces } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { sendChunks } from "#server/http/testing.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { request } from "#server/services/lease/request.ts";
import { loadSigner, type Signer } from "#server/services/lease/signer.ts";
import { makePerson, makeWorkspace, makeWorld } from "#server/services/testing.ts";
import { createMetrics } from "./metrics.ts";
import { createRouter, type Route } from "./router.ts";
import { brokerRoutes, internalRoutes } from "./routes.ts";

/** Who calls. */
const callers = [
  "nobody",
  /** Somebody's browser: an admin's cookie. */
  "browser",
  /** An admin's personal access token. */
  "token",
  /** A GPU server that is about to join: it has a one-time token, and proves itself by its key on the control channel. */
  "gpuServer",
  /** The workspace that has the lease and the request. */
  "owner",
  /** Another workspace of the same person. */
  "sibling",
  /** One of a colleague in the same team. */
  "colleague",
  /** One of another team. */
  "stranger",
  /** A pod that borrows by a label, of another team. */
  "pod",
  /** The credential that was copied out of a workspace that has stopped. */
  "stopped",
  /** That of a workspace whose owner has left the team. */
  "left",
] as const;
type Caller = (typeof callers)[number];
type Expected = Record<Caller, number>;
type Row = { expected: Expected; body?: (fixture: Fixture) => unknown; id?: (fixture: Fixture) => string };

/** To each living workspace what is its own. */
const workspacesAlone = (status: number, others: Partial<Expected> = {}): Expected => ({
  ...{ nobody: 401, browser: 401, token: 401, gpuServer: 401, stopped: 401, left: 401 },
  ...{ owner: status, sibling: status, colleague: status, stranger: status, pod: status },
  ...others,
});
/** To others there is no such lease, whosever it is. */
const ownerAlone = (status: number, others = 404): Expected =>
  workspacesAlone(status, { sibling: others, colleague: others, stranger: others, pod: others });
const everybody = (status: number): Expected =>
  Object.fromEntries(callers.map((caller) => [caller, status])) as Expected;

const lease = (fixture: Fixture) => fixture.leaseId;
const waiting = (fixture: Fixture) => fixture.waitingKey;
const asks = (requestId: string, amount = "0.25", pid = 11) => ({
  ...{ requestId, amount, waitSeconds: 60 },
  owner: { kind: "kernel" as const, pid, startTime: 7, label: "train.ipynb" },
});
const PROFILE: DeviceProfile = {
  ...{ name: "Software GPU", computeCapabilityMajor: 7, computeCapabilityMinor: 5, totalMemoryBytes: 8 * 2 ** 30 },
  ...{ driverVersion: 13_050, attributes: {} },
};
const PUBLIC_KEY = "A".repeat(43);

const matrix: Record<string, Row> = {
  "POST /v1/lease-requests": { expected: workspacesAlone(200), body: () => asks(randomUUID()) },
  "GET /v1/lease-requests/:id": { expected: ownerAlone(200), id: waiting },
  "GET /v1/lease-requests/:id/explanation": { expected: ownerAlone(200, 403), id: (fixture) => fixture.waitingId },
  "DELETE /v1/lease-requests/:id": { expected: ownerAlone(200), id: waiting },
  "POST /v1/leases/:id/extend": { expected: ownerAlone(200, 403), id: lease, body: () => ({ forSeconds: 60 }) },
  "GET /v1/leases/:id/notice": { expected: ownerAlone(200), id: lease },
  "POST /v1/leases/:id/sessions": {
    expected: ownerAlone(200),
    id: lease,
    body: () => ({ publicKey: PUBLIC_KEY, pid: 11, startTime: 7 }),
  },
  "DELETE /v1/leases/:id": { expected: ownerAlone(200), id: lease },
  "GET /v1/status": { expected: workspacesAlone(200) },
  "GET /v1/leases": { expected: workspacesAlone(200) },
  // Whoever reports none ends what its own kernels held, and nobody else's.
  "PUT /v1/owners": { expected: workspacesAlone(200), body: () => ({ alive: [] }) },
  "GET /v1/profile": { expected: workspacesAlone(200) },
  // What stands in the body is the authority, whoever sends it: here it is none.
  "POST /v1/gpu-servers/join": {
    expected: everybody(403),
    body: () => ({ token: "slj_of_nobody", name: "gpu-9", publicKey: PUBLIC_KEY }),
  },
  // No cluster is configured here.
  "POST /v1/pods": { expected: everybody(404), body: () => ({ token: "of nobody", gpuType: "soft" }) },
  "GET /healthz": { expected: everybody(200) },
  // On a port of their own, where the network decides who asks.
  "POST /v1/kubernetes/admission": {
    expected: everybody(404),
    body: () => ({
      ...{ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" },
      request: { uid: "1", namespace: "vision", object: { metadata: {}, spec: { containers: [] } } },
    }),
  },
  "GET /metrics": { expected: everybody(200) },
};

type Fixture = {
  leaseId: string;
  waitingId: string;
  waitingKey: string;
  headers: Record<Caller, Record<string, string>>;
};

let test: TestDatabase;
let fixture: Fixture;
let signer: Signer;
let stateDir: string;
let server: Server;
/** What the one HTTP server answers with, for one call after another. */
let answers: RequestListener;

beforeAll(async () => {
  test = await createTestDatabase();
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-broker-"));
  signer = await loadSigner({ SLUICE_SIGNING_KEY: undefined, SLUICE_STATE_DIR: stateDir });
  fixture = await makeFixture();
  server = createServer((incoming, response) => answers(incoming, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await test.drop();
  await rm(stateDir, { recursive: true, force: true });
});

/** The broker's tables on one transaction; a lease that ends is confirmed as its GPU server would. */
function routesOn(db: Database): Route[] {
  const watch = () => (id: string) => ({
    changed: async () => {
      const ending = and(eq(leases.id, id), eq(leases.state, "ending"));
      await db.update(leases).set({ state: "ended", endedAt: new Date() }).where(ending);
      return true;
    },
    close: () => undefined,
  });
  const metrics = createMetrics(db, () => 0);
  return [...brokerRoutes({ watch, signer, metrics, launchers: new Map() }), ...internalRoutes(metrics)];
}

const keyOf = ({ method, path: address }: Route) => `${method} ${address}`;
const table = [
  ...brokerRoutes({} as Parameters<typeof brokerRoutes>[0]),
  ...internalRoutes({} as Parameters<typeof internalRoutes>[0]),
].map(keyOf);

it("has a row for every route, and a route for every row", () => {
  expect(Object.keys(matrix).sort()).toEqual([...table].sort());
});

it.each(table)("%s", async (key) => {
  const row = matrix[key];
  if (row === undefined) throw new Error(`${key} has no row in the matrix.`);
  const statuses: Partial<Record<Caller, number>> = {};
  const touching: Caller[] = [];
  for (const caller of callers) {
    const { status, touched } = await call(key, row, caller);
    statuses[caller] = status;
    if (touched && caller !== "owner") touching.push(caller);
  }
  expect(statuses).toEqual(row.expected);
  expect(touching).toEqual([]);
});

it.each(table)(
  "%s answers 413 to a body that goes on and on, and nobody without a credential sends one",
  async (key) => {
    const [method = "", address = ""] = key.split(" ");
    const routes = routesOn(test.db);
    answers = createRouter({ routes, db: test.db, log: pino({ level: "silent" }) });
    const { port } = server.address() as AddressInfo;
    const sent = { path: address.replace(":id", "-"), method, chunks: 64, chunkBytes: 1024 * 1024 };
    const isOpen = routes.find((route) => keyOf(route) === key)?.auth === "none";
    expect((await sendChunks(port, { ...sent, headers: fixture.headers.owner })).status).toBe(413);
    expect((await sendChunks(port, sent)).status).toBe(isOpen ? 413 : 401);
  },
);

/** What one call answers, and whether it changed the owner's lease or request; it is undone afterwards. */
async function call(key: string, row: Row, caller: Caller): Promise<{ status: number; touched: boolean }> {
  const [method = "", address = ""] = key.split(" ");
  const undo = new Error("undo");
  const answer = { status: 0, touched: false };
  await test.db
    .transaction(async (tx) => {
      const db = tx as unknown as Database;
      const before = await held(db);
      answers = createRouter({ routes: routesOn(db), db, log: pino({ level: "silent" }) });
      const { port } = server.address() as AddressInfo;
      const at = `http://127.0.0.1:${port}${address.replace(":id", row.id?.(fixture) ?? "-")}?type=soft`;
      const body = row.body && JSON.stringify(row.body(fixture));
      const response = await fetch(at, { method, headers: fixture.headers[caller], ...(body && { body }) });
      await response.arrayBuffer();
      answer.status = response.status;
      answer.touched = JSON.stringify(await held(db)) !== JSON.stringify(before);
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  return answer;
}

/** The owner's lease and waiting request, as they stand. */
async function held(db: Database) {
  return [
    await db.select().from(leases).where(eq(leases.id, fixture.leaseId)),
    await db.select().from(leaseRequests).where(eq(leaseRequests.id, fixture.waitingId)),
  ];
}

async function makeFixture(): Promise<Fixture> {
  const world = await makeWorld(test.db);
  const { team, otherTeam, member, colleague, outsider, admin } = world;
  await test.db.update(gpus).set({ profile: PROFILE });
  await test.db.update(gpuServers).set({ dataAddress: "tcp://127.0.0.1:1" });
  const leaver = await makePerson(test.db, { name: "Lea", teams: { [team]: "member" } });
  const owner = await makeWorkspace(world, { owner: member });
  const pod = await makeWorkspace(world, { owner: outsider, teamId: otherTeam });
  await test.db.update(workspaces).set({ podUid: randomUUID(), launcher: "pod" }).where(eq(workspaces.id, pod.id));
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
  const theirs = async (made: Promise<{ credential: string }>) => bearer((await made).credential);
  const machines = {
    owner: bearer(owner.credential),
    sibling: await theirs(makeWorkspace(world, { owner: member })),
    colleague: await theirs(makeWorkspace(world, { owner: colleague })),
    stranger: await theirs(makeWorkspace(world, { owner: outsider, teamId: otherTeam })),
    pod: bearer(pod.credential),
    stopped: await theirs(makeWorkspace(world, { owner: member, running: false })),
    left: await theirs(makeWorkspace(world, { owner: leaver })),
  };
  await test.db.delete(memberships).where(eq(memberships.userId, leaver.id));
  const { secret } = await createToken(admin.ctx, { name: "broker", scopes: [...tokenScopes] });
  const { token } = await createJoinToken(admin.ctx);
  const principal = { kind: "workspace" as const, workspaceId: owner.id, teamId: team, userId: member.id };
  const ctx = { ...world.system, principal };
  const granted = await request(ctx, asks(randomUUID(), "0.5"));
  if (granted.state !== "granted") throw new Error(`The lease was not granted: ${JSON.stringify(granted)}`);
  // More than is left of what the team may use.
  const waitingKey = randomUUID();
  await request(ctx, asks(waitingKey, "1", 12));
  const [waits] = await test.db.select().from(leaseRequests).where(eq(leaseRequests.state, "queued"));
  return {
    ...{ leaseId: granted.lease.id, waitingKey, waitingId: waits?.id ?? "" },
    headers: {
      ...{ nobody: {}, browser: { cookie: admin.cookie }, token: bearer(secret), gpuServer: bearer(token) },
      ...machines,
    },
  };
}
