/**
 * How far a zone's clocks are ahead of UTC, for whoever asks for many instants: to ask for one takes microseconds, a team
 * and a window each would take one. A day (UTC) is asked about once; no zone changes its clocks twice within one.
 */
import { remembered } from "./remembered.ts";
import { aheadOf } from "./time-zone.ts";

const SECOND = 1000;
const DAY = 86_400_000;

/** How far ahead, in milliseconds, from the day's beginning on, and from the change on where there is one. */
type Day = { ahead: number; change?: { at: number; ahead: number } };

const daysOf = remembered(16, (zone) => remembered(1024, (day) => dayIn(zone, Number(day) * DAY)));

function dayIn(zone: string, from: number): Day {
  const [ahead, after] = [aheadOf(zone, from), aheadOf(zone, from + DAY)];
  if (ahead === after) return { ahead };
  let [before, at] = [from, from + DAY];
  while (at - before > SECOND) {
    const between = before + Math.floor((at - before) / SECOND / 2) * SECOND;
    if (aheadOf(zone, between) === ahead) before = between;
    else at = between;
  }
  return { ahead, change: { at, ahead: after } };
}

const dayAt = (zone: string, at: number) => daysOf(zone)(String(Math.floor(at / DAY)));

/** How far a zone's clocks are ahead of UTC at an instant, in milliseconds. */
export function aheadAt(zone: string, at: number): number {
  if (zone === "UTC") return 0;
  const { ahead, change } = dayAt(zone, at);
  return change !== undefined && at >= change.at ? change.ahead : ahead;
}

/** The instants after `from` and before `to` at which a zone's clocks are put forward or back. */
export function changesBetween(zone: string, from: number, to: number): number[] {
  if (zone === "UTC") return [];
  const changes: number[] = [];
  for (let day = Math.floor(from / DAY) * DAY; day < to; day += DAY) {
    const { change } = dayAt(zone, day);
    if (change !== undefined && change.at > from && change.at < to) changes.push(change.at);
  }
  return changes;
}
