import { SluiceError } from "#server/errors.ts";

/**
 * Refuses an edit of what somebody else has changed since it was read. `seen` is the version that the editor looked at,
 * 0 for something that was not there yet; without one the last edit wins, as scripts may want it.
 */
export function refuseStale(seen: number | undefined, current: { version: number } | undefined, what: string): void {
  const version = current?.version ?? 0;
  if (seen === undefined || seen === version) return;
  throw changedMeanwhile(what, { version });
}

/** That somebody else has changed something since it was read; `now` is what tells the editor so. */
export function changedMeanwhile(what: string, now: Record<string, unknown>): SluiceError {
  return new SluiceError(
    "conflict",
    `Somebody else has changed ${what} meanwhile; nothing of yours is saved. Compare it with how it is now, then save again.`,
    now,
  );
}
