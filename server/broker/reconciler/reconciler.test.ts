/** Real workspaces brought up and down by a real reconciler on a real database, without a browser. */
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import {
  auditEvents,
  images,
  leaseRequests,
  leases,
  users,
  workspaceEvents,
  workspaces,
} from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { hashSecret, newId } from "#server/ids.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { type BegunWorkspace, type Launcher, LaunchRefused } from "#server/launchers/launcher.ts";
import { LocalLauncher } from "#server/launchers/local/local-launcher.ts";
import { makeTestState, type TestState } from "#server/launchers/local/testing.ts";
import { workspacePaths } from "#server/launchers/local/workspace-files.ts";
import { register } from "#server/services/dataset/register.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { deleteFiles } from "#server/services/workspace/delete-files.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { restore } from "#server/services/workspace/restore.ts";
import { start } from "#server/services/workspace/start.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { list as listDatasets } from "#server/services/workspace-dataset/list.ts";
import { type Reconciler, startReconciler } from "./reconciler.ts";

/** The longest wait for a workspace's first kernel, where a test knows that none comes. */
const firstKernel = vi.hoisted(() => ({ timeoutMs: Number.POSITIVE_INFINITY }));
vi.mock("#server/jupyter/first-kernel.ts", async (importOriginal) => {
  const { tryFirstKernel } = await importOriginal<typeof import("#server/jupyter/first-kernel.ts")>();
  const sooner: typeof tryFirstKernel = (server, options) =>
    tryFirstKernel(server, { ...options, timeoutMs: Math.min(options.timeoutMs, firstKernel.timeoutMs) });
  return { tryFirstKernel: sooner };
});

let state: TestState;
let database: TestDatabase;
let world: World;
let launcher: LocalLauncher;
let reconciler: Reconciler | undefined;
const made: string[] = [];

beforeAll(async () => {
  state = await makeTestState();
  process.env.SLUICE_STATE_DIR = state.stateDir;
  resetEnv();
  database = await useTestDatabase({ max: 8 });
  world = await makeWorld(database.db);
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
}, 240_000);

afterEach(async () => {
  firstKernel.timeoutMs = Number.POSITIVE_INFINITY;
  await reconciler?.stop();
  reconciler = undefined;
  for (const id of made.splice(0)) await launcher.remove(id);
});

afterAll(async () => {
  await database.drop();
  await state.drop();
});

async function reconcile(launchers: Launcher = launcher): Promise<void> {
  reconciler = await startReconciler(database, { launchers: new Map([["local", launchers]]) });
}

/** The real launcher, in which these are otherwise. */
function changed(other: Partial<Record<keyof Launcher, unknown>>): Launcher {
  return new Proxy<Launcher>(launcher, {
    get: (target, name) => bind(target, name in other ? Reflect.get(other, name) : Reflect.get(target, name)),
  });
}

const row = async (id: string) => {
  const [found] = await database.db.select().from(workspaces).where(eq(workspaces.id, id));
  if (found === undefined) throw new Error("no row");
  return found;
};
const observed = async (id: string, wanted: string) =>
  await expect.poll(async () => (await row(id)).observed, { timeout: 60_000, interval: 50 }).toBe(wanted);
const events = async (id: string) =>
  await database.db
    .select()
    .from(workspaceEvents)
    .where(eq(workspaceEvents.workspaceId, id))
    .orderBy(workspaceEvents.seq);

async function launch(name: string): Promise<string> {
  const { id } = await create(world.member.ctx, { name, image: "cuda-python" });
  made.push(id);
  return id;
}

async function inNotebook(id: string, code: string): Promise<string> {
  const { endpoint, serverToken } = await row(id);
  return await runCode({ endpoint: endpoint ?? "", token: serverToken ?? "" }, code, { timeoutMs: 30_000 });
}

