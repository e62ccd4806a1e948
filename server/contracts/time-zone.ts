/** How instants read in a time zone, the same in what the API decides and on pages. Names are IANA's, such as `Europe/Berlin`. */
import { remembered } from "./remembered.ts";

/**
 * The canonical spelling of an IANA time zone: `europe/berlin` gives `Europe/Berlin`. Undefined for an unknown name,
 * and for an offset such as `+02:00`, which has no daylight saving time.
 */
export function zoneNamed(typed: string): string | undefined {
  if (!/^[A-Za-z]/.test(typed)) return undefined;
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: typed }).resolvedOptions();
    // A name that is an alias, such as Asia/Kolkata, stays as people know it, unless it is typed in another case.
    const isAlias = timeZone.toLowerCase() !== typed.toLowerCase();
    return isAlias && /^[A-Z]/.test(typed) ? typed : timeZone;
  } catch {
    return undefined;
  }
}

/** Whether a time zone of this name is known here. */
export const isZone = (zone: string): boolean => zoneNamed(zone) !== undefined;

/**
 * Making a format takes many times as long as using it. The server writes for people in any zone, whose names come from
 * their cookies in whatever spelling: as many are kept as people at one time have among them.
 */
const formatIn = remembered(
  64,
  (zone) =>
    new Intl.DateTimeFormat("en", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    }),
);

/** How far a zone's clocks are ahead of UTC at an instant, in milliseconds; for many of them ask `clocks.ts`. */
export function aheadOf(zone: string, at: number): number {
  if (zone === "UTC") return 0;
  const parts = Object.fromEntries(
    formatIn(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000;
}

/** An instant as a zone's clocks show it, without the zone: `2026-11-21T11:33:41`. */
export function clockIn(zone: string, at: number): string {
  return new Date(at + aheadOf(zone, at)).toISOString().slice(0, 19);
}

/** A zone as it is at an instant: `UTC`, `UTC+1`, `UTC-3:30`. */
export function offsetLabel(zone: string, at: number): string {
  const minutes = Math.round(aheadOf(zone, at) / 60_000);
  if (minutes === 0) return "UTC";
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? "-" : "+"}${hours}${rest === 0 ? "" : `:${String(rest).padStart(2, "0")}`}`;
}

/** The instant at which a zone's clocks show `shown`, milliseconds as if they were UTC; beside a change as `instantIn` has it. */
function instantOf(zone: string, shown: number): number {
  const [early, late] = [shown - aheadOf(zone, shown - DAY), shown - aheadOf(zone, shown + DAY)].sort((a, b) => a - b);
  const fits = [early, late].find((at) => at !== undefined && at + aheadOf(zone, at) === shown);
  return fits ?? late ?? shown;
}

/**
 * The instant at which a zone's clocks show `local`, as `<input type="datetime-local">` gives it. An hour that
 * clocks skip is read as the hour after it, and of an hour that they show twice the first is taken. What is no time
 * is given back as it is, for the API to refuse.
 */
export function instantIn(zone: string, local: string): string {
  const shown = Date.parse(`${local}Z`);
  return Math.abs(shown) < LAST ? new Date(instantOf(zone, shown)).toISOString() : local;
}

/** The instant so many weeks after `at` at which a zone's clocks show the same time of day. */
export function weeksAfter(zone: string, at: number, weeks: number): number {
  return instantOf(zone, at + aheadOf(zone, at) + weeks * 7 * DAY);
}

const DAY = 86_400_000;
/** A day within what a Date can hold. */
const LAST = 8.64e15 - 2 * DAY;
