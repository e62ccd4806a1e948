/** The log of a workspace's processes: a file of limited size, written outside the workspace. */
import path from "node:path";

const PROGRAM = path.join(import.meta.dirname, "bounded-log.py");

/** Maximum size of a log. Above it, the last half stays. */
export const MAX_LOG_BYTES = 1024 * 1024;

/**
 * Runs `command` with its output in the log. Its standard output must be the log: a file that is opened with "w+".
 * `python` runs on the host, with the rights of the installation.
 */
export function withBoundedLog(python: string, command: string[], maxBytes: number = MAX_LOG_BYTES): string[] {
  return [python, "-I", "-S", PROGRAM, String(maxBytes), ...command];
}
