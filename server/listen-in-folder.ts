import { closeSync, openSync } from "node:fs";
import { chmod, unlink } from "node:fs/promises";
import type { Server } from "node:net";

/**
 * Listens on a Unix socket in a folder of any depth, and replaces the socket of an earlier process. The path of a
 * socket has at most 107 bytes, so the path names the folder by its descriptor (Linux).
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
