/** The record of what a limit ended in a workspace, beside its handle. The workspace's page shows the reason. */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { z } from "zod";
import type { Restarted } from "#server/launchers/launcher.ts";
import { formatBytes } from "#server/scheduler/amount.ts";
import type { Decision } from "./limit-decision.ts";
import type { Limits } from "./limits.ts";

const record = z.object({
  generation: z.int(),
  at: z.coerce.date(),
  ended: z.enum(["process", "workspace"]),
  sentence: z.string(),
});
export type LimitRecord = z.infer<typeof record>;

type Ended = { generation: number; at: Date; limits: Pick<Limits, "memoryBytes" | "tasks"> };

export function recordOf(
  decision: Exclude<Decision, { kind: "keep" }>,
  { generation, at, limits }: Ended,
): LimitRecord {
  const memory = formatBytes(limits.memoryBytes);
  if (decision.kind === "end-process") {
    return {
      ...{ generation, at, ended: "process" },
      sentence: `The workspace reached its memory limit of ${memory}, and its largest program was ended; the program used ${formatBytes(decision.memoryBytes)}. A notebook kernel that was ended starts again without its variables. Files are kept. Load less at once, or choose a larger size.`,
    };
  }
  return { generation, at, ended: "workspace", sentence: endedSentence(decision.cause, limits) };
}

/** Reason for a workspace that a limit ended: what happened, what is lost, what to do. */
export function endedSentence(cause: "memory" | "tasks", limits: Ended["limits"]): string {
  const happened =
    cause === "memory"
      ? `The workspace was ended at its memory limit of ${formatBytes(limits.memoryBytes)}; files in /tmp and /dev/shm count.`
      : `The workspace was ended at its limit of ${limits.tasks} processes and threads.`;
  const next = cause === "memory" ? "Load less at once" : "Start fewer at once";
  return `${happened} Variables of notebooks are gone, files in the home are kept. ${next}, or choose a larger size.`;
}

export async function writeLimitRecord(file: string, written: LimitRecord): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify(written), { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** The record of this start; undefined when no limit has ended anything. */
export async function readLimitRecord(file: string, generation: number): Promise<LimitRecord | undefined> {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const found = record.parse(JSON.parse(text));
    return found.generation === generation ? found : undefined;
  } catch {
    // An unreadable record costs the reason, and not the workspace.
    return undefined;
  }
}

export async function dropLimitRecord(file: string): Promise<void> {
  await rm(file, { force: true });
}

export function asRestarted({ at, sentence }: LimitRecord): Restarted {
  return { at, cause: "program", sentence };
}
