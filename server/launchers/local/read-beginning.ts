import { constants } from "node:fs";
import { open } from "node:fs/promises";

/**
 * The first `maxBytes` of a file that somebody else wrote, such as a package of a proposal; undefined where there is no
 * regular file. Follows no link at the end of the path, and does not wait for the writer of a named pipe.
 */
export async function readBeginning(name: string, maxBytes: number): Promise<string | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(name, flags).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile()) return undefined;
    const buffer = Buffer.alloc(Math.min(found.size, maxBytes));
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.toString("utf8", 0, length);
  } finally {
    await file.close();
  }
}
