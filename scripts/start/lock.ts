/** One `npm start` a state directory. */
import { link, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";

/**
 * Takes the lock, or throws with the process that holds it. Returns the function that gives the lock back. `makeRoom` is
 * called when the disk has no space for the lock, and never while another process holds it.
 */
export async function lockInstallation(stateDir: string, makeRoom: () => Promise<void>): Promise<() => Promise<void>> {
  const file = path.join(stateDir, "start.pid");
  await refuseHeld(file, stateDir);
  // By a link, so that no reader finds a lock without its holder.
  const own = `${file}.${process.pid}`;
  const mine = `${process.pid} ${await startTime(process.pid)}`;
  try {
    const write = async () => await writeFile(own, mine, { mode: 0o600 });
    await write().catch(async (error: unknown) => {
      if (!isFull(error)) throw error;
      await makeRoom();
      await write();
    });
    await rm(file, { force: true });
    await link(own, file).catch(async (error: unknown) => {
      await refuseHeld(file, stateDir);
      throw error;
    });
  } finally {
    await rm(own, { force: true });
  }
  return () => rm(file, { force: true });
}

async function refuseHeld(file: string, stateDir: string): Promise<void> {
  const [pid, since] = (await readFile(file, "utf8").catch(() => "")).split(" ");
  if (pid !== undefined && since !== undefined && (await startTime(Number(pid))) === since.trim()) {
    throw new Error(`Sluice already runs on ${stateDir} (process ${pid}). Stop it first, or set SLUICE_STATE_DIR.`);
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

/** Field 22 of /proc/PID/stat: a reused pid has another one. */
async function startTime(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}
