/** One `npm start` a state directory. */
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";

/** Takes the lock or throws with the process that holds it. Returns what gives it back. */
export async function lockInstallation(stateDir: string): Promise<() => Promise<void>> {
  const file = path.join(stateDir, "start.pid");
  const mine = `${process.pid} ${await startTime(process.pid)}`;
  const [pid, since] = (await readFile(file, "utf8").catch(() => "")).split(" ");
  if (pid !== undefined && since !== undefined && (await startTime(Number(pid))) === since.trim()) {
    throw new Error(`Sluice already runs on ${stateDir} (process ${pid}). Stop it first, or set SLUICE_STATE_DIR.`);
  }
  await writeFile(file, mine, { mode: 0o600 });
  return () => rm(file, { force: true });
}

/** Field 22 of /proc/PID/stat: a reused pid has another one. */
async function startTime(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}
