/** A real workspace, measured: what its processes use, what runs in it, its variables, and its stop when it is idle. */
import { KernelAPI } from "@jupyterlab/services";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { workspaceKernels } from "#server/contracts/workspace-kernel.ts";
import { workspaceEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { followKernels } from "#server/http/follow-kernels.ts";
import { lastActivity } from "#server/jupyter/activity.ts";
import { baseUrlOf, fetchOf } from "#server/jupyter/endpoint.ts";
import { runInKernel } from "#server/jupyter/notebook-kernel.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { type JupyterServer, serverSettings } from "#server/jupyter/server-settings.ts";
import { LocalLauncher } from "#server/launchers/local/local-launcher.ts";
import { makeTestState, type TestState } from "#server/launchers/local/testing.ts";
import { logger } from "#server/log.ts";
import { end } from "#server/services/session/end.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { get } from "#server/services/workspace/get.ts";
import { interrupt } from "#server/services/workspace-kernel/interrupt.ts";
import { list as listKernels } from "#server/services/workspace-kernel/list.ts";
import { shutDown } from "#server/services/workspace-kernel/shut-down.ts";
import { set as setVariable } from "#server/services/workspace-variable/set.ts";
import { type Reconciler, startReconciler } from "./reconciler/reconciler.ts";
import { startWorkspaceWatch, type WorkspaceWatch } from "./workspace-watch.ts";

let state: TestState;
let database: TestDatabase;
let world: World;
let launcher: LocalLauncher;
let reconciler: Reconciler;
let watch: WorkspaceWatch;
let id: string;

beforeAll(async () => {
  state = await makeTestState();
  process.env.SLUICE_STATE_DIR = state.stateDir;
  resetEnv();
  database = await useTestDatabase({ max: 10 });
  world = await makeWorld(database.db);
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
  const launchers = new Map([["local", launcher]]);
  id = (await create(world.member.ctx, { name: "measured", image: "cuda-python" })).id;
  await setVariable(world.member.ctx, { id, name: "API_KEY", value: "hunter2", secret: true });
  reconciler = await startReconciler(database, { launchers });
  watch = startWorkspaceWatch(database, { launchers, log: logger("test"), everyMs: 3_600_000 });
  await vi.waitFor(async () => expect(await get(world.member.ctx, { id })).toMatchObject({ observed: "running" }), {
    timeout: 90_000,
    interval: 200,
  });
}, 240_000);

afterAll(async () => {
  await watch.stop();
  await reconciler.stop();
  await launcher.remove(id);
  await database.drop();
  await state.drop();
});

async function server(): Promise<JupyterServer> {
  const [row] = await database.db.select().from(workspaces).where(eq(workspaces.id, id));
  return { endpoint: row?.endpoint ?? "", token: row?.serverToken ?? "" };
}

describe("a workspace that runs", () => {
  it("says itself what its processes use where its launcher cannot see them", async () => {
    const blind = Object.create(launcher, { usage: { value: async () => new Map() } }) as LocalLauncher;
    const launchers = new Map([["local", blind]]);
    const other = startWorkspaceWatch(database, { launchers, log: logger("test"), everyMs: 3_600_000 });
    await other.look();
    await runCode(await server(), "import time\nt=time.process_time()\nwhile time.process_time()-t<1.5: pass", {
      timeoutMs: 60_000,
    });
    await other.look();
    const seen = await get(world.member.ctx, { id });
    expect(seen.cpuMilli).toBeGreaterThan(100);
    expect(seen.memoryBytes).toBeGreaterThan(30 * 2 ** 20);
    await other.stop();
  });

  it("has processor time and memory of its own processes", async () => {
    await watch.look();
    const rest = await get(world.member.ctx, { id });
    expect(rest.memoryBytes).toBeGreaterThan(30 * 2 ** 20);
    expect(rest.memoryBytes).toBeLessThan(2 * 2 ** 30);
    await runCode(await server(), "import time\nt=time.process_time()\nwhile time.process_time()-t<1.5: pass", {
      timeoutMs: 60_000,
    });
    await watch.look();
    const worked = await get(world.member.ctx, { id });
    expect(worked.cpuMilli).toBeGreaterThan(100);
    expect(Date.now() - Date.parse(worked.lastActivityAt ?? "")).toBeLessThan(60_000);
  });

  it("gives its secrets to notebooks, and to no log", async () => {
    expect(await runCode(await server(), "import os; print(os.environ['API_KEY'])", { timeoutMs: 60_000 })).toBe(
      "hunter2",
    );
    const logged = await database.db.select().from(workspaceEvents).where(eq(workspaceEvents.workspaceId, id));
    expect(logged.length).toBeGreaterThan(3);
    expect(JSON.stringify(logged)).not.toContain("hunter2");
    expect((await launcher.logs(id, 1000)).join("\n")).not.toContain("hunter2");
  });

  it("shows its notebooks, stops one that computes, and shuts it down", async () => {
    const jupyter = await server();
    const kernel = await KernelAPI.startNew({ name: "python3" }, serverSettings(jupyter));
    const seen = async () => (await listKernels(world.member.ctx, { id })).kernels.find((one) => one.id === kernel.id);
    await expect.poll(seen, { timeout: 30_000 }).toMatchObject({ name: "python3", path: null, gpuMilli: 0 });
    await interrupt(world.member.ctx, { id, kernelId: kernel.id });
    await expect(interrupt(world.member.ctx, { id, kernelId: "0".repeat(36) })).rejects.toMatchObject({
      code: "not-found",
    });
    await shutDown(world.member.ctx, { id, kernelId: kernel.id });
    await expect.poll(seen, { timeout: 15_000 }).toBeUndefined();
  });

  it("tells whoever follows its notebooks what each does, as it changes, until their session ends", async () => {
    const jupyter = await server();
    const kernel = await KernelAPI.startNew({ name: "python3" }, serverSettings(jupyter));
    const away = new AbortController();
    const request = new Request("http://localhost:3000/", { headers: { cookie: world.lead.cookie } });
    const ctx = { ...world.lead.ctx, request };
    const stream = await followKernels(ctx, { id }, away.signal);
    /** Reads on until the kernel is told to be so; gone: it is not there. */
    const until = async (state: "busy" | "idle" | "gone"): Promise<number> => {
      for (;;) {
        const next = await stream.next();
        if (next.done === true) throw new Error("The stream has ended.");
        const { kernels } = workspaceKernels.parse(next.value.data);
        if ((kernels.find((one) => one.id === kernel.id)?.state ?? "gone") === state) return Date.now();
      }
    };
    const running = (async () => {
      const outputs = runInKernel(jupyter, kernel.id, "import time; time.sleep(4)", away.signal);
      for await (const output of outputs) if (output.kind === "done") return Date.now();
      throw new Error("The code has not ended.");
    })();
    await until("busy");
    const idleAt = await until("idle");
    expect(idleAt - (await running)).toBeLessThan(3_000);
    await shutDown(world.member.ctx, { id, kernelId: kernel.id });
    await until("gone");
    await end(world.lead.ctx, { sessionId: world.lead.sessionId });
    await expect(until("busy")).rejects.toMatchObject({ code: "unauthenticated" });
    away.abort();
  });

  it("is not kept busy by whoever only looks", async () => {
    const jupyter = await server();
    await listKernels(world.member.ctx, { id });
    const status = async () =>
      (await (
        await fetchOf(jupyter.endpoint)(`${baseUrlOf(jupyter.endpoint)}/api/status?no_track_activity=1`, {
          headers: { authorization: `token ${jupyter.token}` },
        })
      ).json()) as { last_activity: string };
    const before = (await status()).last_activity;
    for (let times = 0; times < 3; times++) {
      await listKernels(world.member.ctx, { id });
      await lastActivity(jupyter, new Date());
    }
    expect((await status()).last_activity).toBe(before);
  });

  it("is stopped when nothing has happened for longer than its limit", async () => {
    const longAgo = new Date(Date.now() - 9 * 3600_000);
    const idleSince = async () =>
      await database.db
        .update(workspaces)
        .set({ startedAt: longAgo, lastActivityAt: longAgo, idleSeconds: 300 })
        .where(eq(workspaces.id, id));
    await idleSince();
    // Notebooks have computed since the last look: that counts, though nobody pressed a key.
    await watch.look();
    expect((await get(world.member.ctx, { id })).desired).toBe("running");
    await vi.waitFor(
      async () => {
        await idleSince();
        await watch.look();
        expect(await get(world.member.ctx, { id })).toMatchObject({ observed: "stopped", cpuMilli: null });
      },
      { timeout: 20_000, interval: 1000 },
    );
    expect((await get(world.member.ctx, { id })).message).toBe(
      "Stopped after 5 min without activity. Files and packages are kept.",
    );
    expect(await launcher.observe(id)).toEqual({ state: "stopped" });
  });
});