describe("a launch", () => {
  it("shows its steps in order with log lines, and ends with a kernel that answers", async () => {
    await reconcile();
    const id = await launch("steps");
    await observed(id, "running");
    const steps = (await events(id))
      .filter((event) => event.kind !== "log")
      .map((event) => `${event.kind} ${event.step}`);
    expect(steps).toEqual(
      ["environment", "sandbox", "jupyter", "kernel"].flatMap((step) => [`step-started ${step}`, `step-done ${step}`]),
    );
    expect(await inNotebook(id, "print(6 * 7)")).toBe("42");
    const credential = await readFile(`${workspacePaths(state.stateDir, id).run}/credential`, "utf8");
    expect(credential).toMatch(/^slw_[A-Za-z0-9_-]{43}$/);
    expect((await row(id)).credentialHash).toBe(hashSecret(credential));
  }, 90_000);

  it("mounts its datasets, reads them ahead, and lets no notebook change a read-only one", async () => {
    const folder = path.join(state.stateDir, "datasets", "numbers");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, "one.txt"), "forty-two");
    for (const each of [folder, path.join(folder, "one.txt")]) await chmod(each, 0o777);
    const source = { kind: "folder", path: folder } as const;
    const dataset = await register(world.admin.ctx, { name: "numbers", source });
    const asked = { name: "with data", image: "cuda-python", datasets: [dataset.id] };
    const { id } = await create(world.member.ctx, asked);
    made.push(id);
    await reconcile();
    await observed(id, "running");
    expect(await inNotebook(id, "print(open('datasets/numbers/one.txt').read())")).toBe("forty-two");
    const changes = "!echo more > ~/datasets/numbers/one.txt; rm ~/datasets/numbers/one.txt";
    expect((await inNotebook(id, changes)).match(/Read-only file system/g)).toHaveLength(2);
    const prefetch = async () => (await listDatasets(world.member.ctx, { id })).datasets[0]?.prefetch;
    await expect.poll(prefetch, { timeout: 20_000 }).toEqual({ state: "done", bytes: 9, totalBytes: 9, message: null });
    expect((await events(id)).map(({ message }) => message)).toContain("~/datasets/numbers, read-only");
  }, 90_000);

  it("has its own server read its datasets ahead, where its launcher has no way to the files", async () => {
    const blind = changed({ prefetch: undefined });
    const folder = path.join(state.stateDir, "datasets", "letters");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, "a.txt"), "a".repeat(3_000_000), { mode: 0o644 });
    const source = { kind: "folder", path: folder } as const;
    const [read, unread] = [
      await register(world.admin.ctx, { name: "letters", source }),
      await register(world.admin.ctx, { name: "unread", source, prefetch: false }),
    ];
    const asked = { name: "reads itself", image: "cuda-python", datasets: [read.id, unread.id] };
    const { id } = await create(world.member.ctx, asked);
    made.push(id);
    await reconcile(blind);
    await observed(id, "running");
    const prefetches = async () => (await listDatasets(world.member.ctx, { id })).datasets.map((each) => each.prefetch);
    const whole = { state: "done", bytes: 3_000_000, totalBytes: 3_000_000, message: null };
    await expect.poll(prefetches, { timeout: 20_000 }).toEqual([whole, null]);
  }, 90_000);

  it("is taken over after the broker was killed in the middle of it", async () => {
    await reconcile();
    const id = await launch("killed");
    // The process is there, its kernel not yet: the moment at which a broker loses most.
    await expect
      .poll(async () => (await launcher.observe(id)).state, { timeout: 30_000, interval: 20 })
      .toBe("running");
    await reconciler?.stop();
    const before = await launcher.observe(id);
    expect(before.state).toBe("running");
    await reconcile();
    await observed(id, "running");
    expect(await launcher.observe(id)).toEqual(before);
  }, 90_000);

  it("that waits for its place is waited for by the broker that takes over, which asks until it is told, and reads its data", async () => {
    const folder = path.join(state.stateDir, "datasets", "begun");
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, "a.txt"), "a".repeat(1000), { mode: 0o644 });
    const data = await register(world.admin.ctx, { name: "begun", source: { kind: "folder", path: folder } });
    const blind = { prefetch: undefined };
    await reconcile(changed(blind));
    const { id } = await create(world.member.ctx, { name: "begun", image: "cuda-python", datasets: [data.id] });
    made.push(id);
    const there = async () => (await launcher.observe(id)).state;
    await expect.poll(there, { timeout: 30_000, interval: 20 }).toBe("running");
    await reconciler?.stop();
    let [asked, runs] = [0, false];
    const observe = async (which: string) => {
      if (asked++ < 2) throw new Error("The cluster cannot be reached.");
      const seen = await launcher.observe(which);
      return seen.state === "running" && !runs ? { ...seen, waits: true as const } : seen;
    };
    const awaitBegun = async ({ datasets }: BegunWorkspace) => {
      expect(datasets.map(({ name }) => name)).toEqual(["begun"]);
      runs = true;
      const seen = await launcher.observe(id);
      return seen.state === "running" ? { endpoint: seen.endpoint, handle: seen.handle } : undefined;
    };
    await reconcile(changed({ ...blind, observe, awaitBegun }));
    await observed(id, "running");
    expect([runs, (await row(id)).generation]).toEqual([true, 1]);
    expect((await events(id)).map(({ message }) => message)).toContain(
      "The cluster cannot be reached. It is asked again.",
    );
    const prefetch = async () => (await listDatasets(world.member.ctx, { id })).datasets.map((each) => each.prefetch);
    await expect.poll(prefetch, { timeout: 20_000 }).toMatchObject([{ state: "done", bytes: 1000 }]);
  }, 90_000);

  it("is called off by a stop", async () => {
    await reconcile();
    const id = await launch("called off");
    await expect.poll(async () => (await row(id)).observed, { timeout: 20_000, interval: 20 }).toBe("starting");
    await stop(world.member.ctx, { id });
    await observed(id, "stopped");
    expect((await launcher.observe(id)).state).toBe("stopped");
  }, 90_000);

  it("that fails says why, with the log's last lines, and starts again when asked to", async () => {
    // A package of the user's own that breaks every kernel: a real fault that only a real start finds.
    await reconcile();
    const id = await launch("fails");
    await observed(id, "running");
    await inNotebook(
      id,
      "import site; open(site.getsitepackages()[0] + '/ipykernel_launcher.py', 'w').write('raise SystemExit(\"broken by hand\")')",
    );
    await stop(world.member.ctx, { id });
    await observed(id, "stopped");
    // The kernel dies before anything has connected to it, so the launch waits for its whole time.
    firstKernel.timeoutMs = 12_000;
    await start(world.member.ctx, { id });
    await observed(id, "failed");
    expect((await row(id)).message).toMatch(/^No notebook could be started\./);
    const failed = (await events(id)).filter((event) => event.generation === 2);
    expect(failed.some((event) => event.kind === "step-failed" && event.step === "kernel")).toBe(true);
    expect(failed.some((event) => event.kind === "log" && event.message.includes("broken by hand"))).toBe(true);
    expect((await launcher.observe(id)).state).toBe("stopped");
  }, 150_000);

  it("of an environment that nobody has defined is refused with its name", async () => {
    const id = await launch("unknown");
    await database.db.update(images).set({ name: "no-such" }).where(eq(images.name, "cuda-python"));
    try {
      await reconcile();
      await observed(id, "failed");
      expect((await row(id)).message).toContain('"no-such"');
    } finally {
      await database.db.update(images).set({ name: "cuda-python" }).where(eq(images.name, "no-such"));
    }
  }, 60_000);

  it("that its launcher refuses says why and what to do, and nothing else", async () => {
    const refusal = { happened: "The disk is almost full: 3 MiB left.", next: "Enlarge the disk." };
    await reconcile(changed({ ensure: () => Promise.reject(new LaunchRefused(refusal)) }));
    const id = await launch("short");
    await observed(id, "failed");
    expect((await row(id)).message).toBe("The disk is almost full: 3 MiB left. Enlarge the disk.");
  });

  it("without namespaces is the first admin's alone, and everybody else reads why", async () => {
    const bare = new Proxy(launcher, {
      get: (target, name) =>
        name === "isolation"
          ? async () => ({ isolated: false, reason: "this machine does not let us make namespaces" })
          : bind(target, Reflect.get(target, name)),
    });
    await reconcile(bare);
    const id = await launch("bare");
    await observed(id, "failed");
    expect((await row(id)).message).toContain(
      "Only the first admin may launch here, because this machine does not let us",
    );
    // The launch itself still runs in the sandbox here: only the rule is looked at.
    const [owner] = await database.db.select().from(users).where(eq(users.id, world.admin.id));
    await database.db
      .update(workspaces)
      .set({ ownerId: owner?.id ?? "" })
      .where(eq(workspaces.id, id));
    await database.db.update(workspaces).set({ observed: "pending", generation: 2 }).where(eq(workspaces.id, id));
    await observed(id, "running");
  }, 90_000);
});

