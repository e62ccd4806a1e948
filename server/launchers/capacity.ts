/** The largest size that a launcher can give to one workspace. */
import { availableParallelism, totalmem } from "node:os";
import type { CustomSize } from "#server/contracts/workspace-size.ts";
import { readAmount } from "./kubernetes/amount.ts";
import { clusterSettings } from "./kubernetes/settings.ts";

/** Undefined where nobody has said: a cluster whose settings name no `largest`. */
export async function capacityOf(launcher: string): Promise<CustomSize | undefined> {
  if (launcher === "local") return { cpuMilli: availableParallelism() * 1000, memoryBytes: thisMachinesMemory() };
  // Settings that cannot be read stop the broker, which says so; here they only tell no bound.
  const settings = launcher === "kubernetes" ? await clusterSettings().catch(() => undefined) : undefined;
  if (settings?.largest === undefined) return undefined;
  const { cpu, memory } = settings.largest;
  return { cpuMilli: Math.floor(readAmount(cpu) * 1000), memoryBytes: Math.floor(readAmount(memory)) };
}

/** What the machine has, or the container that we run in. */
export function thisMachinesMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
