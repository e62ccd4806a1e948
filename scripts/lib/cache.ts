import { homedir } from "node:os";
import path from "node:path";

/** What is expensive to make and the same for every checkout. */
export function cacheFolder(...names: string[]): string {
  return path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), ".cache"), "sluice", ...names);
}