function bind(target: object, value: unknown): unknown {
  return typeof value === "function" ? value.bind(target) : value;
}

describe("a running workspace", () => {
  it("whose server is killed is failed within seconds, its leases end, and a start brings its files back", async () => {
    await reconcile();
    const id = await launch("crash");
    await observed(id, "running");
    await inNotebook(id, "open('kept.txt', 'w').write('kept')");
    const leaseId = await lend(id);
    const handle = (await row(id)).handle as { pid: number };
    process.kill(handle.pid, "SIGKILL");
    await observed(id, "failed");
    const after = await row(id);
    expect(after).toMatchObject({ desired: "running", endpoint: null, serverToken: null, credentialHash: null });
    expect(after.message).toContain("ended by itself");
    await expect.poll(async () => await leaseState(leaseId), { timeout: 20_000, interval: 25 }).toMatch(/end/);
    await start(world.member.ctx, { id });
    await observed(id, "running");
    expect(await inNotebook(id, "print(open('kept.txt').read())")).toBe("kept");
  }, 120_000);

  it("whose state cannot be told stays as it is, and keeps nobody from looking after the others", async () => {
    await reconcile();
    const [riddle, killed] = [await launch("riddle"), await launch("killed by hand")];
    await observed(riddle, "running");
    await observed(killed, "running");
    const { handle } = workspacePaths(state.stateDir, riddle);
    const before = await readFile(handle, "utf8");
    await writeFile(handle, "{");
    process.kill(
      (JSON.parse(await readFile(workspacePaths(state.stateDir, killed).handle, "utf8")) as { pid: number }).pid,
    );
    await observed(killed, "failed");
    expect((await row(riddle)).observed).toBe("running");
    await writeFile(handle, before);
    expect(await inNotebook(riddle, "print(6 * 7)")).toBe("42");
  }, 120_000);

  it("goes on when the broker restarts, on the same server with the same token", async () => {
    await reconcile();
    const id = await launch("adopted");
    await observed(id, "running");
    const before = await row(id);
    await reconciler?.stop();
    let looks = 0;
    const observe: Launcher["observe"] = async (...input) => {
      looks += 1;
      return await launcher.observe(...input);
    };
    await reconcile(changed({ observe }));
    // The second look at the workspace begins after the first round has ended.
    await expect.poll(() => looks, { timeout: 20_000, interval: 25 }).toBeGreaterThan(1);
    const after = await row(id);
    expect(after).toMatchObject({ observed: "running", endpoint: before.endpoint, serverToken: before.serverToken });
    expect(await inNotebook(id, "print(6 * 7)")).toBe("42");
  }, 90_000);

  it("keeps its files over a stop and a removal, and is gone with them when they are deleted", async () => {
    await reconcile();
    const id = await launch("stopped");
    await observed(id, "running");
    await inNotebook(id, "open('kept.txt', 'w').write('kept')");
    const leaseId = await lend(id);
    await stop(world.member.ctx, { id });
    await observed(id, "stopped");
    expect(await leaseState(leaseId)).toMatch(/end/);
    expect(await row(id)).toMatchObject({ endpoint: null, serverToken: null, credentialHash: null, handle: null });
    const { home, base } = workspacePaths(state.stateDir, id);
    expect(await readFile(`${home}/kept.txt`, "utf8")).toBe("kept");
    await remove(world.member.ctx, { id });
    await restore(world.member.ctx, { id });
    await start(world.member.ctx, { id });
    await observed(id, "running");
    expect(await inNotebook(id, "print(open('kept.txt').read())")).toBe("kept");
    // Of what runs, a removal ends the processes and leaves the files.
    await remove(world.member.ctx, { id });
    await observed(id, "stopped");
    expect(await readFile(`${home}/kept.txt`, "utf8")).toBe("kept");
    await deleteFiles(world.member.ctx, { id });
    await observed(id, "removed");
    await expect(readFile(`${base}/log`)).rejects.toThrow("ENOENT");
    const actions = await database.db
      .select({ action: auditEvents.action })
      .from(auditEvents)
      .where(eq(auditEvents.subject, id))
      .orderBy(auditEvents.seq);
    const verbs = ["create", "stop", "remove", "restore", "start", "remove", "delete-files"];
    expect(actions.map((entry) => entry.action)).toEqual(verbs.map((verb) => `workspace.${verb}`));
  }, 90_000);
});

