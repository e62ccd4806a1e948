/** What trees of processes use, from /proc: one walk for all of them. */
import { readdir, readFile } from "node:fs/promises";
import type { Usage } from "#server/launchers/launcher.ts";
import type { ProcessStart } from "./processes.ts";

/** Clock ticks of /proc/PID/stat: 100 a second on every Linux we know (USER_HZ). */
const MS_A_TICK = 10;

type Process = { pid: number; parent: number; startTime: number; cpuMs: number };

/** Usage of each process start with all its descendants; one that has ended is left out. */
export async function usageOfTrees<Key>(roots: ReadonlyMap<Key, ProcessStart>): Promise<Map<Key, Usage>> {
  const found = new Map<Key, Usage>();
  if (roots.size === 0) return found;
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const processes = (await Promise.all(names.map((name) => readProcess(Number(name))))).filter(
    (one) => one !== undefined,
  );
  const byPid = new Map(processes.map((one) => [one.pid, one]));
  const children = new Map<number, Process[]>();
  for (const one of processes) children.set(one.parent, [...(children.get(one.parent) ?? []), one]);
  for (const [key, root] of roots) {
    const first = byPid.get(root.pid);
    if (first?.startTime !== root.startTime) continue;
    const tree = [first];
    for (const one of tree) tree.push(...(children.get(one.pid) ?? []));
    const memory = await Promise.all(tree.map((one) => ownMemory(one.pid)));
    found.set(key, {
      cpuMs: tree.reduce((sum, one) => sum + one.cpuMs, 0),
      memoryBytes: memory.reduce((sum, bytes) => sum + bytes, 0),
    });
  }
  return found;
}

/** With the processor time of children that it has waited for, so that a tree's sum never shrinks. */
async function readProcess(pid: number): Promise<Process | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The second field is the program's name in parentheses and may hold anything, so fields count from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [parent, startTime] = [Number(fields[1]), Number(fields[19])];
  if (stat === "" || !Number.isFinite(startTime)) return undefined;
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { pid, parent, startTime, cpuMs: ticks * MS_A_TICK };
}

/** Anonymous and shared memory that is resident; mapped files are the system's to take back. */
async function ownMemory(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
  return (kib("RssAnon") + kib("RssShmem")) * 1024;
}
