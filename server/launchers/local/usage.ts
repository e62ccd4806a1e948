/** Usage of process trees: one walk of /proc for all of them. */
import type { Usage } from "#server/launchers/launcher.ts";
import { readProcessTable, residentBytes, treeOf } from "./process-table.ts";
import type { ProcessStart } from "./processes.ts";

/** Usage of each process start with all its descendants; one that has ended is left out. */
export function usageOfTrees<Key>(roots: ReadonlyMap<Key, ProcessStart>): Map<Key, Usage> {
  const found = new Map<Key, Usage>();
  if (roots.size === 0) return found;
  const table = readProcessTable();
  for (const [key, root] of roots) {
    const tree = treeOf(table, root);
    if (tree.length === 0) continue;
    found.set(key, {
      cpuMs: tree.reduce((sum, one) => sum + one.cpuMs, 0),
      memoryBytes: tree.reduce((sum, one) => sum + residentBytes(one.pid), 0),
    });
  }
  return found;
}
