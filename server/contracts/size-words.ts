/** A size in words and beside another, the same in the API's answers and on pages. */
import type { CustomSize } from "./workspace-size.ts";

/** `2 cores and 4 GiB`, `0.5 cores and 512 MiB`. */
export function sizeInWords({ cpuMilli, memoryBytes }: CustomSize): string {
  const cores = cpuMilli / 1000;
  const gib = memoryBytes / 2 ** 30;
  const memory = gib >= 1 ? `${Math.round(gib * 10) / 10} GiB` : `${Math.round(memoryBytes / 2 ** 20)} MiB`;
  return `${cores} ${cores === 1 ? "core" : "cores"} and ${memory}`;
}

/** Whether the one has room in the other; what knows no bound has room for all. */
export const fits = (size: CustomSize, most: CustomSize | undefined): boolean =>
  most === undefined || (size.cpuMilli <= most.cpuMilli && size.memoryBytes <= most.memoryBytes);

/** In words the sizes of these that have as much, and how much that is. */
export function sizesFor(sizes: readonly (CustomSize & { name: string })[], atLeast: CustomSize | null): string {
  if (atLeast === null) return "any size";
  const names = sizes.filter((size) => fits(atLeast, size)).map(({ name }) => name);
  const bound = `from ${sizeInWords(atLeast)}`;
  return names.length === 0 ? bound : `${names.join(", ")} (${bound})`;
}

/** The smaller of both in each. */
export const smallerOf = (a: CustomSize, b: CustomSize | undefined): CustomSize =>
  b === undefined
    ? a
    : { cpuMilli: Math.min(a.cpuMilli, b.cpuMilli), memoryBytes: Math.min(a.memoryBytes, b.memoryBytes) };
