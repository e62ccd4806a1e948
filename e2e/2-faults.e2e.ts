/** What goes wrong, and what people see then: the notebook lives, and the words say what to do. */
import { spawn } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import { type APIRequestContext, expect, type Page } from "@playwright/test";
import { expectAccessible } from "./fixtures/accessible.ts";
import { ApiNotebook, launchByApi, signInByApi } from "./fixtures/api.ts";
import type { Installation } from "./fixtures/installation.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { openLab, pageOf } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

let page: Page;
let notebook: Notebook;
let api: APIRequestContext;
let queued: ApiNotebook;

const KERNELS = `
import numpy as np
from numba import cuda

@cuda.jit
def add_one(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1

@cuda.jit
def endless(a):
    while a[0] == 0:
        pass

def works():
    a = np.zeros(8, np.float32)
    add_one[1, 32](a)
    return a.sum()
`.trim();

/** A kernel with a texture fetch, given to the driver as PTX. */
const UNSUPPORTED = `
from cuda.bindings import driver
cuda.current_context()
ptx = b"""
.version 7.5
.target sm_75
.address_size 64
.visible .entry fetch(.param .u64 t) {
  .reg .f32 %f<5>;
  .reg .s32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [t];
  mov.s32 %r1, 0;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];
  ret;
}
"""
err, module = driver.cuModuleLoadData(ptx)
assert err == 0, err
`.trim();

// Names of their own, so that the suite can be run again on one installation.
const run = Date.now().toString(36);

test.beforeAll(async ({ browser, installation }) => {
  page = await pageOf(browser, installation);
  api = await signInByApi(installation.portalUrl);
  const { id, name } = await launchByApi(api, `faults ${run}`);
  await page.goto(`/workspaces/${id}`);
  notebook = await Notebook.create(await openLab(page, name));
  queued = new ApiNotebook(api, id, "queued.ipynb");
});

test.afterAll(async () => {
  await page.context().close();
  await api.dispose();
});

/** The process whose command line holds all these words and that belongs to this installation. */
async function processOf({ stateDir: state }: Installation, ...words: string[]): Promise<number> {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const command = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0").join(" ");
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    const ours = command.includes(state) || environment.includes(`SLUICE_STATE_DIR=${state}\0`);
    if (ours && words.every((word) => command.includes(word)) && !command.includes("setpriv")) return Number(pid);
  }
  throw new Error(`no process of this installation with ${words.join(" ")}`);
}

/** The code of the error that another program gets when it listens on a port; undefined when it can. */
async function codeOfListening(port: number): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(undefined)));
  });
}

test("wrong amounts are answered with what to type", async () => {
  for (const [amount, says] of [
    ["0", /An amount must be more than 0; you asked for 0\./],
    ["-1", /An amount must be more than 0; you asked for -1\./],
    ["NaN", /"NaN" is not an amount\. Amounts look like 0\.5/],
    ["1.5", /Above one GPU only whole GPUs can be borrowed; you asked for 1\.5: use 1 or 2\./],
    ["0,5", /"0,5" has a comma; write amounts with a point\.[\s\S]*%gpu attach 0\.5/],
    ["2", /at most 1\.0 soft/i],
    ["900G", /memory|GiB/i],
  ] as const) {
    const text = await notebook.run(`%gpu attach ${amount}`);
    expect(text, amount).toMatch(says);
    expect(text, amount).not.toContain("Traceback");
  }
});

