/** Benchmarks that are programs: built, run, and asked for their last line. */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { buildNativeForTests } from "#scripts/start/builds.ts";

/** What most of them print: a number for each name. */
export const figures = z.record(z.string(), z.number());

/** Builds the native programs, runs one of them and returns the JSON of its last line, of the given form. */
export async function nativeProgram<T>(name: string, form: z.ZodType<T>, args: string[] = []): Promise<T> {
  const root = path.resolve(import.meta.dirname, "..", "..");
  await buildNativeForTests(root, (line) => console.log(`  ${line}`));
  const folder = path.join(root, "native", "target", "release");
  // Programs find their inputs by it, as tests do that cargo runs.
  const variables = { SLUICE_NATIVE_DIR: folder, CARGO_MANIFEST_DIR: path.join(root, "native", "softgpu") };
  return await program(path.join(folder, name), args, form, variables);
}

/** Runs a program and returns the JSON of its last line, of the given form. */
export async function program<T>(
  file: string,
  args: string[],
  form: z.ZodType<T>,
  env: Record<string, string> = {},
): Promise<T> {
  const { stdout } = await promisify(execFile)(file, args, { env: { ...process.env, ...env } });
  return form.parse(JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}"));
}
