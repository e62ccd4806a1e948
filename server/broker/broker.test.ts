import { generateKeyPairSync, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { decodeJwt, decodeProtectedHeader, importJWK, jwtVerify } from "jose";
import pino from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { systemContext } from "#server/context.ts";
import { deviceProfile } from "#server/contracts/control.ts";
import type {
  GiveBackAnswer,
  LeaseExplanation,
  LeaseRequestAnswer,
  LeaseStatus,
  OpenSessionAnswer,
} from "#server/contracts/lease.ts";
import { sessionTokenClaims } from "#server/contracts/session-token.ts";
import {
  auditEvents,
  gpuServers,
  gpus,
  leaseIntervals,
  leaseRequests,
  leases,
  memberships,
  notices,
  quotas,
  teamPolicies,
  workspaces,
} from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import { createJoinToken } from "#server/services/gpu-server/create-join-token.ts";
import { closeLost } from "#server/services/gpu-server/lose.ts";
import { map } from "#server/services/gpu-server/map.ts";
import { overview } from "#server/services/gpu-server/overview.ts";
import { remove } from "#server/services/gpu-server/remove.ts";
import { end } from "#server/services/lease/end.ts";
import { endForWorkspace } from "#server/services/lease/end-for-workspace.ts";
import { makeTeam, makeWorkspace, type TestWorkspace } from "#server/services/lease/testing.ts";
import { VERSION } from "#server/version.ts";
import { type Broker, startBroker } from "./broker.ts";
import { joinSimulatedGpud, noUsage, type SimulatedGpud } from "./control/testing-gpud.ts";

const log = pino({ level: "silent" });
let stateDir: string;
let database: TestDatabase;
let broker: Broker;
let gpud: SimulatedGpud;
let team: string;

/** Waits for a check to pass: generous for a loaded machine, and no longer than the check takes elsewhere. */
const eventually = <T>(check: () => T | Promise<T>): Promise<T> => vi.waitFor(check, { timeout: 20_000, interval: 25 });

/** How often the liveness loop has read its facts. While `gate` is pending, the loop waits before it reads. */
const looks = vi.hoisted(() => ({ started: 0, finished: 0, gate: Promise.resolve() }));
vi.mock("./liveness-facts.ts", async (load) => {
  const facts = await load<typeof import("./liveness-facts.ts")>();
  const loadFacts: typeof facts.loadFacts = async (...input) => {
    await looks.gate;
    looks.started += 1;
    const look = looks.started;
    const loaded = await facts.loadFacts(...input);
    looks.finished = look;
    return loaded;
  };
  return { ...facts, loadFacts };
});

/** Waits until the liveness loop has read facts that it began to read after the call. */
async function livenessLook(): Promise<void> {
  const before = looks.started;
  await eventually(() => expect(looks.finished).toBeGreaterThan(before));
}

/** Waits until the liveness loop has begun and completed a round after the call. */
async function livenessRound(): Promise<void> {
  const before = looks.started;
  await eventually(() => expect(looks.started).toBeGreaterThan(before + 1));
}

beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-broker-"));
  database = await createTestDatabase({ max: 10 });
});
afterAll(async () => {
  await database.drop();
  await rm(stateDir, { recursive: true, force: true });
});

// A broker of its own for each test, which takes about ten milliseconds in this process: its liveness loop would look at
// the tables while they are reset, and some tests stop it or move its clock.
beforeEach(async () => {
  await resetTestDatabase(database);
  broker = await startBroker({ database, env: { SLUICE_STATE_DIR: stateDir }, log, port: 0 });
  gpud = await join("local", 1);
  team = await makeTeam(database.db, "vision", { guaranteedMilli: 500, limitMilli: 1000 });
});
afterEach(async () => {
  gpud.close();
  await broker.stop();
});

const url = () => `http://127.0.0.1:${broker.port}`;
const internalUrl = () => `http://127.0.0.1:${broker.internalPort}`;
const system = () => systemContext(database.db);

async function join(name: string, devices: number, extra: { answers?: boolean } = {}): Promise<SimulatedGpud> {
  const { token } = await createJoinToken(system());
  return await joinSimulatedGpud({ brokerUrl: url, joinToken: token, name, devices, ...extra });
}

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

let pid = 100;
type Ask = {
  amount?: string;
  memory?: string;
  waitSeconds?: number;
  requestId?: string;
  guaranteed?: boolean;
  priority?: "low" | "normal" | "high";
  pinnedGpuId?: string;
  maxDevices?: number;
  forSeconds?: number;
  pid?: number;
};
async function ask(who: TestWorkspace, options: Ask = {}): Promise<LeaseRequestAnswer> {
  const { amount = "0.5", waitSeconds = 60, requestId = randomUUID(), pid: given, ...rest } = options;
  pid += 1;
  const owner = { kind: "kernel", pid: given ?? pid, startTime: 7, label: "kmeans.ipynb" };
  const answer = await call<LeaseRequestAnswer>(who, "POST", "/v1/lease-requests", {
    requestId,
    amount,
    waitSeconds,
    owner,
    ...rest,
  });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
}

async function granted(who: TestWorkspace, options: Ask = {}) {
  const answer = await ask(who, options);
  if (answer.state !== "granted") throw new Error(`not granted: ${JSON.stringify(answer)}`);
  return answer.lease;
}

/** Connects a client process, as gpud would report it. */
async function claim(leaseId: string, server = gpud): Promise<void> {
  server.held.set(leaseId, noUsage(leaseId));
  server.send({ type: "session-opened", leaseId, sessionId: randomUUID() });
  await eventually(async () => expect((await leaseRow(leaseId)).claimedAt).not.toBeNull());
}

async function leaseRow(leaseId: string) {
  const [row] = await database.db.select().from(leases).where(eq(leases.id, leaseId));
  if (row === undefined) throw new Error("no such lease");
  return row;
}

