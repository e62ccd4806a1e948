import { formatBytes } from "#components/format.ts";
import type { CustomSize } from "#server/contracts/workspace-size.ts";

/** `2 cores, 4.0 GiB` */
export function sizeInWords({ cpuMilli, memoryBytes }: CustomSize): string {
  return `${cpuMilli / 1000} ${cpuMilli === 1000 ? "core" : "cores"}, ${formatBytes(memoryBytes)}`;
}
