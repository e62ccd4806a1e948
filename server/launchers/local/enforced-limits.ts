import type { EnforcedLimits } from "#server/launchers/launcher.ts";
import type { ControlGroups } from "./control-groups.ts";
import { countsTasks, type SandboxMode } from "./sandbox.ts";

type Host = { groups: ControlGroups | { missing: string }; mode: SandboxMode | undefined; isWatching: boolean };

/** Which limits this host enforces for local workspaces, and by what. */
export function enforcedLimits({ groups, mode, isWatching }: Host): EnforcedLimits {
  const files =
    mode === undefined
      ? "/tmp and /dev/shm are those of the host, without a limit"
      : "/tmp and /dev/shm by file systems of a fixed size";
  if ("folder" in groups) {
    return {
      by: "control-group",
      sentence: `Memory, processes and processor time are limited by control groups (cgroup v2), ${files}. File size is measured, not limited.`,
    };
  }
  if (!isWatching)
    return { by: "none", sentence: `Memory and files have no limit until the broker watches them, ${files}.` };
  const tasks =
    mode !== undefined && countsTasks(mode)
      ? "processes by a resource limit (RLIMIT_NPROC) and memory by a watch"
      : "processes and memory by a watch";
  return {
    by: "watch",
    sentence: `${tasks.charAt(0).toUpperCase()}${tasks.slice(1)} every second, ${files}. Processor time has a lower priority and no limit. File size is measured, not limited. Why no control groups: ${groups.missing}.`,
  };
}