describe("a workspace", () => {
  test("borrows half a GPU, sees it, opens a session and gives it back", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    expect(lease).toMatchObject({
      gpuType: "soft",
      milli: 500,
      memoryBytes: 4 * 1024 ** 3,
      deviceName: "soft-0",
      serverName: "local",
      borrowed: false,
    });

    const key = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x ?? "";
    const session = await call<OpenSessionAnswer>(ada, "POST", `/v1/leases/${lease.id}/sessions`, {
      publicKey: key,
      pid: 1,
      startTime: 1,
    });
    expect(session.status).toBe(200);
    const welcome = gpud.received.find((message) => message.type === "welcome");
    const kid = decodeProtectedHeader(session.body.token).kid ?? "";
    const verifyKey = await importJWK({ kty: "OKP", crv: "Ed25519", x: welcome?.keys[kid] ?? "" }, "EdDSA");
    const { payload } = await jwtVerify(session.body.token, verifyKey, { audience: `gpud:${gpud.serverId}` });
    expect(sessionTokenClaims.parse(payload)).toMatchObject({
      sub: ada.workspaceId,
      cnf: { ed25519: key },
      lease: { id: lease.id, milli: 500 },
    });
    expect(sessionTokenClaims.parse(payload).lease.ceilingMilli).toBeUndefined();
    await database.db.insert(teamPolicies).values({ teamId: team, computeCeiling: "share" });
    const again = { publicKey: key, pid: 1, startTime: 1 };
    const next = await call<OpenSessionAnswer>(ada, "POST", `/v1/leases/${lease.id}/sessions`, again);
    expect(sessionTokenClaims.parse(decodeJwt(next.body.token)).lease.ceilingMilli).toBe(500);

    await claim(lease.id);
    const seen = await call<LeaseStatus>(ada, "GET", "/v1/status");
    expect(seen.body.leases).toHaveLength(1);
    expect(seen.body.team.quotas).toEqual([
      { gpuType: "soft", guaranteedMilli: 500, guaranteedNowMilli: 500, limitMilli: 1000, usedMilli: 500 },
    ]);
    expect(seen.body.free).toEqual([{ gpuType: "soft", grantedAtOnceMilli: 500, freeMilli: 500 }]);

    const mine = await call<{ leases: { id: string }[] }>(ada, "GET", "/v1/leases");
    expect(mine.body.leases).toMatchObject([{ id: lease.id, milli: 500, endedAt: null }]);

    const back = await call<GiveBackAnswer>(ada, "DELETE", `/v1/leases/${lease.id}?park=1`);
    const devices = [{ leaseId: lease.id, parkedBytes: 0 }];
    expect(back.body).toMatchObject({ leaseId: lease.id, parkedBytes: 0, devices });
    expect(gpud.received.at(-1)).toMatchObject({ type: "end-lease", leaseId: lease.id, mode: "park" });
    expect(await leaseRow(lease.id)).toMatchObject({ state: "ended", endReason: "given back" });
    const [interval] = await database.db.select().from(leaseIntervals).where(eq(leaseIntervals.leaseId, lease.id));
    expect(interval?.endedAt).not.toBeNull();
  });

  test("learns with a session on a software GPU which types of the pool are cards", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    const typesNow = async () => {
      const input = { publicKey: "A".repeat(43), pid: 1, startTime: 1 };
      const session = await call<OpenSessionAnswer>(ada, "POST", `/v1/leases/${lease.id}/sessions`, input);
      return session.body.hardwareTypes;
    };
    expect(await typesNow()).toEqual([]);
    const [soft] = await database.db.select().from(gpus);
    if (soft === undefined) throw new Error("The pool has no device.");
    const profile = { ...deviceProfile.parse(soft.profile), driver: "580.65.06" };
    const card = (gpuType: string, index: number) => ({
      ...soft,
      ...{
        id: `gpu-${gpuType}-${index}`,
        uuid: `GPU-${gpuType}-${index}`,
        name: `${gpuType}-${index}`,
        gpuType,
        profile,
      },
    });
    await database.db.insert(gpus).values([card("h200", 0), card("a100", 0), card("a100", 1)]);
    await database.db.insert(gpus).values({ ...card("t4", 0), state: "lost" });
    expect(await typesNow()).toEqual(["a100", "h200"]);
    await database.db.update(gpus).set({ profile }).where(eq(gpus.id, soft.id));
    expect(await typesNow()).toBeUndefined();
  });

  test("gets one lease for one key, however often it asks", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const requestId = randomUUID();
    const answers = await Promise.all(Array.from({ length: 8 }, async () => await ask(ada, { requestId, pid: 5 })));
    const ids = answers.map((answer) => (answer.state === "granted" ? answer.lease.id : answer.state));
    expect(new Set(ids).size).toBe(1);
    expect(await database.db.select().from(leases)).toHaveLength(1);
  });

  test("waits for its place with the reason, and is granted when somebody gives back", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    const first = await granted(ada);
    await granted(lin);
    const waiting = await ask(ada, { amount: "0.25" });
    expect(waiting).toMatchObject({ state: "queued", position: 1, of: 1, reason: { rule: "team-limit" } });
    if (waiting.state !== "queued") throw new Error("queued");
    expect(waiting.reason.message).toBe("team vision is at its limit (1.0 of 1.0 soft).");
    expect(waiting.reason.holders).toMatchObject([
      { amount: "0.5", who: "you", label: "kmeans.ipynb" },
      { amount: "0.5", who: "Lin", label: "kmeans.ipynb" },
    ]);
    const poll = call<LeaseRequestAnswer>(ada, "GET", `/v1/lease-requests/${waiting.requestId}?wait=20`);
    const started = performance.now();
    await call(ada, "DELETE", `/v1/leases/${first.id}`);
    expect((await poll).body).toMatchObject({ state: "granted", lease: { milli: 250 } });
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  test("comes before others of its team with a higher priority, whoever asked first, and says why it waits to nobody else", async () => {
    const [ada, lin, mia] = [
      await makeWorkspace(database.db, team, "Ada"),
      await makeWorkspace(database.db, team, "Lin"),
      await makeWorkspace(database.db, team, "Mia"),
    ];
    await granted(ada, { amount: "1" });
    const first = await ask(lin);
    expect(await ask(mia, { priority: "high" })).toMatchObject({ state: "queued", position: 1, of: 2 });
    const why = `/v1/lease-requests/${first.requestId}/explanation`;
    expect((await call<LeaseExplanation>(lin, "GET", why)).body).toMatchObject({ position: 2, of: 2 });
    expect((await call(mia, "GET", why)).status).not.toBe(200);
  });

  test("is refused at once with --wait 0, and leaves nothing in the queue", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    await granted(ada, { amount: "1" });
    expect(await ask(lin, { waitSeconds: 0 })).toMatchObject({ state: "refused", reason: { rule: "team-limit" } });
    expect(await database.db.select().from(leaseRequests).where(eq(leaseRequests.state, "queued"))).toHaveLength(0);
  });

  test.each([
    ["0", "An amount must be more than 0; you asked for 0."],
    ["-1", "An amount must be more than 0; you asked for -1."],
    ["1.5", "Above one GPU only whole GPUs can be borrowed; you asked for 1.5: use 1 or 2."],
    ["0,5", '"0,5" has a comma; write amounts with a point.'],
    ["2", "team vision may use at most 1.0 soft at once; you asked for 2."],
    ["40G", "You asked for 40.0 GiB of GPU memory; the largest soft device has 8.0 GiB for leases."],
  ])("is told what is wrong with the amount %s", async (amount, message) => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const answer = await ask(ada, { amount });
    expect(answer).toMatchObject({ state: "refused", reason: { message } });
    if (answer.state === "refused") expect(answer.reason.hint).toMatch(/^%gpu attach/);
  });

  test("gets the compute and the memory that it names, and is charged the larger part", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    expect(await granted(ada, { amount: "0.25", memory: "1G" })).toMatchObject({ milli: 250, memoryBytes: 1024 ** 3 });
    expect(await granted(lin, { amount: "0.25", memory: "4G" })).toMatchObject({
      milli: 500,
      memoryBytes: 4 * 1024 ** 3,
    });
  });

  test("leaves the queue, and a grant that nothing uses goes back", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada, { amount: "1" });
    const waiting = await ask(ada);
    const left = await call<LeaseRequestAnswer>(ada, "DELETE", `/v1/lease-requests/${waiting.requestId}`);
    expect(left.body).toMatchObject({ state: "cancelled" });
    const [row] = await database.db.select().from(leases).where(eq(leases.id, lease.id));
    const [own] = await database.db
      .select()
      .from(leaseRequests)
      .where(eq(leaseRequests.id, row?.requestId ?? ""));
    const cancelled = await call<LeaseRequestAnswer>(ada, "DELETE", `/v1/lease-requests/${own?.idempotencyKey}`);
    expect(cancelled.body).toMatchObject({ state: "cancelled" });
    await eventually(async () => expect((await leaseRow(lease.id)).state).toBe("ended"));
  });

  test("cannot touch another workspace's lease, nor act with a wrong or stopped workspace's credential", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    const lease = await granted(ada);
    expect((await call(lin, "DELETE", `/v1/leases/${lease.id}`)).status).toBe(404);
    const thief = { ...lin, credential: `slw_${"A".repeat(43)}` };
    expect((await call(thief, "GET", "/v1/status")).status).toBe(401);
    await database.db.update(workspaces).set({ desired: "stopped" }).where(eq(workspaces.id, lin.workspaceId));
    expect((await call(lin, "GET", "/v1/status")).status).toBe(401);
    expect((await leaseRow(lease.id)).state).toBe("granted");
  });

  test("loses what a dead kernel held as soon as the report lacks it", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada, { pid: 41 });
    await claim(lease.id);
    const alive = (pids: number[]) => ({ alive: pids.map((one) => ({ kind: "kernel", pid: one, startTime: 7 })) });
    expect((await call(ada, "PUT", "/v1/owners", alive([41, 42]))).body).toEqual({ released: 0 });
    expect((await call(ada, "PUT", "/v1/owners", alive([42]))).body).toEqual({ released: 1 });
    await eventually(async () =>
      expect(await leaseRow(lease.id)).toMatchObject({ state: "ended", endReason: "owner gone" }),
    );
  });

  test("with two notebooks that attach at once gets one lease each, and no more than there is", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const answers = await Promise.all([ask(ada), ask(ada), ask(ada)]);
    expect(answers.map((answer) => answer.state).sort()).toEqual(["granted", "granted", "queued"]);
  });

  test("whose notebook dies while it waits, or before it has connected, leaves neither a place nor a lease", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada, { amount: "1", pid: 41 });
    const waiting = await ask(ada, { pid: 42 });
    const alive = (pids: number[]) => ({ alive: pids.map((one) => ({ kind: "kernel", pid: one, startTime: 7 })) });
    await call(ada, "PUT", "/v1/owners", alive([41, 42]));
    await call(ada, "PUT", "/v1/owners", alive([]));
    await eventually(async () => expect((await leaseRow(lease.id)).state).toBe("ended"));
    const poll = await call<LeaseRequestAnswer>(ada, "GET", `/v1/lease-requests/${waiting.requestId}`);
    expect(poll.body.state).toBe("cancelled");
  });

  test("is told to detach first when it asks for a second GPU, and may ask anew after an attach that never connected", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lost = await granted(ada, { pid: 9 });
    const lease = await granted(ada, { pid: 9 });
    await eventually(async () => expect((await leaseRow(lost.id)).state).toBe("ended"));
    await claim(lease.id);
    const owner = { kind: "kernel", pid: 9, startTime: 7 };
    const again = await call(ada, "POST", "/v1/lease-requests", { requestId: randomUUID(), amount: "0.25", owner });
    expect(again).toMatchObject({ status: 409, body: { error: { code: "conflict" } } });

    // Its connection is lost: what nothing is connected to does not stand in the way.
    gpud.send({ type: "session-closed", leaseId: lease.id, sessionId: "s", clean: false });
    await eventually(async () => expect((await leaseRow(lease.id)).disconnectedAt).not.toBeNull());
    expect(await ask(ada, { pid: 9 })).toMatchObject({ state: "granted" });
    await eventually(async () => expect((await leaseRow(lease.id)).state).toBe("ended"));
  });
});

