import { setTimeout as sleep } from "node:timers/promises";
import { type CheckStep, checkJournal, type Journal } from "#server/broker/reconciler/journal.ts";
import { systemContext } from "#server/context.ts";
import { DEFAULT_EGRESS_POLICY, type EgressPolicy } from "#server/contracts/egress.ts";
import { kernelOutput } from "#server/contracts/workspace-kernel.ts";
import type { Database } from "#server/db/client.ts";
import { isUniqueViolation, messageFor } from "#server/errors.ts";
import { environmentForWorkspace } from "#server/launchers/local/environment.ts";
import { layDefinition, lockDefinition } from "#server/launchers/local/lock-definition.ts";
import type { Logger } from "#server/log.ts";
import { egressPolicyOf } from "#server/services/team/egress-policy-of.ts";
import { events } from "#server/services/workspace/events.ts";
import { run } from "#server/services/workspace-kernel/run.ts";
import { start } from "#server/services/workspace-kernel/start.ts";
import { GPU_PROGRAM } from "./gpu-program.ts";
import { type Checked, change, finish, gpuTypeFor, testWorkspace, workspaceOf } from "./state.ts";

/** A node may have to fetch a large image. */
const LAUNCH_MS = 900_000;
const KERNEL_MS = 300_000;

/** How long the steps that the installer does may take. */
export type CheckLimits = { lockMs: number; buildMs: number };
export const CHECK_LIMITS: CheckLimits = { lockMs: 300_000, buildMs: 2_700_000 };

export type Check = {
  db: Database;
  log: Logger;
  row: Checked;
  stateDir: string;
  wheel: string | undefined;
  signal: AbortSignal;
  limits: CheckLimits;
};

type Work = Check & { journal: Journal<CheckStep> };

/**
 * Locks, builds and tests what somebody has proposed, step by step; each is found again by its outcome, so that a check
 * that a killed broker began goes on. A failure names its step, and the log has the last lines.
 */
export async function check(given: Check): Promise<void> {
  const { db, log, row, signal } = given;
  const journal = checkJournal(db, log, { versionId: row.id, run: row.checkRun });
  const work = { ...given, journal };
  let step: CheckStep = "lock";
  try {
    await change(db, row, { check: "running", checkMessage: null });
    if (row.proposal.source.kind === "packages") {
      const { source } = row.proposal;
      const locked = await within(
        given.limits.lockMs,
        signal,
        async (until) => await lock({ ...work, signal: until }, source),
      );
      step = "build";
      await within(given.limits.buildMs, signal, async (until) => await build({ ...work, signal: until }, locked));
    }
    step = "launch";
    const workspace = await launch(work);
    step = "imports";
    const kernelId = await importAll(work, workspace);
    step = "gpu";
    await borrowGpu(work, workspace, kernelId);
    await journal.flush();
    await finish(db, row, { check: "passed" }, "image.pass");
  } catch (error) {
    // Whoever leads next goes on, unless it was taken back.
    if (signal.aborted) return await journal.flush();
    const message = messageFor(error).replaceAll("\0", "");
    journal.failed(step, message);
    await journal.flush();
    log.warn({ versionId: row.id, step, err: error }, "a proposed environment failed its check");
    const checkMessage = `${SAYS[step]} ${message}`.slice(0, 2000);
    await finish(db, row, { check: "failed", checkMessage }, "image.fail");
  }
}

/** What the page says on top; the step's log has the rest. */
const SAYS: Record<CheckStep, string> = {
  lock: "Its packages could not be locked.",
  build: "It could not be built.",
  launch: "No workspace could be launched with it.",
  imports: "Not all of it can be imported.",
  gpu: "It could not compute on a GPU.",
};

/** Ends what takes longer. */
async function within<T>(ms: number, signal: AbortSignal, work: (until: AbortSignal) => Promise<T>): Promise<T> {
  const limit = AbortSignal.timeout(ms);
  try {
    return await work(AbortSignal.any([signal, limit]));
  } catch (error) {
    if (!limit.aborted || signal.aborted) throw error;
    throw new Error(`It took longer than ${ms / 60_000} minutes.`);
  }
}

type Packages = Extract<Checked["proposal"]["source"], { kind: "packages" }>;

