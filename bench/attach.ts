/**
 * From entering `%gpu attach 0.5` in a notebook to the result of its first kernel, with the module loaded and 64 MiB
 * allocated (and parked) before: 200 cycles in a real kernel of a workspace.
 *
 * Starts an installation of its own; with SLUICE_PORTAL_URL, SLUICE_ADMIN_EMAIL and SLUICE_ADMIN_PASSWORD set it
 * uses the one that runs there.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { startInstallation } from "../e2e/fixtures/installation.ts";

const root = path.resolve(import.meta.dirname, "..");

export const targets = { p50_ms: "<= 50" };

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const { SLUICE_PORTAL_URL: portal, SLUICE_ADMIN_EMAIL: email, SLUICE_ADMIN_PASSWORD: password } = process.env;
  if (portal !== undefined && email !== undefined && password !== undefined) {
    return { metrics: await measure({ portal, email, password, stateDir: process.env.SLUICE_STATE_DIR ?? ".sluice" }) };
  }
  const stateDir = await mkdtemp(path.join(tmpdir(), "sluice-bench-"));
  const admin = { email: "bench@example.test", password: randomBytes(18).toString("base64url") };
  const installation = await startInstallation({
    stateDir,
    env: { ...process.env, SLUICE_ADMIN_EMAIL: admin.email, SLUICE_ADMIN_PASSWORD: admin.password },
  });
  try {
    await installation.ready;
    return { metrics: await measure({ portal: installation.portalUrl, stateDir, ...admin }) };
  } finally {
    await installation.stop({ keepState: true });
    await rm(stateDir, { recursive: true, force: true });
  }
}

type Access = { portal: string; email: string; password: string; stateDir: string };

async function measure(access: Access): Promise<Record<string, number>> {
  const script = path.join(root, "native", "python", "tests", "measure_attach.py");
  const { stdout } = await promisify(execFile)(
    await environmentPython(access.stateDir),
    [script, "--portal", access.portal, "--email", access.email, "--cycles", "200"],
    { env: { ...process.env, SLUICE_ADMIN_PASSWORD: access.password }, maxBuffer: 1 << 24 },
  );
  const seconds = z.array(z.number().positive()).parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? "[]"));
  const sorted = seconds.toSorted((a, b) => a - b);
  const at = (part: number) => (sorted[Math.ceil(part * sorted.length) - 1] ?? Number.NaN) * 1000;
  return { p50_ms: at(0.5), p95_ms: at(0.95), max_ms: at(1), cycles: sorted.length };
}

/** The interpreter of the built environment: it has what the script needs to speak to Jupyter. */
async function environmentPython(stateDir: string): Promise<string> {
  const environments = path.join(stateDir, "environments");
  const built = (await readdir(environments, { withFileTypes: true })).find(
    (entry) => entry.isDirectory() && entry.name.startsWith("cuda-python-"),
  );
  if (built === undefined) throw new Error(`No built environment in ${environments}.`);
  return path.join(environments, built.name, "bin", "python");
}