describe("every address", () => {
  /** Writes bytes to the broker's port and returns what comes back; with `reset` it hangs up at once. */
  async function knock(bytes: string, reset = false): Promise<string> {
    return await new Promise((resolve) => {
      let answer = "";
      const socket = connect(broker.port, "127.0.0.1", () => {
        socket.write(bytes);
        if (reset) socket.resetAndDestroy();
      });
      socket.on("data", (chunk: Buffer) => {
        answer += chunk.toString();
        if (answer.includes("\r\n\r\n")) socket.end();
      });
      socket.on("error", () => resolve(answer));
      socket.on("close", () => resolve(answer));
    });
  }

  test("survives what is no address, and whoever hangs up in the middle", async () => {
    const upgrade = "Host: broker\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    expect(await knock(`GET // HTTP/1.1\r\n${upgrade}`)).toContain("404 Not Found");
    expect(await knock("GET // HTTP/1.1\r\nHost: broker\r\n\r\n")).toContain("The address is not well-formed.");
    for (let i = 0; i < 20; i++) await knock(`GET /x HTTP/1.1\r\n${upgrade}`, true);
    expect((await fetch(`${url()}/healthz`)).status).toBe(200);
  });

  test("refuses a program that asks for a GPU in a loop, and no other workspace", async () => {
    const before = process.env.SLUICE_LEASE_REQUESTS_PER_MINUTE;
    const limit = (perMinute: string | undefined) => {
      process.env.SLUICE_LEASE_REQUESTS_PER_MINUTE = perMinute;
      resetEnv();
    };
    limit("3");
    onTestFinished(() => limit(before));
    const [looping, other] = [
      await makeWorkspace(database.db, team, "Ada"),
      await makeWorkspace(database.db, team, "Eve"),
    ];
    const post = async (who: TestWorkspace) =>
      await fetch(`${url()}/v1/lease-requests`, {
        ...{ method: "POST", headers: { authorization: `Bearer ${who.credential}` } },
        body: JSON.stringify({ requestId: randomUUID(), amount: "0.0" }),
      });
    const answers = [];
    for (let asked = 0; asked < 5; asked++) answers.push(await post(looping));
    expect(answers.map(({ status }) => status === 429)).toEqual([false, false, false, true, true]);
    const last = answers.at(-1);
    expect(Number(last?.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await last?.text()).toContain("sent 3 requests for GPUs within a minute");
    const extension = { method: "POST", headers: { authorization: `Bearer ${looping.credential}` }, body: "{}" };
    expect((await fetch(`${url()}/v1/leases/lea-none/extend`, extension)).status).toBe(429);
    expect((await post(other)).status).not.toBe(429);
  });

  test.each(["a\u0000b", "a\ud800b"])("refuses a text that no table could hold (%j)", async (requestId) => {
    const who = await makeWorkspace(database.db, team, "Ada");
    const answer = await call<{ error: { message: string } }>(who, "POST", "/v1/lease-requests", { requestId });
    expect([answer.status, answer.body.error.message]).toEqual([400, expect.stringContaining("A text may not hold")]);
  });
});

describe("gpud", () => {
  test("is refused with a used join token, and with another key than it joined with", async () => {
    const { token } = await createJoinToken(system());
    const second = await joinSimulatedGpud({ brokerUrl: url, joinToken: token, name: "two", devices: 1 });
    second.close();
    await expect(joinSimulatedGpud({ brokerUrl: url, joinToken: token, name: "three", devices: 1 })).rejects.toThrow(
      /403/,
    );
    await expect(joinSimulatedGpud({ brokerUrl: url, joinToken: token, name: "three", devices: 1 })).rejects.toThrow(
      /not valid/,
    );
  });

  test("that comes back without a claimed lease's workers has ended it; one that waits to be claimed goes on", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const used = await granted(ada);
    const fresh = await granted(ada, { amount: "0.25" });
    await claim(used.id);
    gpud.cut();
    await eventually(async () => expect((await leaseRow(used.id)).state).toBe("unreachable"));
    gpud.held.clear();
    await gpud.connect();
    expect(await leaseRow(used.id)).toMatchObject({ state: "ended", endReason: "server lost" });
    expect(await leaseRow(fresh.id)).toMatchObject({ state: "granted" });
  });

  test("that was only cut off keeps its leases", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    await claim(lease.id);
    gpud.cut();
    await eventually(async () => expect((await leaseRow(lease.id)).state).toBe("unreachable"));
    await gpud.connect();
    expect(await leaseRow(lease.id)).toMatchObject({ state: "active", endReason: null });
    expect(gpud.received.filter((message) => message.type === "welcome").at(-1)?.leases).toEqual([lease.id]);
  });

  test("ends a grant without an owner after one chance of 10 s, also when brokers do not live for 60 s", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    const ago = (ms: number) => new Date(Date.now() - ms);
    const long = { grantedAt: ago(300_000), ownerSeenAt: ago(300_000) };
    await database.db.update(leases).set(long).where(eq(leases.id, lease.id));
    await eventually(async () => expect((await leaseRow(lease.id)).claimChanceAt).not.toBeNull());
    await livenessRound();
    expect(await leaseRow(lease.id)).toMatchObject({ state: "granted" });
    const { claimChanceAt } = await leaseRow(lease.id);
    expect(Date.now() - (claimChanceAt?.getTime() ?? 0)).toBeLessThan(10_000);
    await database.db
      .update(leases)
      .set({ claimChanceAt: ago(10_000) })
      .where(eq(leases.id, lease.id));
    await eventually(async () => expect(await leaseRow(lease.id)).toMatchObject({ endReason: "never used" }));
  });

  test("keeps its leases, and who waits the place, when the machine was suspended: nobody could be heard", async () => {
    const [ada, bob] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Bob")];
    const lease = await granted(ada, { amount: "1" });
    await claim(lease.id);
    expect(await ask(bob, { waitSeconds: 86_400 })).toMatchObject({ state: "queued" });
    // An hour on: longer than anybody may be silent, or idle.
    vi.useFakeTimers({ toFake: ["Date"], shouldAdvanceTime: true, now: Date.now() + 3_600_000 });
    try {
      await livenessRound();
      expect(await leaseRow(lease.id)).toMatchObject({ state: "active", endReason: null });
      expect(await database.db.select().from(leaseRequests).where(eq(leaseRequests.state, "queued"))).toHaveLength(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test("keeps a lease that is extended at the moment at which its time is up", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    await claim(lease.id);
    const lasting = (ms: number) => ({ expiresAt: new Date(Date.now() + ms) });
    const { promise, resolve: openGate } = Promise.withResolvers<void>();
    looks.gate = promise;
    try {
      await database.db.update(leases).set(lasting(0)).where(eq(leases.id, lease.id));
      await database.db.transaction(async (tx) => {
        await tx.update(leases).set(lasting(3_600_000)).where(eq(leases.id, lease.id));
        // Until the transaction commits, the loop sees that the lease has expired.
        openGate();
        await livenessLook();
      });
    } finally {
      openGate();
    }
    await livenessRound();
    expect(await leaseRow(lease.id)).toMatchObject({ state: "active", endReason: null });
  });

  test("ends a lease after the longest time of its team, however long it was asked for, and extends it to that alone", async () => {
    await database.db.insert(teamPolicies).values({ teamId: team, maxLeaseSeconds: 3600 });
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lasts = (lease: { grantedAt: Date; expiresAt: Date }) =>
      (lease.expiresAt.getTime() - lease.grantedAt.getTime()) / 1000;
    const long = await granted(ada, { forSeconds: 7200 });
    expect(lasts(await leaseRow(long.id))).toBe(3600);
    const extend = (id: string, forSeconds: number) =>
      call<{ error: { message: string } }>(ada, "POST", `/v1/leases/${id}/extend`, { forSeconds });
    const refused = await extend(long.id, 60);
    expect(refused).toMatchObject({ status: 422 });
    expect(refused.body.error.message).toMatch(
      /^A lease of your team lasts at most 1 h; this one can be extended by 0 min/,
    );
    const short = await granted(ada, { forSeconds: 600 });
    expect(await extend(short.id, 3001)).toMatchObject({ status: 422 });
    expect(await extend(short.id, 3000)).toMatchObject({ status: 200 });
    expect(lasts(await leaseRow(short.id))).toBe(3600);
    await claim(long.id);
    await database.db.update(leases).set({ expiresAt: new Date() }).where(eq(leases.id, long.id));
    await eventually(async () => expect((await leaseRow(long.id)).state).toBe("ended"));
    expect(await leaseRow(long.id)).toMatchObject({ endReason: "time up", endMode: "park" });
    expect(await leaseRow(short.id)).toMatchObject({ state: "granted" });
  });

  test("says in its hello who has come and gone while nobody listened", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const [used, left] = [await granted(ada), await granted(ada)];
    await claim(left.id);
    gpud.cut();
    gpud.held.set(used.id, noUsage(used.id, 1));
    gpud.held.set(left.id, noUsage(left.id, 0));
    await gpud.connect();
    expect(await leaseRow(used.id)).toMatchObject({ state: "active", disconnectedAt: null });
    expect((await leaseRow(used.id)).claimedAt).not.toBeNull();
    expect((await leaseRow(left.id)).disconnectedAt).not.toBeNull();
  });

  test("reports what is used, and the pool shows it with who holds it", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    await claim(lease.id);
    const used = { memoryBytes: 1024, gpuTimeUs: 200_000, deliveredUs: 90_000, promisedUs: 100_000, calls: 5 };
    const smActivity = { activeUs: 60_000, knownUs: 150_000, estimatedUs: 0 };
    gpud.send({ type: "usage", leases: [{ ...noUsage(lease.id), ...used, smActivity }] });
    await eventually(async () => expect((await leaseRow(lease.id)).gpuTimeUs).toBe(200_000));
    const kept = { deliveredUs: 90_000, promisedUs: 100_000, smActiveUs: 60_000, smKnownUs: 150_000 };
    expect(await leaseRow(lease.id)).toMatchObject(kept);
    const told = await (await fetch(`${internalUrl()}/metrics`)).text();
    // Half of a GPU for that part of the last minute.
    for (const [metric, seconds] of [
      ['sluice_used_gpus{gpu_type="soft",sm_activity="known"}', 0.15],
      ['sluice_used_gpus{gpu_type="soft",sm_activity="unknown"}', 0.05],
      ['sluice_effective_gpus{gpu_type="soft",source="counted"}', 0.06],
    ] as const) {
      const line = told.split("\n").find((one) => one.startsWith(`${metric} `));
      expect(Number(line?.split(" ").at(-1)), metric).toBeCloseTo((0.5 * seconds) / 60, 9);
    }
    const pool = await overview(system());
    expect(pool.totals).toEqual([
      {
        ...{ gpuType: "soft", devices: 1, lostDevices: 0, capacityMilli: 1000, leasedMilli: 500, idleHeldMilli: 0 },
        ...{
          leasedMemoryBytes: pool.devices[0]?.leasedMemoryBytes,
          usedMemoryBytes: 1024,
          queued: 0,
          strandedMilli: 0,
        },
      },
    ]);
    expect(pool.devices[0]).toMatchObject({ name: "soft-0", leasedMilli: 500, usedMemoryBytes: 1024 });
    expect(pool.devices[0]?.computePercent).toBeGreaterThan(0);
    const atAGlance = await map(system(), { search: "ada soft-0" });
    expect(atAGlance.servers[0]?.devices[0]).toMatchObject({
      ...{ name: "soft-0", leasedMilli: 500, idleHeldMilli: 0, state: "active" },
      computePercent: pool.devices[0]?.computePercent,
    });
    // Half of the device is free, and of no use to whoever wants more.
    const eve = await ask(await makeWorkspace(database.db, team, "Eve"), { amount: "0.75" });
    expect(eve.state).toBe("queued");
    expect((await map(system())).totals).toMatchObject([{ queued: 1, strandedMilli: 500 }]);
    expect(await (await fetch(`${internalUrl()}/metrics`)).text()).toContain(
      'sluice_stranded_gpus{gpu_type="soft"} 0.5\n',
    );
    expect(await map(system(), { search: "nobody" })).toMatchObject({ servers: [], serverCount: 0, next: null });
    expect(pool.devices[0]?.leases[0]).toMatchObject({ userName: "Ada", teamName: "vision", workspaceName: "Ada" });
  });

  test("tells how far a kernel has come while it runs, also when it runs for the first time", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    await claim(lease.id);
    const seen = async () => (await call<LeaseStatus>(ada, "GET", "/v1/status")).body.leases[0]?.running;
    const running = { kernel: "matmul", blocksDone: 1204, blocks: 16_384, seconds: 9 };
    gpud.send({ type: "usage", leases: [{ ...noUsage(lease.id), running }] });
    await eventually(async () => expect(await seen()).toEqual(running));
    // A gpud of before says nothing of it.
    const before: Partial<ReturnType<typeof noUsage>> = noUsage(lease.id);
    delete before.running;
    delete before.smActivity;
    gpud.send({ type: "usage", leases: [before as ReturnType<typeof noUsage>] });
    await eventually(async () => expect(await seen()).toBeNull());
  });

  test("reports a kernel over the policy's length with its team, once a run", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lead = await makeWorkspace(database.db, team, "Lea");
    await database.db.update(memberships).set({ role: "lead" }).where(eq(memberships.userId, lead.userId));
    const lease = await granted(ada);
    await claim(lease.id);
    const kernel = { kernel: "matmul", blocksDone: 7, blocks: 64 };
    const reports = () => database.db.select().from(auditEvents).where(eq(auditEvents.action, "lease.long-kernel"));
    const report = async (running: typeof kernel & { seconds: number }, memoryBytes: number) => {
      gpud.send({ type: "usage", leases: [{ ...noUsage(lease.id), running, memoryBytes }] });
      await eventually(async () => expect((await leaseRow(lease.id)).usedMemoryBytes).toBe(memoryBytes));
    };
    await report({ ...kernel, seconds: 299 }, 1);
    expect(await reports()).toEqual([]);
    await report({ ...kernel, seconds: 300 }, 2);
    await report({ ...kernel, seconds: 301 }, 3);
    await eventually(async () => expect(await reports()).toHaveLength(1));
    expect(await reports()).toMatchObject([
      { subject: lease.id, teamId: team, detail: { kernel: "matmul", seconds: 300, milli: 500 } },
    ]);
    const told = await database.db.select().from(notices).where(eq(notices.kind, "long-kernel"));
    expect(told.map(({ userId }) => userId).sort()).toEqual([ada.userId, lead.userId].sort());
    expect(told[0]).toMatchObject({ title: "A kernel of kmeans.ipynb has run for 5 min" });
    expect(told[0]?.body).toContain("matmul, of team vision, on 0.5 ");
    // The next launch of the same kernel is a run of its own.
    await report({ ...kernel, seconds: 302 }, 4);
    await report({ ...kernel, seconds: 4 }, 5);
    await report({ ...kernel, seconds: 305 }, 6);
    await eventually(async () => expect(await reports()).toHaveLength(2));
    // A name of any length is a program's right.
    await report({ ...kernel, kernel: "k".repeat(9_000), seconds: 306 }, 7);
    await eventually(async () => expect(await reports()).toHaveLength(3));
  });

  test("reports a kernel over the length that its own team's policy gives, and none where that says 0", async () => {
    const nlp = await makeTeam(database.db, "nlp", { guaranteedMilli: 0, limitMilli: 1000 });
    await database.db.insert(teamPolicies).values({ teamId: team, longKernelSeconds: 0 });
    await database.db.insert(teamPolicies).values({ teamId: nlp, longKernelSeconds: 60 });
    const [silent, strict] = [
      await makeWorkspace(database.db, team, "Ada"),
      await makeWorkspace(database.db, nlp, "Eve"),
    ];
    const held = [await granted(silent), await granted(strict)];
    for (const { id } of held) await claim(id);
    const report = async (seconds: number, memoryBytes: number) => {
      const running = { kernel: "matmul", blocksDone: 7, blocks: 64, seconds };
      gpud.send({ type: "usage", leases: held.map(({ id }) => ({ ...noUsage(id), running, memoryBytes })) });
      for (const { id } of held) {
        await eventually(async () => expect((await leaseRow(id)).usedMemoryBytes).toBe(memoryBytes));
      }
    };
    const reports = () => database.db.select().from(auditEvents).where(eq(auditEvents.action, "lease.long-kernel"));
    await report(59, 1);
    expect(await reports()).toEqual([]);
    await report(60, 2);
    await report(100_000, 3);
    await eventually(async () => expect(await reports()).toHaveLength(1));
    expect(await reports()).toMatchObject([{ subject: held[1]?.id, teamId: nlp, detail: { seconds: 60 } }]);
  });

  test("takes back with notice what is above a guarantee, parks it, and gives it to the team below its own", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada, { amount: "1" });
    await claim(lease.id);
    const nlp = await makeTeam(database.db, "nlp", { guaranteedMilli: 500, limitMilli: 1000 });
    const eve = await makeWorkspace(database.db, nlp, "Eve");
    const waiting = await ask(eve);
    // Who of another team holds it is that team's affair.
    expect(waiting).toMatchObject({ state: "queued", reason: { rule: "reclaim", holders: [{ who: "team vision" }] } });
    const status = await call<LeaseStatus>(ada, "GET", "/v1/status");
    const notice = status.body.leases[0]?.lease.notice;
    expect(Date.parse(notice?.releaseAt ?? "")).toBeGreaterThan(Date.now() + 60_000);
    const extended = await call(ada, "POST", `/v1/leases/${lease.id}/extend`, { forSeconds: 60 });
    expect(extended.status).toBe(422);
    const why = await call<LeaseExplanation>(eve, "GET", `/v1/lease-requests/${waiting.requestId}/explanation`);
    expect(why.body).toMatchObject({
      position: 1,
      of: 1,
      reason: { rule: "reclaim", holders: [{ who: "team vision" }] },
    });
    // The notice is over.
    await database.db.update(leases).set({ releaseAt: new Date(Date.now() - 1000) });
    const poll = await call<LeaseRequestAnswer>(eve, "GET", `/v1/lease-requests/${waiting.requestId}?wait=20`);
    expect(poll.body).toMatchObject({ state: "granted", lease: { borrowed: false } });
    expect(await leaseRow(lease.id)).toMatchObject({ state: "ended", endReason: "taken back", endMode: "park" });
  });

  test("withdraws a notice when the request that it was for has left", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada, { amount: "1" });
    const nlp = await makeTeam(database.db, "nlp", { guaranteedMilli: 500, limitMilli: 1000 });
    const eve = await makeWorkspace(database.db, nlp, "Eve");
    const waiting = await ask(eve);
    expect((await leaseRow(lease.id)).noticeFor).not.toBeNull();
    await call(eve, "DELETE", `/v1/lease-requests/${waiting.requestId}`);
    await eventually(async () => expect((await leaseRow(lease.id)).noticeFor).toBeNull());
  });

  test("grants several GPUs whole to a client that can map them, and ends them together", async () => {
    const wide = await makeTeam(database.db, "wide", { guaranteedMilli: 0, limitMilli: 4000 });
    const ada = await makeWorkspace(database.db, wide, "Ada");
    expect(await ask(ada, { amount: "2" })).toMatchObject({ state: "refused", reason: { rule: "amount" } });
    const second = await join("second", 1);
    const lease = await granted(ada, { amount: "2", maxDevices: 2 });
    expect(lease.devices?.map((one) => one.milli)).toEqual([1000, 1000]);
    expect(new Set(lease.devices?.map((one) => one.serverName)).size).toBe(2);
    const status = await call<LeaseStatus>(ada, "GET", `/v1/status?leaseId=${lease.id}`);
    expect(status.body.leases).toMatchObject([{ lease: { devices: lease.devices }, devices: [{}, {}] }]);
    // More than there are is refused with the largest lease that could ever be.
    const eve = await makeWorkspace(database.db, wide, "Eve");
    expect(await ask(eve, { amount: "3", maxDevices: 16 })).toMatchObject({
      state: "refused",
      reason: { rule: "amount", largestMilli: 2000 },
    });
    await call(ada, "DELETE", `/v1/leases/${lease.id}`);
    await eventually(async () => {
      for (const one of lease.devices ?? []) expect((await leaseRow(one.leaseId)).state).toBe("ended");
    });
    second.close();
  });

  test("tells of several GPUs that are given back what is parked of all, which is nothing when a server of one leaves", async () => {
    const wide = await makeTeam(database.db, "wide", { guaranteedMilli: 0, limitMilli: 4000 });
    const ada = await makeWorkspace(database.db, wide, "Ada");
    gpud.close();
    const both = [await join("one", 1, { answers: false }), await join("two", 1, { answers: false })];
    const modes = async (leases: string[]) => {
      const told = (leaseId: string) => both.flatMap(({ received }) => received.filter((one) => ends(one, leaseId)));
      await eventually(() => expect(leases.flatMap(told)).toHaveLength(2));
      return leases.flatMap(told).map((one) => (one.type === "end-lease" ? one.mode : ""));
    };
    const ends = (one: (typeof gpud.received)[number], id: string) => one.type === "end-lease" && one.leaseId === id;
    const borrow = async () => {
      const lease = await granted(ada, { amount: "2", maxDevices: 2 });
      return lease.devices?.map(({ leaseId }) => leaseId) ?? [];
    };
    const giveBack = (id = "") => call<GiveBackAnswer>(ada, "DELETE", `/v1/leases/${id}?park=1`);
    const say = (leaseId: string, parkedBytes: number) => {
      for (const one of both) one.send({ type: "lease-ended", leaseId, parkedBytes, gpuTimeUs: 9 });
    };
    const [first = "", other = ""] = await borrow();
    const answer = giveBack(first);
    expect(await modes([first, other])).toEqual(["park", "park"]);
    say(first, 4096);
    await eventually(async () => expect((await leaseRow(first)).state).toBe("ended"));
    say(other, 8192);
    expect((await answer).body).toMatchObject({
      leaseId: first,
      parkedBytes: 12_288,
      devices: [
        { leaseId: first, parkedBytes: 4096 },
        { leaseId: other, parkedBytes: 8192 },
      ],
    });
    await database.db.update(leases).set({ parkedBytes: 0 });

    const again = await borrow();
    const releaseAt = new Date(Date.now() + 60_000);
    await database.db
      .update(leases)
      .set({ noticeAt: new Date(), releaseAt })
      .where(eq(leases.id, again[1] ?? ""));
    const lost = giveBack(again[0]);
    expect(await modes(again)).toEqual(["kill", "kill"]);
    for (const id of again) say(id, 0);
    expect((await lost).body).toMatchObject({ parkedBytes: 0 });
    for (const one of both) one.close();
  });

  test("that is removed loses its leases and its place; the waiting move to a server that stays", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    const lease = await granted(ada, { amount: "1" });
    const nlp = await makeTeam(database.db, "nlp", { guaranteedMilli: 500, limitMilli: 1000 });
    const eve = await makeWorkspace(database.db, nlp, "Eve");
    const waiting = await ask(eve);
    // Half of what Ada holds is above the guarantee of her team, and the other team is below its own.
    expect(waiting).toMatchObject({ state: "queued", reason: { rule: "reclaim" } });
    expect((await leaseRow(lease.id)).releaseAt).not.toBeNull();
    const second = await join("second", 1);
    const poll = await call<LeaseRequestAnswer>(eve, "GET", `/v1/lease-requests/${waiting.requestId}?wait=20`);
    expect(poll.body).toMatchObject({ state: "granted", lease: { serverName: "second" } });
    expect(await remove(system(), { serverId: gpud.serverId })).toEqual({ serverId: gpud.serverId, endedLeases: 1 });
    expect(await leaseRow(lease.id)).toMatchObject({ state: "ended", endReason: "server lost" });
    await eventually(() => expect(gpud.received.at(-1)).toMatchObject({ type: "removed" }));
    await expect(gpud.connect()).rejects.toThrow(/1008/);
    expect(await ask(lin)).toMatchObject({ state: "granted", lease: { serverName: "second" } });
    second.close();
  });
});

