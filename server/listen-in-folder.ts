import { closeSync, openSync } from "node:fs";
import { chmod, unlink } from "node:fs/promises";
import type { Server } from "node:net";

/**
 * Has a server listen on a Unix socket in a folder of any depth, in place of one that an earlier process left there. The
 * path of a socket has at most 107 bytes, so the folder is opened and named by its descriptor (Linux).
 */
export async function listenInFolder(server: Server, folder: string, name: string, mode: number): Promise<void> {
  const descriptor = openSync(folder, "r");
  const path = `/proc/self/fd/${descriptor}/${name}`;
  server.once("close", () => closeSync(descriptor));
  await unlink(path).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  await chmod(path, mode);
}
