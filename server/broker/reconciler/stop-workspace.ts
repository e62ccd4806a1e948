import { systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import type { Launcher } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { endForWorkspace } from "#server/services/lease/end-for-workspace.ts";
import { keepsFiles } from "#server/services/workspace/kept-files.ts";
import { workspaceJournal } from "./journal.ts";
import { change, changeWhileWanted, giveUpFiles, type WorkspaceRow } from "./state.ts";

type Work = { db: Database; log: Logger; launcher: Launcher; row: WorkspaceRow };

/** What no longer runs has no address and no secrets. */
const nothingRuns = { endpoint: null, handle: null, serverToken: null, credentialHash: null, movesAt: null } as const;

/** Ends the notebooks and releases the GPUs. For a removed workspace, also deletes files past their period. */
export async function stopWorkspace({ db, log, launcher, row }: Work): Promise<void> {
  const journal = workspaceJournal(db, log, { workspaceId: row.id, generation: row.generation });
  const now = new Date();
  const step = row.desired === "removed" && !keepsFiles(row, now) ? "remove" : "stop";
  if (step === "remove" && !(await giveUpFiles(db, row, now))) return;
  journal.started(step, step === "remove" ? "Ending notebooks and deleting files" : "Ending notebooks");
  // First the GPUs: somebody may be waiting for them, and nothing can attach again once the credential is void.
  await change(db, row, { observed: row.desired === "removed" ? row.observed : "stopping", credentialHash: null });
  const leases = await endForWorkspace(systemContext(db), { workspaceId: row.id });
  if (leases > 0)
    journal.log(step, leases === 1 ? "1 GPU lease was given back" : `${leases} GPU leases were given back`);
  await (step === "remove" ? launcher.remove(row.id) : launcher.stop(row.id));
  journal.done(step, step === "remove" ? "Everything is deleted" : "Stopped; files and packages stay");
  await journal.flush();
  await change(db, row, {
    ...nothingRuns,
    observed: step === "remove" ? "removed" : "stopped",
    // Why it was stopped, when nobody asked for it.
    message: step === "remove" ? null : row.message,
    stoppedAt: new Date(),
  });
  log.info(
    { workspaceId: row.id, generation: row.generation },
    step === "remove" ? "workspace removed" : "workspace stopped",
  );
}

/** A workspace that should run and does not: says so with its last lines, and gives its GPUs back. */
export async function recordLoss({ db, log, launcher, row }: Work, reason: string): Promise<void> {
  const journal = workspaceJournal(db, log, { workspaceId: row.id, generation: row.generation });
  for (const line of await launcher.logs(row.id, 40).catch(() => [])) journal.log("jupyter", line);
  journal.failed("jupyter", reason);
  await journal.flush();
  const recorded = await changeWhileWanted(
    db,
    row,
    {
      ...nothingRuns,
      observed: "failed",
      message: `${reason} Files are safe; Start brings it back.`,
      stoppedAt: new Date(),
    },
    { action: "workspace.fail", detail: { message: reason } },
  );
  if (recorded) await endForWorkspace(systemContext(db), { workspaceId: row.id });
  log.warn({ workspaceId: row.id, reason }, "workspace ended by itself");
  // What is left of it may be where nobody answers; the next start sees to it again.
  await launcher
    .stop(row.id)
    .catch((error: unknown) => log.warn({ err: error, workspaceId: row.id }, "it is not gone"));
}
