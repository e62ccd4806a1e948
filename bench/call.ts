/**
 * What one CUDA call costs over loopback: a posted call on the client (flush and acknowledgement included), an empty
 * blocking call, and the processor time of both sides. The measuring program starts a gpud with the null backend.
 */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { buildNativeForTests } from "#scripts/start/builds.ts";

export const targets = { posted_p50_us: "<= 3", roundtrip_p50_us: "<= 60" };

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const root = path.resolve(import.meta.dirname, "..");
  await buildNativeForTests(root, (line) => console.log(`  ${line}`));
  const folder = path.join(root, "native", "target", "release");
  const { stdout } = await promisify(execFile)(path.join(folder, "sluice-call-bench"), [], {
    env: { ...process.env, SLUICE_NATIVE_DIR: folder },
  });
  const metrics = z.record(z.string(), z.number()).parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}"));
  return { metrics };
}