describe("a gpud that is silent", () => {
  test("has its leases counted until they are closed, and is fenced when it comes back", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    const lease = await granted(ada, { amount: "1" });
    await claim(lease.id);
    gpud.cut();
    await eventually(async () => expect((await leaseRow(lease.id)).state).toBe("unreachable"));
    expect(await ask(lin)).toMatchObject({ state: "queued", reason: { rule: "team-limit" } });
    expect(await closeLost(system(), { serverId: gpud.serverId })).toBe(1);
    expect(await leaseRow(lease.id)).toMatchObject({ state: "ended", endReason: "server lost" });
    await gpud.connect();
    expect(gpud.received.filter((message) => message.type === "welcome").at(-1)).toMatchObject({
      epoch: 2,
      leases: [],
    });
  });

  test("has new leases granted under its new epoch", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    await granted(ada);
    gpud.cut();
    await eventually(async () => expect(await closeLost(system(), { serverId: gpud.serverId })).toBe(1));
    await gpud.connect();
    expect((await leaseRow((await granted(ada)).id)).epoch).toBe(2);
  });
});

describe("time", () => {
  test("ends a lease with its memory parked, and what is parked is dropped with the workspace", async () => {
    gpud.close();
    gpud = await join("parks", 1, { answers: false });
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    await claim(lease.id);
    await database.db.update(leases).set({ expiresAt: new Date() }).where(eq(leases.id, lease.id));
    await eventually(() => expect(gpud.received.at(-1)).toMatchObject({ type: "end-lease", mode: "park" }));
    expect(await leaseRow(lease.id)).toMatchObject({ state: "ending", endReason: "time up" });
    gpud.send({ type: "lease-ended", leaseId: lease.id, parkedBytes: 4096, gpuTimeUs: 9 });
    await eventually(async () => expect(await leaseRow(lease.id)).toMatchObject({ state: "ended", parkedBytes: 4096 }));
    await database.db.update(workspaces).set({ desired: "stopped" }).where(eq(workspaces.id, ada.workspaceId));
    const dropped = { type: "drop-parked", leaseId: lease.id };
    await eventually(() => expect(gpud.received).toContainEqual(dropped));
    expect((await leaseRow(lease.id)).parkedBytes).toBe(0);
  });

  test("keeps nothing parked on a server that goes out of service, whether its holder gives it back or not", async () => {
    gpud.close();
    gpud = await join("leaves", 1, { answers: false });
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    const [first, second] = [await granted(ada), await granted(lin)];
    for (const { id } of [first, second]) await claim(id);
    const notice = async (id: string, releaseAt: Date) =>
      await database.db
        .update(leases)
        .set({ noticeFor: null, noticeAt: new Date(), releaseAt })
        .where(eq(leases.id, id));
    await notice(first.id, new Date(Date.now() + 60_000));
    const answer = call<GiveBackAnswer>(ada, "DELETE", `/v1/leases/${first.id}?park=1`);
    const ended = (leaseId: string): unknown => expect.objectContaining({ type: "end-lease", leaseId, mode: "kill" });
    await eventually(() => expect(gpud.received).toContainEqual(ended(first.id)));
    gpud.send({ type: "lease-ended", leaseId: first.id, parkedBytes: 0, gpuTimeUs: 9 });
    expect((await answer).body).toMatchObject({ parkedBytes: 0 });
    await notice(second.id, new Date());
    await eventually(() => expect(gpud.received).toContainEqual(ended(second.id)));
  });

  test("drops what was parked before a notice of its server when that is over, and not before", async () => {
    gpud.close();
    gpud = await join("leaves", 1, { answers: false });
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    await claim(lease.id);
    const until = async (releaseAt: Date) =>
      await database.db
        .update(leases)
        .set({ state: "ended", endedAt: new Date(), parkedBytes: 4096, noticeAt: new Date(), releaseAt })
        .where(eq(leases.id, lease.id));
    const pings = () => gpud.received.filter(({ type }) => type === "ping").length;
    /** What is parked is looked at as often as a server is asked whether it is there. */
    const looked = async () => {
      const before = pings();
      await eventually(() => expect(pings()).toBeGreaterThan(before + 1));
    };
    const dropped = { type: "drop-parked", leaseId: lease.id };
    const drained = async (drainedAt: Date | null) => await database.db.update(gpuServers).set({ drainedAt });
    await drained(new Date(Date.now() - 60_000));
    await until(new Date(Date.now() + 60_000));
    await looked();
    expect(gpud.received).not.toContainEqual(dropped);
    // A server that takes leases again keeps it.
    await drained(null);
    await until(new Date());
    await looked();
    expect(gpud.received).not.toContainEqual(dropped);
    await drained(new Date(Date.now() - 60_000));
    await eventually(() => expect(gpud.received).toContainEqual(dropped));
    expect((await leaseRow(lease.id)).parkedBytes).toBe(0);
  });

  test("takes a request out of the queue when it has waited long enough", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    await granted(ada, { amount: "1" });
    const waiting = await ask(lin, { waitSeconds: 1 });
    const poll = await call<LeaseRequestAnswer>(lin, "GET", `/v1/lease-requests/${waiting.requestId}?wait=20`);
    expect(poll.body).toMatchObject({ state: "expired", reason: { rule: "team-limit" } });
  });

  test("grants what a raised quota allows, without anybody asking anew", async () => {
    const second = await join("second", 1);
    const ada = await makeWorkspace(database.db, team, "Ada");
    await granted(ada, { amount: "1" });
    const waiting = await ask(ada);
    expect(waiting).toMatchObject({ state: "queued", reason: { rule: "team-limit" } });
    await database.db.update(quotas).set({ limitMilli: 2000 }).where(eq(quotas.teamId, team));
    const poll = await call<LeaseRequestAnswer>(ada, "GET", `/v1/lease-requests/${waiting.requestId}?wait=20`);
    expect(poll.body).toMatchObject({ state: "granted" });
    second.close();
  });
});