test("an instruction that is not supported yet is named, and the notebook goes on", async () => {
  await notebook.run(KERNELS);
  expect(await notebook.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  const text = await notebook.run(UNSUPPORTED);
  expect(text).toContain("tex.1d");
  expect(await notebook.run("print(works())")).toContain("8.0");
});

test("gpud killed during a kernel: the cell gets an error, the lease ends, the notebook lives", async ({
  installation,
}) => {
  const cell = await notebook.begin(
    "x = 42; e = cuda.to_device(np.zeros(1)); endless[1, 1](e); print('launched', flush=True); cuda.synchronize()",
  );
  // A launch returns while its kernel runs.
  await expect(cell.locator(".jp-OutputArea-output").first()).toContainText("launched", { timeout: 60_000 });
  process.kill(await processOf(installation, "gpud", "--state"), "SIGKILL");
  const text = await notebook.outputOf(cell, 60_000);
  expect(text).toMatch(/Error|lost/);
  expect(await notebook.run("print(x)")).toContain("42");
  await expect(async () => {
    expect(await notebook.run("%gpu attach 0.5 --wait 20", 60_000)).toContain("Attached 0.5 GPU");
  }).toPass({ timeout: 90_000 });
  expect(await notebook.run("print(works())")).toContain("8.0");
});

test("the broker killed while somebody waits in the queue: the place is kept", async ({ installation }) => {
  expect(await notebook.run("%gpu detach")).not.toContain("Error");
  expect(await notebook.run("%gpu attach 1")).toContain("Attached 1 GPU");
  const waiting = queued.run("%gpu attach 0.5");
  const requests = async () => {
    const board = (await (await api.get("/api/v1/gpus")).json()) as { requests: unknown[] };
    return board.requests.length;
  };
  await expect.poll(requests).toBe(1);
  process.kill(await processOf(installation, "server/broker/main.ts"), "SIGKILL");
  // The waiting notebook sees nothing of it; the other one gets an error until the broker is back.
  await expect(async () => {
    expect(await notebook.run("%gpu", 30_000)).not.toContain("cannot be reached");
  }).toPass({ timeout: 60_000 });
  expect(await requests()).toBe(1);
  expect(await notebook.run("%gpu detach", 30_000)).not.toContain("Error");
  expect(await waiting).toMatch(/Queued[\s\S]*Attached 0\.5 GPU/);
  await queued.run("%gpu detach");
});

test("the broker killed: no other program gets its port, and a call waits for the next broker", async ({
  installation,
}) => {
  const port = installation.ports[1];
  process.kill(await processOf(installation, "server/broker/main.ts"), "SIGKILL");
  const answer = fetch(`${installation.brokerUrl}/healthz`);
  expect(await codeOfListening(port)).toBe("EADDRINUSE");
  expect((await answer).status).toBe(200);
});

test("PostgreSQL killed: started again on its socket, and nobody has to start anything else", async ({
  installation,
}) => {
  process.kill(await processOf(installation, "postgres", " -D "), "SIGKILL");
  await expect
    .poll(() => installation.output(), { timeout: 60_000 })
    .toContain("PostgreSQL ended with SIGKILL; starting it again");
  await expect(async () => {
    expect((await api.get("/api/v1/gpus")).status()).toBe(200);
  }).toPass({ timeout: 60_000 });
  expect(await notebook.run("print(x)")).toContain("42");
  await expect(async () => {
    expect(await notebook.run("%gpu", 30_000)).not.toContain("cannot be reached");
  }).toPass({ timeout: 60_000 });
});

test("a gateway that does not answer comes first on the open health page, with what to do, until it answers again", async ({
  installation,
}) => {
  const gateway = await processOf(installation, "server/gateway/main.ts");
  await page.goto("/health");
  const parts = page.getByRole("main").getByRole("listitem");
  const part = parts.filter({ hasText: "Gateway" });
  await expect(part).toContainText(/ok/);
  // Processes that earlier tests ended are up again.
  await expect(parts.getByText("down", { exact: true })).toHaveCount(0, { timeout: 60_000 });
  process.kill(gateway, "SIGSTOP");
  try {
    const first = parts.first();
    await expect(first).toContainText(/Gateway.*down/);
    await expect(first).toContainText("No workspace can be opened meanwhile");
    await expectAccessible(page, "the health page with something down");
  } finally {
    try {
      process.kill(gateway, "SIGCONT");
    } catch {
      // After 10 s without an answer, npm start has ended this run and started the next one.
    }
  }
  await expect(part).toContainText(/ok/, { timeout: 60_000 });
});

test("a notebook killed while it holds a lease: released within 15 s", async () => {
  expect(await queued.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  const killed = queued.run("import os; os.kill(os.getpid(), 9)");
  await expect(async () => {
    const response = await page.request.get("/api/v1/leases");
    const { leases } = (await response.json()) as { leases: { state: string }[] };
    expect(leases.filter((lease) => lease.state !== "ended")).toEqual([]);
  }).toPass({ timeout: 15_000 });
  await killed;
});

test("the example notebooks run on a borrowed slice and agree with NumPy", async ({ installation }) => {
  const state = installation.stateDir;
  const environments = (await readdir(path.join(state, "environments"), { withFileTypes: true })).find((entry) =>
    entry.isDirectory(),
  );
  const python = path.join(state, "environments", environments?.name ?? "", "bin", "python");
  const { code, output } = await runProgram(python, [
    "native/python/tests/run_notebooks.py",
    "--portal",
    installation.portalUrl,
    "--email",
    "admin@example.test",
  ]);
  expect(output).toMatch(/5 passed, 0 failed/);
  expect(code).toBe(0);
});

test("a second gpud joins with the line of the pool page, and removing it ends it", async ({ installation }) => {
  await page.goto("/pool");
  await page.getByRole("button", { name: "Add GPU server" }).first().click();
  const dialog = page.getByRole("dialog");
  const line = await dialog.getByLabel("Command to run on the GPU host").inputValue();
  await expect(dialog.getByText("Only this machine reaches")).toBeVisible();
  expect(line).toMatch(/^printf .*slj_.*\| curl .*\| sh$/);
  // As pasted, in a home of its own and as an ordinary user. Only the name is chosen, to find the server again.
  const home = path.join(installation.stateDir, `gpud-second-${run}`);
  const programs = path.join(home, "programs");
  await mkdir(programs, { recursive: true });
  await writeFile(path.join(programs, "id"), "#!/bin/sh\necho 1000\n", { mode: 0o755 });
  const gpud = spawn("sh", ["-c", `${line} -s -- second`], {
    env: { PATH: `${programs}:${process.env.PATH}`, HOME: home, NODE_ENV: "test" },
    detached: true,
  });
  const ended = new Promise((resolve) => gpud.once("exit", resolve));
  try {
    await expect(dialog.getByText("second joined the pool.")).toBeVisible({ timeout: 60_000 });
    await dialog.getByRole("button", { name: "Done" }).click();
    await expect(page.getByText("second").first()).toBeVisible();
    await page
      .getByRole("button", { name: /second/ })
      .first()
      .click();
    await page.getByRole("menuitem", { name: /Remove/ }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /Remove/ })
      .click();
    expect(await ended).toBe(0);
  } finally {
    // The shell and its child processes, if they still run.
    if (gpud.exitCode === null && gpud.pid !== undefined) process.kill(-gpud.pid);
  }
});

async function runProgram(command: string, args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, {
    env: { ...process.env, SLUICE_ADMIN_PASSWORD: "correct horse battery staple" },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}