describe("two brokers", () => {
  it("start a workspace once, and the second takes over when the first ends", async () => {
    await reconcile();
    const second = await startReconciler(database, { launchers: new Map([["local", launcher]]) });
    try {
      const id = await launch("twice");
      await observed(id, "running");
      const started = (await events(id)).filter((event) => event.kind === "step-started" && event.step === "sandbox");
      expect(started).toHaveLength(1);
      await reconciler?.stop();
      reconciler = undefined;
      await stop(world.member.ctx, { id });
      await observed(id, "stopped");
    } finally {
      await second.stop();
    }
  }, 90_000);
});

/** A lease as a notebook of this workspace would hold it. */
async function lend(workspaceId: string): Promise<string> {
  const id = newId("lea");
  const requestId = newId("req");
  const now = new Date();
  const owner = { kind: "kernel", kernelId: "k", pid: 1, startTime: 1 } as const;
  const of = {
    workspaceId,
    teamId: world.team,
    userId: world.member.id,
    gpuType: "soft",
    milli: 500,
    memoryBytes: 4 * 2 ** 30,
  };
  await database.db.insert(leaseRequests).values({
    ...of,
    id: requestId,
    idempotencyKey: requestId,
    owner,
    state: "granted",
    lastPolledAt: now,
    waitUntil: now,
  });
  const expiresAt = new Date(now.getTime() + 3_600_000);
  await database.db.insert(leases).values({
    ...of,
    id,
    requestId,
    gpuId: world.gpuIds[0],
    serverId: world.serverId,
    owner,
    state: "active",
    grantedAt: now,
    expiresAt,
    epoch: 1,
    ownerSeenAt: now,
  });
  return id;
}

async function leaseState(id: string): Promise<string | undefined> {
  const [lease] = await database.db.select({ state: leases.state }).from(leases).where(eq(leases.id, id));
  return lease?.state;
}