describe("leases that others end", () => {
  test("an admin ends one in the portal: gpud is told with the sentence for the notebook", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    await claim(lease.id);
    const admin = {
      kind: "user",
      userId: "usr-x",
      email: "root@example.com",
      name: "Root",
      isAdmin: true,
      teams: {},
    } as const;
    expect(await end({ ...system(), principal: admin }, { leaseId: lease.id, note: "maintenance" })).toMatchObject({
      state: "ending",
    });
    await eventually(async () => expect((await leaseRow(lease.id)).state).toBe("ended"));
    expect(gpud.received.at(-1)).toEqual({
      type: "end-lease",
      leaseId: lease.id,
      mode: "kill",
      reason: "This GPU was ended by an admin (Root: maintenance). Run %gpu attach to borrow one again.",
    });
  });

  test("somebody else cannot", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada);
    const other = {
      kind: "user",
      userId: "usr-x",
      email: "x@example.com",
      name: "X",
      isAdmin: false,
      teams: { [team]: "member" },
    } as const;
    await expect(end({ ...system(), principal: other }, { leaseId: lease.id })).rejects.toMatchObject({
      code: "forbidden",
    });
    expect((await leaseRow(lease.id)).state).toBe("granted");
  });

  test("a stopped workspace gives all back and leaves the queue", async () => {
    const ada = await makeWorkspace(database.db, team, "Ada");
    const lease = await granted(ada, { amount: "1" });
    await ask(ada);
    expect(await endForWorkspace(system(), { workspaceId: ada.workspaceId })).toBe(1);
    await eventually(async () => expect((await leaseRow(lease.id)).state).toBe("ended"));
    const waiting = await database.db.select().from(leaseRequests).where(eq(leaseRequests.state, "queued"));
    expect(waiting).toHaveLength(0);
  });
});

