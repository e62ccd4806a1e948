/** Processes of this machine from /proc, read synchronously: one small read a process, without a thread switch. */
import { readdirSync, readFileSync } from "node:fs";
import type { ProcessStart } from "./processes.ts";

/** Clock ticks of /proc/PID/stat: 100 a second on every Linux we know (USER_HZ). */
const MS_A_TICK = 10;

/** `state` is the letter of proc_pid_stat(5): T for stopped, Z for ended. */
export type Process = ProcessStart & { parent: number; state: string; cpuMs: number; threads: number };

export type ProcessTable = { byPid: Map<number, Process>; children: Map<number, Process[]> };

export function readProcessTable(): ProcessTable {
  const table: ProcessTable = { byPid: new Map(), children: new Map() };
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const one = readProcess(Number(name));
    if (one === undefined) continue;
    table.byPid.set(one.pid, one);
    const siblings = table.children.get(one.parent);
    if (siblings === undefined) table.children.set(one.parent, [one]);
    else siblings.push(one);
  }
  return table;
}

/** A process start with all its descendants, itself first; empty when it has ended. */
export function treeOf({ byPid, children }: ProcessTable, root: ProcessStart): Process[] {
  const first = byPid.get(root.pid);
  if (first?.startTime !== root.startTime) return [];
  const tree = [first];
  for (const one of tree) tree.push(...(children.get(one.pid) ?? []));
  return tree;
}

/** Processor time includes that of children waited for, so that the sum of a tree never shrinks. */
function readProcess(pid: number): Process | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses and may hold anything, so fields count from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [parent, threads, startTime] = [Number(fields[1]), Number(fields[17]), Number(fields[19])];
  if (stat === "" || !Number.isFinite(startTime)) return undefined;
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { pid, parent, state: fields[0] ?? "", startTime, threads, cpuMs: ticks * MS_A_TICK };
}

/** The text of /proc/PID/status, which every process may read; empty when the process has ended. */
export function statusOf(pid: number): string {
  return readText(`/proc/${pid}/status`);
}

/** Anonymous and shared memory that is resident, in bytes; mapped files are the system's to take back. */
export function residentBytes(pid: number): number {
  return kibOf(statusOf(pid), ["RssAnon", "RssShmem"]) * 1024;
}

/** Like `residentBytes`, with memory in swap. Pages that processes share count in each of them. */
export function chargedBytes(pid: number): number {
  return kibOf(statusOf(pid), ["RssAnon", "RssShmem", "VmSwap"]) * 1024;
}

/** Sum of the named fields in a file of lines `Name:  number kB`. */
export function kibOf(text: string, names: readonly string[]): number {
  let sum = 0;
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (names.includes(line.slice(0, colon))) sum += Number.parseInt(line.slice(colon + 1), 10);
  }
  return sum;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
}
