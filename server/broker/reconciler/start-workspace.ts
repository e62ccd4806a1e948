import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { env } from "#server/env.ts";
import { messageFor } from "#server/errors.ts";
import { hashSecret, newSecret } from "#server/ids.ts";
import { tryFirstKernel } from "#server/jupyter/first-kernel.ts";
import { readAheadWithin } from "#server/jupyter/read-ahead.ts";
import { waitForServer } from "#server/jupyter/wait-for-server.ts";
import {
  type DatasetMount,
  type Launcher,
  LaunchRefused,
  type LaunchReport,
  type Observation,
  type RunningWorkspace,
  type WorkspaceSpec,
} from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { forgetOldStarts } from "#server/services/workspace/forget-old-starts.ts";
import { workspaceOrigin } from "#server/services/workspace/handover.ts";
import { mountsOf } from "#server/services/workspace-dataset/mounts.ts";
import { values as variablesOf } from "#server/services/workspace-variable/values.ts";
import { type Journal, type Step, workspaceJournal } from "./journal.ts";
import { prefetchDatasets, prefetchHere } from "./prefetch.ts";
import { changeWhileWanted, environmentOf, isFirstAdmin, sizeOf, type WorkspaceRow } from "./state.ts";

const JUPYTER_TIMEOUT_MS = 60_000;
const KERNEL_TIMEOUT_MS = 45_000;
/** So long a launcher may be unable to tell what there is before a start fails for it. */
const OBSERVE_MS = 300_000;
const ASK_AGAIN_MS = 1_000;

type Start = {
  db: Database;
  log: Logger;
  launcher: Launcher;
  row: WorkspaceRow;
  signal: AbortSignal;
  /** Whether this broker still leads: else another one has the start, and what it waits for is not ended here. */
  leads: () => Promise<boolean>;
};

/**
 * Brings a workspace from wanted to running, step by step. What a killed broker began is taken over: a server of this
 * generation that runs already is not started again. On failure the workspace is stopped and says why.
 */
export async function startWorkspace(start: Start): Promise<void> {
  const { db, log, launcher, row, signal } = start;
  const journal = workspaceJournal(db, log, { workspaceId: row.id, generation: row.generation });
  let step: Step = "environment";
  /** What has been told already: a launcher may tell what is printed as it comes. */
  const told = new Set<string>();
  try {
    await forgetOldStarts(db, { workspaceId: row.id, generation: row.generation });
    const report = reportTo(journal, { at: (now) => (step = now), told });
    const running = (await takeOver(start, report)) ?? (await launchIfOurs(start, report));
    if (running === undefined) return;
    const server = { endpoint: running.endpoint, token: running.token };
    const stillRuns = async () => (await launcher.observe(row.id)).state === "running";

    step = "jupyter";
    journal.started(step, "Waiting for JupyterLab to answer");
    await waitForServer(server, { stillRuns, timeoutMs: JUPYTER_TIMEOUT_MS, signal });
    journal.done(step, "JupyterLab answers");
    if (launcher.prefetch === undefined) {
      const read: NonNullable<Launcher["prefetch"]> = async (...asked) => await readAheadWithin(server, ...asked);
      void prefetchDatasets({ db, log, row, datasets: running.datasets, read, signal });
    }

    step = "kernel";
    journal.started(step, "Starting a first notebook kernel");
    await tryFirstKernel(server, { timeoutMs: KERNEL_TIMEOUT_MS, signal });
    journal.done(step, "A notebook kernel computed 6 * 7");
    await journal.flush();
    await changeWhileWanted(db, row, {
      observed: "running",
      message: null,
      movesAt: null,
      endpoint: running.endpoint,
      handle: running.handle,
      startedAt: new Date(),
      stoppedAt: null,
    });
    log.info({ workspaceId: row.id, generation: row.generation, launcher: launcher.name }, "workspace runs");
  } catch (error) {
    const message = messageFor(error);
    if (error instanceof NotIsolated) step = "sandbox";
    if (!(await start.leads().catch(() => false))) {
      log.warn({ workspaceId: row.id, step, err: error }, "a start is left to the broker that leads");
      return;
    }
    if (signal.aborted) {
      journal.log(step, "The start was called off.");
      await journal.flush();
      return;
    }
    const tail = step === "environment" ? [] : await launcher.logs(row.id, 40).catch(() => []);
    for (const line of tail) if (!told.has(line)) journal.log(step, line);
    journal.failed(step, message);
    await journal.flush();
    log.warn({ workspaceId: row.id, step, err: error }, "workspace could not be started");
    await launcher
      .stop(row.id)
      .catch((failure: unknown) => log.error({ err: failure }, "workspace could not be stopped"));
    await changeWhileWanted(
      db,
      row,
      {
        observed: "failed",
        message: error instanceof LaunchRefused ? message : sentence(step, message),
        endpoint: null,
        handle: null,
      },
      { action: "workspace.fail", detail: { step, message } },
    );
  }
}

