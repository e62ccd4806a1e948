import { readFileSync } from "node:fs";
import { cpus } from "node:os";

/** The processor's name with its model number: virtual machines call fast and slow processors by one name. */
export function cpuName(): string {
  const name = cpus()[0]?.model ?? "unknown";
  const model = /^model\s*: (\d+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1];
  return model === undefined ? name : `${name}, model ${model}`;
}