describe("a broker that is killed", () => {
  test("loses no place in the queue: the next one answers the same request", async () => {
    const [ada, lin] = [await makeWorkspace(database.db, team, "Ada"), await makeWorkspace(database.db, team, "Lin")];
    const lease = await granted(ada, { amount: "1" });
    const first = await ask(lin);
    await ask(ada, { amount: "0.25" });
    await broker.stop();
    broker = await startBroker({ database, env: { SLUICE_STATE_DIR: stateDir }, log, port: 0 });
    gpud.held.set(lease.id, noUsage(lease.id));
    await gpud.connect();
    const again = await call<LeaseRequestAnswer>(lin, "GET", `/v1/lease-requests/${first.requestId}`);
    expect(again.body).toMatchObject({ state: "queued", position: 1, of: 2 });
    await call(ada, "DELETE", `/v1/leases/${lease.id}`);
    const after = await call<LeaseRequestAnswer>(lin, "GET", `/v1/lease-requests/${first.requestId}?wait=20`);
    expect(after.body).toMatchObject({ state: "granted" });
  });
});

test("health names the launchers that refuse launches", async () => {
  const refusal = { happened: "The disk is almost full: 3 MiB left.", next: "Enlarge the disk." };
  const launcher = { name: "local", isolation: async () => ({ isolated: true }), refusal: async () => refusal };
  await broker.stop();
  const launchers = new Map([["local", launcher as Partial<Launcher> as Launcher]]);
  broker = await startBroker({ database, env: { SLUICE_STATE_DIR: stateDir }, log, port: 0, launchers });
  expect(await (await fetch(`${url()}/healthz`)).json()).toMatchObject({
    launchers: [{ name: "local", isolated: true, refusal }],
  });
});

