/** Takes a state directory for one `npm start`: the lock, then the reserve of disk. */
import { mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { keepReserve, type ReserveOptions } from "#scripts/lib/reserve.ts";
import { lockInstallation } from "#scripts/start/lock.ts";
import { reserveFile } from "#server/disk.ts";

/**
 * Throws if another `npm start` runs, without touching its reserve. On a full disk, the start releases the reserve for
 * space. Returns the function that gives the directory back.
 */
export async function takeStateDir(stateDir: string, options: ReserveOptions): Promise<() => Promise<void>> {
  await mkdir(path.join(stateDir, "logs"), { recursive: true, mode: 0o700 });
  const unlock = await lockInstallation(stateDir, () => rm(reserveFile(stateDir), { force: true }));
  const reserve = await keepReserve(stateDir, options);
  return async () => {
    await reserve.stop();
    await unlock();
  };
}