/** Why a workspace may not be launched here. */
class NotIsolated extends Error {}

/** `datasets`: what is to be read ahead. */
type Started = RunningWorkspace & { token: string; datasets: readonly DatasetMount[] };

/** What the launcher tells; `at` hears of each step, and `told` keeps each line. */
function reportTo(journal: Journal<Step>, { at, told }: { at: (step: Step) => void; told: Set<string> }): LaunchReport {
  return {
    started: (step: Step, message: string) => {
      at(step);
      journal.started(step, message);
    },
    done: (step: Step, message: string) => journal.done(step, message),
    log: (step: Step, line: string) => {
      told.add(line);
      journal.log(step, line);
    },
  };
}

/** The server that a broker before us started for this very generation; one that still waits has the time of a start. */
async function takeOver({ db, launcher, row, signal }: Start, report: LaunchReport): Promise<Started | undefined> {
  const seen = await observed(launcher, row.id, report, signal);
  if (seen.state !== "running" || seen.handle.generation !== row.generation || row.serverToken === null)
    return undefined;
  const { id, teamId, generation, serverToken: token } = row;
  // Read ahead again, as the broker before us may not have begun: what is in the cache already costs nothing.
  const datasets = launcher.prefetch === undefined ? await mountsOf(systemContext(db), id) : [];
  const begun =
    seen.waits === true && launcher.awaitBegun !== undefined
      ? await launcher.awaitBegun({ id, teamId, generation, datasets }, report, signal)
      : { endpoint: seen.endpoint, handle: seen.handle };
  return begun && { ...begun, token, datasets };
}

/** Launches it, unless it was called off meanwhile, or another broker has it. */
async function launchIfOurs(start: Start, report: LaunchReport): Promise<Started | undefined> {
  start.signal.throwIfAborted();
  return (await start.leads()) ? await launch(start, report) : undefined;
}

/** What there is; asked again for a while where its launcher cannot tell, as when a cluster does not answer. */
async function observed(
  launcher: Launcher,
  id: string,
  report: LaunchReport,
  signal: AbortSignal,
): Promise<Observation> {
  const until = performance.now() + OBSERVE_MS;
  for (let told = false; ; told = true) {
    try {
      return await launcher.observe(id);
    } catch (error) {
      if (performance.now() > until) throw error;
      if (!told) report.log("environment", `${messageFor(error)} It is asked again.`);
      await sleep(ASK_AGAIN_MS, undefined, { signal });
    }
  }
}

async function launch(start: Start, report: LaunchReport): Promise<Started | undefined> {
  const { db, launcher, row, signal } = start;
  const serverToken = randomBytes(32).toString("base64url");
  const credential = newSecret("slw");
  // The secrets' row first: whatever runs can always be reached and recognised.
  const secrets = { observed: "starting", serverToken, credentialHash: hashSecret(credential) } as const;
  const size = await sizeOf(db, row);
  const given = { givenCpuMilli: size?.cpuMilli ?? null, givenMemoryBytes: size?.memoryBytes ?? null };
  if (!(await changeWhileWanted(db, row, { ...secrets, ...given, message: null, endpoint: null, handle: null })))
    return undefined;
  const isolation = await launcher.isolation();
  const allowUnisolated = !isolation.isolated && (await isFirstAdmin(db, row.ownerId));
  if (!isolation.isolated) {
    start.log.warn({ workspaceId: row.id, reason: isolation.reason }, "workspaces cannot be isolated here");
    if (!allowUnisolated) throw new NotIsolated(`Only the first admin may launch here, because ${isolation.reason}.`);
  }
  const spec: WorkspaceSpec = {
    id: row.id,
    teamId: row.teamId,
    generation: row.generation,
    ...(await environmentOf(db, row)),
    ...(size && { size }),
    serverToken,
    credential,
    gpuType: row.gpuType,
    brokerUrl: env().SLUICE_BROKER_URL,
    portalUrl: env().SLUICE_PORTAL_URL,
    publicUrl: workspaceOrigin(row.id),
    variables: await variablesOf(systemContext(db), row.id),
    datasets: await mountsOf(systemContext(db), row.id),
    allowUnisolated,
  };
  const { datasets } = spec;
  // Beside the start, which never waits for it.
  if (launcher.prefetch) {
    const read = launcher.prefetch.bind(launcher);
    void prefetchHere({ db, log: start.log, row, datasets, read, signal });
  }
  const running = await launcher.ensure(spec, report, signal);
  await changeWhileWanted(db, row, { endpoint: running.endpoint, handle: running.handle });
  return { ...running, token: serverToken, datasets };
}

/** What the page says on top; the log below has the rest. */
function sentence(step: Step, message: string): string {
  const what: Partial<Record<Step, string>> = {
    environment: "The environment is not ready.",
    sandbox: "The workspace could not be isolated.",
    jupyter: "JupyterLab did not start.",
    kernel: "No notebook could be started.",
  };
  return `${what[step] ?? "The workspace did not start."} ${message} The log below shows its last lines; Start tries again.`;
}
