/**
 * Quotas and availability that differ by weekday and hour ("interactive by day, batch by night"), and additions that
 * end alone. Weeks are counted by the clocks of a zone; a week begins on Monday at 00:00. A window holds while these
 * clocks show a minute of it: where they are put forward over its beginning it begins with the change, and where they are
 * put back, what they show twice holds twice.
 */
import { aheadAt, changesBetween } from "../contracts/clocks.ts";
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

/** How a quota differs over time; `plain` holds outside the windows, which count their weeks in `zone`. */
export type Calendar = {
  zone: string;
  plain: Amounts;
  windows: readonly QuotaWindow[];
  additions: readonly Addition[];
};

/** A time for people: `2026-11-25 20:00 UTC`. */
export function inUtc(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Minute of the week that a zone's clocks show. */
export function minuteOfWeek(zone: string, at: number): number {
  const minute = (Math.floor((at + aheadAt(zone, at)) / MINUTE) + EPOCH_MINUTE) % WEEK;
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
export function quotaAt({ zone, plain, windows, additions }: Calendar, at: number): Amounts {
  const minute = minuteOfWeek(zone, at);
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
export function kindsAt(zone: string, windows: readonly KindWindow[], at: number): { kinds: Kind[]; nextAt?: number } {
  const kindsThen = (then: number): Kind[] => {
    const minute = minuteOfWeek(zone, then);
    const held = windows.filter((window) => within(window, minute)).map((window) => window.kind);
    return held.length === 0 ? ["interactive", "batch"] : [...new Set(held)];
  };
  const kinds = kindsThen(at);
  if (kinds.length === 2) return { kinds };
  const nextAt = edgesAfter(zone, windows, at).find((then) => kindsThen(then).some((kind) => !kinds.includes(kind)));
  return nextAt === undefined ? { kinds } : { kinds, nextAt };
}

/** A minute of the week that lies in two of these windows, where it could not be said which of them holds. */
export function inTwo(windows: readonly Window[]): number | undefined {
  return windows.map(({ from }) => from).find((from) => windows.filter((window) => within(window, from)).length > 1);
}

/**
 * When what windows say may change after `at`, in order: for each minute at which one begins or ends the next time that
 * the zone's clocks show it, and each of the next two weeks at which they are put forward or back. Whatever the windows of
 * a zone say together at any time they say at one of these, or now.
 */
export function edgesAfter(zone: string, windows: readonly Window[], at: number): number[] {
  const minutes = [...new Set(windows.flatMap(({ from, to }) => [from % WEEK, to % WEEK]))];
  if (minutes.length === 0) return [];
  // A minute that is skipped comes a week later.
  const changes = changesBetween(zone, at, at + 2 * WEEK * MINUTE);
  const stretches = [at, ...changes].map((from, index) => {
    return { from, minute: minuteOfWeek(zone, from), to: changes[index] ?? Number.POSITIVE_INFINITY };
  });
  const shown = minutes.flatMap((edge) => {
    const times = stretches.map(({ from, minute, to }) => {
      const ahead = (edge - minute + WEEK) % WEEK || WEEK;
      return { shows: (Math.floor(from / MINUTE) + ahead) * MINUTE, to };
    });
    return times.find(({ shows, to }) => shows < to)?.shows ?? [];
  });
  return [...new Set([...shown, ...changes])].sort((a, b) => a - b);
}
