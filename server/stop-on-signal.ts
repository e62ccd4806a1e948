import type { Logger } from "#server/log.ts";

/** An end that takes longer is given up: the process must not stay because of something that hangs. */
const STOP_MS = 5_000;

/** Ends the process on SIGTERM or SIGINT, after `stop` or after five seconds. */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  const end = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    log.info("stopping");
    setTimeout(() => process.exit(0), STOP_MS).unref();
    await stop();
    process.exit(0);
  };
  process.on("SIGTERM", () => void end());
  process.on("SIGINT", () => void end());
}