test("both ports keep idle connections for 95 s", async () => {
  for (const address of [`${url()}/healthz`, `${internalUrl()}/metrics`]) {
    expect((await fetch(address)).headers.get("keep-alive")).toBe("timeout=95");
  }
});

test("health and metrics answer, and what is not there says so", async () => {
  expect(await (await fetch(`${url()}/healthz`)).json()).toEqual({
    ...{ status: "ok", version: VERSION, launchers: [] },
  });
  const metrics = await (await fetch(`${internalUrl()}/metrics`)).text();
  expect(metrics).toContain("sluice_control_connections 1");
  expect(metrics).toContain('sluice_stranded_gpus{gpu_type="soft"} 0\n');
  expect((await fetch(`${url()}/v1/nothing`)).status).toBe(404);
  // What is not for workspaces is not where they ask, nor what is for them where Prometheus does.
  expect((await fetch(`${url()}/metrics`)).status).toBe(404);
  expect((await fetch(`${url()}/v1/kubernetes/admission`, { method: "POST", body: "{}" })).status).toBe(404);
  expect((await fetch(`${internalUrl()}/v1/kubernetes/admission`, { method: "POST", body: "{}" })).status).toBe(400);
  expect((await fetch(`${internalUrl()}/v1/pods`, { method: "POST", body: "{}" })).status).toBe(404);
  const big = await fetch(`${url()}/v1/gpu-servers/join`, { method: "POST", body: "x".repeat(300_000) });
  expect(big.status).toBe(413);
});
