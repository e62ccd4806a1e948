/** When a reservation is: once, or every week at the same times of day. */
import type { Repetition } from "#server/contracts/sharing.ts";
import { clockIn, weeksAfter } from "#server/contracts/time-zone.ts";
import { SluiceError } from "#server/errors.ts";

export type Occurrence = { startsAt: Date; endsAt: Date };

/** Half a year. */
const MOST = 26;

/**
 * The times of a reservation, the first one as it was asked for. Of a repeated one the zone's clocks show the same times
 * of day every week until its last date. Refused (`invalid`) when they are too many, or not one after the other.
 */
export function occurrencesOf(
  first: Occurrence,
  repeat: Repetition | undefined,
): [first: Occurrence, ...following: Occurrence[]] {
  if (repeat === undefined) return [first];
  const { until, timeZone } = repeat;
  const dateOf = (at: Date) => clockIn(timeZone, at.getTime()).slice(0, 10);
  const after = (at: Date, weeks: number) => new Date(weeksAfter(timeZone, at.getTime(), weeks));
  if (until < dateOf(first.startsAt)) {
    throw new SluiceError("invalid", "repeat.until: The last date is before the first one. Choose a later one.");
  }
  if (dateOf(after(first.startsAt, MOST)) <= until) {
    const last = dateOf(after(first.startsAt, MOST - 1));
    throw new SluiceError(
      "invalid",
      `repeat.until: At most ${MOST} weeks at once: until ${last}, and anew after that.`,
    );
  }
  const following: Occurrence[] = [];
  let before = first;
  for (let weeks = 1; dateOf(after(first.startsAt, weeks)) <= until; weeks++) {
    const next = { startsAt: after(first.startsAt, weeks), endsAt: after(first.endsAt, weeks) };
    if (next.startsAt < before.endsAt) {
      throw new SluiceError(
        "invalid",
        `endsAt: It would last into the next one, on ${dateOf(next.startsAt)}. End it within a week, or reserve it once.`,
      );
    }
    if (next.endsAt <= next.startsAt) {
      throw new SluiceError(
        "invalid",
        `repeat.until: On ${dateOf(next.startsAt)} the clocks of ${timeZone} skip this time. End before it, and reserve anew after it.`,
      );
    }
    following.push(next);
    before = next;
  }
  return [first, ...following];
}
