/**
 * Quotas and availability that differ by weekday and hour ("interactive by day, batch by night"), and additions that
 * end alone. Weeks are counted in UTC; a week begins on Monday at 00:00.
 */
import type { Kind } from "./types.ts";

const MINUTE = 60_000;
/** Minutes of a week. */
export const WEEK = 7 * 24 * 60;
/** 1970-01-01 was a Thursday: three days into its week. */
const EPOCH_MINUTE = 3 * 24 * 60;

/** A stretch of every week, minutes since Monday 00:00; `to` before `from` runs over the week's end. */
export type Window = { from: number; to: number };

/** In its window the quota is this one. */
export type QuotaWindow = Window & { guaranteedMilli: number; limitMilli: number };

/** In its window the type takes only this kind of work. */
export type KindWindow = Window & { kind: Kind };

/** An approved request for more: on top of the quota, until it ends alone. */
export type Addition = { guaranteedMilli: number; limitMilli: number; from: number; to: number };

export type Amounts = { guaranteedMilli: number; limitMilli: number };

/** A time for people: `2026-11-25 20:00 UTC`. */
export function inUtc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Minute of the week at a time. */
export function minuteOfWeek(at: number): number {
  const minute = (Math.floor(at / MINUTE) + EPOCH_MINUTE) % WEEK;
  return minute < 0 ? minute + WEEK : minute;
}

/** Whether a minute of the week lies in a window. */
export function within(window: Window, minute: number): boolean {
  if (window.from === window.to) return true;
  return window.from < window.to
    ? minute >= window.from && minute < window.to
    : minute >= window.from || minute < window.to;
}

/** The quota in force at a time: the first window that holds, or the plain quota, and every addition on top. */
export function quotaAt(
  plain: Amounts,
  windows: readonly QuotaWindow[],
  additions: readonly Addition[],
  at: number,
): Amounts {
  const minute = minuteOfWeek(at);
  const base = windows.find((window) => within(window, minute)) ?? plain;
  let { guaranteedMilli, limitMilli } = base;
  for (const addition of additions) {
    if (at < addition.from || at >= addition.to) continue;
    guaranteedMilli += addition.guaranteedMilli;
    limitMilli += addition.limitMilli;
  }
  return { guaranteedMilli, limitMilli: Math.max(limitMilli, guaranteedMilli) };
}

/** Which kinds the type takes at a time; when one is shut out, the next time at which that changes. */
export function kindsAt(windows: readonly KindWindow[], at: number): { kinds: Kind[]; nextAt?: number } {
  const kindsIn = (minute: number): Kind[] => {
    const held = windows.filter((window) => within(window, minute)).map((window) => window.kind);
    return held.length === 0 ? ["interactive", "batch"] : [...new Set(held)];
  };
  const minute = minuteOfWeek(at);
  const kinds = kindsIn(minute);
  if (kinds.length === 2) return { kinds };
  const start = Math.floor(at / MINUTE) * MINUTE;
  const changes = windows
    .flatMap((window) => [window.from, window.to])
    .map((edge) => (edge - minute + WEEK) % WEEK || WEEK);
  const next = changes
    .sort((a, b) => a - b)
    .find((ahead) => kindsIn((minute + ahead) % WEEK).some((kind) => !kinds.includes(kind)));
  return next === undefined ? { kinds } : { kinds, nextAt: start + next * MINUTE };
}

/** A minute of the week that lies in two of these windows, where it could not be said which of them holds. */
export function inTwo(windows: readonly Window[]): number | undefined {
  return windows.map(({ from }) => from).find((from) => windows.filter((window) => within(window, from)).length > 1);
}

/** Every minute of the week at which one of these windows begins or ends, and Monday 00:00. */
export function breakpoints(windows: readonly Window[]): number[] {
  return [...new Set([0, ...windows.flatMap((window) => [window.from % WEEK, window.to % WEEK])])].sort(
    (a, b) => a - b,
  );
}

/** The first time at or after `at` with this minute of the week. */
export function nextAtMinute(minute: number, at: number): number {
  const ahead = (minute - minuteOfWeek(at) + WEEK) % WEEK;
  return Math.floor(at / MINUTE) * MINUTE + ahead * MINUTE;
}