/** The word of its locked definition, which lies where builds find it. */
async function lock({ db, row, journal, stateDir, signal }: Work, source: Packages): Promise<string> {
  journal.started("lock", "Locking its packages");
  const onLine = (line: string) => journal.log("lock", line);
  const { title, description } = row.proposal;
  const { base, requirements, python } = source;
  const wanted = { name: row.name, title, description, base, requirements, python };
  if (row.definition !== null && row.lock !== null) {
    await layDefinition({ word: row.definition, lock: row.lock, base, spec: row.spec }, stateDir);
    journal.done("lock", `Locked as ${row.definition}`);
    return row.definition;
  }
  const egressPolicy = await policyOf(db, row, onLine);
  const options = { stateDir, onLine, signal, egressPolicy };
  const { word, version, lock: text, definition } = await lockDefinition(wanted, options);
  const needs = row.proposal.needs ?? definition.needs;
  const spec = { env: definition.env, ...(needs === undefined ? {} : { needs }), definition };
  await layDefinition({ word, lock: text, base, spec }, stateDir);
  await change(db, row, { version, definition: word, lock: text, spec }).catch((error: unknown) => {
    if (!isUniqueViolation(error)) throw error;
    throw new Error(`Locked it is the same as version ${version}, which is there already.`);
  });
  const packages = text.split("\n").filter((line) => /^[A-Za-z0-9]/.test(line)).length;
  journal.done("lock", `${packages} packages, each with its version and hashes: ${word}`);
  return word;
}

/** The outgoing network policy of the team that proposes; the log names one that may close the package index. */
async function policyOf(db: Database, { teamId }: Checked, onLine: (line: string) => void): Promise<EgressPolicy> {
  if (teamId === null) return DEFAULT_EGRESS_POLICY;
  const policy = await egressPolicyOf(db, teamId);
  if (policy.mode !== "all") {
    onLine(`The team's outgoing network policy applies, mode ${policy.mode}`);
  }
  return policy;
}

async function build({ db, row, journal, stateDir, wheel, signal }: Work, word: string): Promise<void> {
  journal.started("build", "Building it");
  const onLine = (line: string) => journal.log("build", line);
  const egressPolicy = await policyOf(db, row, onLine);
  const built = await environmentForWorkspace(word, { stateDir, wheel, onLine, signal, egressPolicy });
  journal.done("build", `Built with Python ${built.pythonVersion}`);
}

/** Launches it as people will, and waits until a notebook's kernel has answered. */
async function launch({ db, row, journal, signal }: Work): Promise<string> {
  journal.started("launch", "Launching a workspace with it");
  await change(db, row, { state: "testing" });
  const id = await testWorkspace(db, row);
  let after = 0;
  for (
    const until = performance.now() + LAUNCH_MS;
    performance.now() < until;
    await sleep(250, undefined, { signal })
  ) {
    const workspace = await workspaceOf(db, id);
    if (workspace === undefined || workspace.desired !== "running")
      throw new Error("The test's workspace was stopped.");
    for (const event of (await events(systemContext(db), { id, after })).events) {
      journal.log("launch", event.message);
      after = event.seq;
    }
    if (workspace.observed === "running") {
      journal.done("launch", "JupyterLab answers, and a notebook's kernel computes");
      return id;
    }
    if (workspace.observed === "failed") throw new Error(workspace.message ?? "It did not start.");
  }
  throw new Error(`It did not run within ${LAUNCH_MS / 60_000} minutes.`);
}

/** Imports what it was proposed for in one notebook; the notebook's kernel. */
async function importAll(work: Work, id: string): Promise<string> {
  const { db, row, journal } = work;
  const { imports } = row.proposal;
  journal.started("imports", imports.length === 0 ? "No imports were named" : `Importing ${imports.join(", ")}`);
  const { kernelId } = await start(systemContext(db), { id, path: "check.ipynb" });
  const program = [
    "import importlib",
    `for name in ${JSON.stringify(imports)}:`,
    "    print(name, getattr(importlib.import_module(name), '__version__', ''))",
  ];
  await runCell(work, "imports", { id, kernelId, code: program.join("\n") });
  journal.done("imports", imports.length === 0 ? "No imports were named" : "All of them can be imported");
  return kernelId;
}

async function borrowGpu(work: Work, id: string, kernelId: string): Promise<void> {
  const { db, row, journal } = work;
  journal.started("gpu", "Borrowing a GPU and running a kernel on it");
  const gpu = row.teamId === null ? undefined : await gpuTypeFor(db, row.teamId);
  if (gpu === undefined) {
    journal.done("gpu", "Left out: the pool has no device that its team may borrow");
    return;
  }
  await runCell(work, "gpu", { id, kernelId, code: GPU_PROGRAM });
  journal.done("gpu", `A kernel on ${gpu.gpuType} computed 6 * 7`);
}

type Cell = { id: string; kernelId: string; code: string };

/** Runs a cell and logs what it prints. Throws with its error. */
async function runCell({ db, journal, signal }: Work, step: CheckStep, cell: Cell): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(KERNEL_MS)]);
  let wrong: string | undefined;
  for await (const { data } of await run(systemContext(db), cell, limit)) {
    const output = kernelOutput.parse(data);
    if (output.kind === "text" || output.kind === "error") {
      const lines = output.text.split(/\r?\n/).filter((line) => line.trim() !== "");
      for (const line of lines) journal.log(step, line);
      if (output.kind === "error") wrong = lines.at(-1);
    }
    if (output.kind === "done" && !output.ok) {
      throw new Error(wrong ?? `The notebook did not answer within ${KERNEL_MS / 1000} s.`);
    }
  }
}
