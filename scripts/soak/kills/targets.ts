/** The processes of an installation, by what they do: its own, those of its GPU servers, and those of its workspaces. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { type Process, type ProcessTable, readProcessTable, treeOf } from "#server/launchers/local/process-table.ts";
import type { ProcessStart } from "#server/launchers/local/processes.ts";

/** How the command line of each kind of process looks. The first that fits counts. */
const COMMANDS = {
  // Its arguments name what it starts.
  "workspace's first process": /^\S*sh \S*init\.sh /,
  broker: /server\/broker\/main\.ts/,
  gateway: /server\/gateway\/main\.ts/,
  egress: /server\/egress\/main\.ts/,
  // Next.js gives its process another name.
  portal: /server\/portal\/main\.ts|^next-server/,
  "gpud worker": /^\/proc\/self\/exe worker/,
  gpud: /release\/gpud /,
  PostgreSQL: /bin\/postgres -D/,
  "PostgreSQL's child": /^postgres: /,
  kernel: /ipykernel_launcher/,
  JupyterLab: /-m jupyterlab/,
  "workspace's way out": /egress-forward\.py/,
} satisfies Record<string, RegExp>;

export type Kind = keyof typeof COMMANDS;
export const KINDS = Object.keys(COMMANDS) as Kind[];

export type Target = Process & { kind: Kind };

/** `roots`: the processes whose descendants belong to the installation, beside its workspaces. */
export function findTargets(stateDir: string, roots: readonly number[]): Target[] {
  const table = readProcessTable();
  return allProcesses(table, stateDir, roots).flatMap((process) => {
    const command = commandOf(process.pid);
    const kind = KINDS.find((name) => COMMANDS[name].test(command));
    // What setpriv and the sandbox's programs run stands in their command line, too.
    return kind === undefined || /^\S*(?:setpriv|unshare|sh \S*sandbox\.sh) /.test(command)
      ? []
      : [{ ...process, kind }];
  });
}

/** The processes, oldest first. */
function allProcesses(table: ProcessTable, stateDir: string, roots: readonly number[]): Process[] {
  const starts = [...roots.flatMap((pid) => table.byPid.get(pid) ?? []), ...workspaceRoots(stateDir)];
  const found = new Map(starts.flatMap((start) => treeOf(table, start)).map((process) => [process.pid, process]));
  return [...found.values()].sort((a, b) => a.startTime - b.startTime || a.pid - b.pid);
}

/** Workspaces outlive the broker that started them; a file names the first process of each. */
function workspaceRoots(stateDir: string): ProcessStart[] {
  const folder = path.join(stateDir, "workspaces");
  return namesIn(folder).flatMap((id) => {
    try {
      return [JSON.parse(readFileSync(path.join(folder, id, "handle.json"), "utf8")) as ProcessStart];
    } catch {
      // It has never started, or has been stopped.
      return [];
    }
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}
