import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import path from "node:path";

/** The `gpud` that was built with this portal, for hosts with its processor type. */
export type GpudProgram = { file: string; size: number; sha256: string };

let known: (GpudProgram & { changedMs: number }) | undefined;

/** Undefined if gpud is not built, as before the build ends. */
export async function gpudProgram(folder = process.cwd()): Promise<GpudProgram | undefined> {
  const file = path.join(/* turbopackIgnore: true */ folder, "native", "target", "release", "gpud");
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return undefined;
  if (known?.file === file && known.changedMs === found.mtimeMs && known.size === found.size) return known;
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  known = { file, size: found.size, changedMs: found.mtimeMs, sha256: hash.digest("hex") };
  return known;
}
