/** The state directory of the soak's installation: a small disk of its own where this process may mount one. */
import { existsSync, readlinkSync } from "node:fs";
import { mkdir, mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { run } from "#scripts/lib/processes.ts";

const DISK_BYTES = 2 * 1024 ** 3;
/** What the installation takes over ready built. */
const BUILT_FOLDERS = ["tools", "wheels", "environments"];

export type StateDir = {
  path: string;
  /** Whether it has a disk of its own, which may be filled. */
  isDisk: boolean;
  /** Bytes that are left on it. */
  available: () => Promise<number>;
  /** Copies the logs to a folder, in place of those of an earlier run. */
  keepLogs: (to: string) => Promise<void>;
  remove: () => Promise<void>;
};

/** Nobody writes to what is built, so it is shared. A mount is seen by this process and its children alone. */
export async function makeStateDir(builtBy: string): Promise<StateDir> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-kills-"));
  const isDisk = hasOwnMounts();
  const built = BUILT_FOLDERS.map((name) => path.join(builtBy, name)).filter(existsSync);
  if (isDisk) {
    await run("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES},mode=0755`, "none", folder]);
    for (const from of built) {
      const to = path.join(folder, path.basename(from));
      await mkdir(to);
      await run("mount", ["--bind", from, to]);
    }
  } else await run("cp", ["--archive", "--link", ...built, folder]);
  return {
    path: folder,
    isDisk,
    available: async () => {
      const { bavail, bsize } = await statfs(folder);
      return bavail * bsize;
    },
    keepLogs: async (to) => {
      await rm(to, { recursive: true, force: true });
      await mkdir(path.dirname(to), { recursive: true });
      await run("cp", ["--recursive", path.join(folder, "logs"), to]);
    },
    remove: async () => {
      if (isDisk) await run("umount", ["--recursive", "--lazy", folder]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Only root in a mount namespace other than its parent's (`unshare --mount`): the machine's own mounts are left alone. */
function hasOwnMounts(): boolean {
  if (process.getuid?.() !== 0) return false;
  return readlinkSync("/proc/self/ns/mnt") !== readlinkSync(`/proc/${process.ppid}/ns/mnt`);
}
