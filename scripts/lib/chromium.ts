/** The browser of the tests, from the distribution. */
import { existsSync } from "node:fs";
import { run } from "#scripts/lib/processes.ts";

/** Where it is. */
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Installs it if it is missing; without the rights for that, an error says what to do. */
export async function installChromium(say: (line: string) => void): Promise<void> {
  if (existsSync(CHROMIUM)) return;
  if (process.getuid?.() !== 0) {
    throw new Error(
      "Chromium is missing. Install it with:  sudo apt-get install -y chromium   (or set CHROMIUM to a browser)",
    );
  }
  await run("apt-get", ["update", "-qq"], { onLine: say });
  await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], { onLine: () => undefined });
}
