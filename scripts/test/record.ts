/** The record of a test run: what took how long, on which machine. `npm run times` prints it. */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import path from "node:path";
import { z } from "zod";
import { cpuName } from "#scripts/lib/cpu-name.ts";
import type { StepResult } from "#scripts/test/step.ts";

const recordSchema = z.object({
  command: z.string(),
  startedAt: z.iso.datetime(),
  /** From the first step's start to the last one's end, with npm's installation. */
  seconds: z.number(),
  cpu: z.string(),
  cores: z.int(),
  /** Whether the caches held anything at the start: without them, everything is downloaded and compiled. */
  isWarm: z.boolean(),
  steps: z.array(
    z.object({
      name: z.string(),
      kind: z.enum(["build", "check", "suite"]),
      passed: z.int(),
      failed: z.int(),
      seconds: z.number(),
      flaky: z.array(z.string()).default([]),
      files: z.array(z.object({ file: z.string(), seconds: z.number() })).default([]),
    }),
  ),
});
export type RunRecord = z.infer<typeof recordSchema>;

const recordFile = (root: string) => path.join(root, ".sluice", "test", "run.json");

export async function keepRecord(
  root: string,
  run: { command: string; startedAt: number; isWarm: boolean; results: readonly StepResult[] },
): Promise<void> {
  const record: RunRecord = {
    command: run.command,
    startedAt: new Date(run.startedAt).toISOString(),
    seconds: (Date.now() - run.startedAt) / 1000,
    cpu: cpuName(),
    cores: cpus().length,
    isWarm: run.isWarm,
    steps: run.results.map(({ files, flaky, ...step }) => ({
      ...step,
      flaky: [...(flaky ?? [])],
      files: [...(files ?? [])],
    })),
  };
  await mkdir(path.dirname(recordFile(root)), { recursive: true });
  await writeFile(recordFile(root), JSON.stringify(record, null, 2));
}

/** The last run's record; undefined when there is none. */
export async function readRecord(root: string): Promise<RunRecord | undefined> {
  if (!existsSync(recordFile(root))) return undefined;
  return recordSchema.parse(JSON.parse(await readFile(recordFile(root), "utf8")));
}

/** Markdown: minutes by suite, by build and check, and by the slowest files. */
export function timeTable({ command, startedAt, seconds, cpu, cores, isWarm, steps }: RunRecord, slowest = 15): string {
  const minutes = (value: number) => (value / 60).toFixed(1);
  const rows = (kinds: readonly string[]) =>
    steps
      .filter(({ kind }) => kinds.includes(kind))
      .sort((a, b) => b.seconds - a.seconds)
      .map(({ name, seconds: taken, passed }) => `| ${name} | ${minutes(taken)} | ${passed} |`);
  const files = steps
    .flatMap(({ name, files }) => files.map((file) => ({ suite: name, ...file })))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, slowest);
  return [
    `\`${command}\`, ${isWarm ? "warm" : "cold"}: ${minutes(seconds)} min on ${cores} cores (${cpu}), ${startedAt.slice(0, 10)}.`,
    "Steps run side by side, so their minutes add up to more.",
    "",
    "| suite | min | tests |",
    "| --- | ---: | ---: |",
    ...rows(["suite"]),
    "",
    "| build or check | min | |",
    "| --- | ---: | --- |",
    ...rows(["build", "check"]).map((row) => row.replace(/ \d+ \|$/, " |")),
    "",
    "| slowest file | suite | min |",
    "| --- | --- | ---: |",
    ...files.map(({ file, suite, seconds: taken }) => `| ${file} | ${suite} | ${minutes(taken)} |`),
  ].join("\n");
}
