/** When a workspace without activity is stopped. */
import type { WorkspaceRow } from "./load.ts";

/** Whoever presses "extend" moves the stop at most so far into the future. */
export const LONGEST_EXTENSION_SECONDS = 7 * 24 * 3600;

export type IdleLimits = {
  /** The workspace's own; null follows the team. */
  own: number | null;
  /** The team's; null follows the installation. */
  team: number | null;
  /** The installation's (SLUICE_WORKSPACE_IDLE_SECONDS); 0: never. */
  installation: number;
};

/** The limit that holds, seconds; null: never. A workspace's own limit is at most its team's. */
export function idleLimit({ own, team, installation }: IdleLimits): number | null {
  const most = team ?? (installation === 0 ? null : installation);
  if (own === null) return most;
  return most === null ? own : Math.min(own, most);
}

/** When it is stopped unless something happens before; null when it does not run or has no limit. */
export function stopTime(
  workspace: Pick<WorkspaceRow, "desired" | "observed" | "startedAt" | "lastActivityAt" | "keepUntil">,
  idleSeconds: number | null,
): Date | null {
  const { desired, observed, startedAt, lastActivityAt, keepUntil } = workspace;
  if (idleSeconds === null || desired !== "running" || observed !== "running") return null;
  const active = Math.max(startedAt?.getTime() ?? 0, lastActivityAt?.getTime() ?? 0);
  if (active === 0) return null;
  return new Date(Math.max(active + idleSeconds * 1000, keepUntil?.getTime() ?? 0));
}
