/** What a replay, or the log itself, says of a pool: waiting time, utilisation, fairness. */
import type { Fate, Record, Span } from "./demand.ts";

/** Seconds; null where nobody waited for anything. */
export type Waits = { waitP50: number | null; waitP95: number | null; waitP99: number | null };

export type Outcome = Waits & {
  granted: number;
  refused: number;
  gaveUp: number;
  reclaimed: number;
  /** GPU-hours inside the time that is looked at. */
  heldHours: number;
  /** Held of what the pool had in that time, 0 to 1. */
  utilisation: number;
  /** Jain's index of how promptly teams were served: 1 is equal, 1/n is all to one. */
  fairness: number;
};

export type Time = { from: number; to: number };

/** Of a pool of so many GPUs over a stretch of time; what was held before and behind it is left out. */
export function outcomeOf(record: Record, gpus: number, time: Time): Outcome {
  const heldHours = hoursOf(record.held, time);
  const capacity = (gpus * (time.to - time.from)) / 3_600_000;
  return {
    ...waitsOf(record.fates),
    ...countsOf(record.fates),
    reclaimed: record.reclaimed,
    heldHours,
    utilisation: capacity === 0 ? 0 : heldHours / capacity,
    fairness: jain(servedOf(record)),
  };
}

/**
 * Everybody who asked counts: who was granted, until then; who gave up, until they left. Otherwise a pool that serves
 * the impatient, too, would seem to make people wait longer.
 */
export function waitsOf(fates: readonly Fate[]): Waits {
  const waits = fates.filter(({ how }) => how !== "refused").map(({ from, to }) => (to - from) / 1000);
  waits.sort((a, b) => a - b);
  const at = (part: number) => waits[Math.min(waits.length - 1, Math.floor(waits.length * part))] ?? null;
  return { waitP50: at(0.5), waitP95: at(0.95), waitP99: at(0.99) };
}

export function countsOf(fates: readonly Fate[]): Pick<Outcome, "granted" | "refused" | "gaveUp"> {
  const count = (how: Fate["how"]) => fates.filter((fate) => fate.how === how).length;
  return { granted: count("granted"), refused: count("refused"), gaveUp: count("gave up") };
}

/** GPU-hours of these inside a stretch of time. */
export function hoursOf(spans: readonly Pick<Span, "milli" | "from" | "to">[], time: Time): number {
  return spans.reduce((sum, { milli, from, to }) => {
    const ms = Math.min(to, time.to) - Math.max(from, time.from);
    return ms > 0 ? sum + (milli / 1000) * (ms / 3_600_000) : sum;
  }, 0);
}

/** GPUs on average in each of `count` equal stretches of a time. */
export function averages(spans: readonly Pick<Span, "milli" | "from" | "to">[], time: Time, count: number): number[] {
  const width = (time.to - time.from) / count;
  const bins = new Array<number>(count).fill(0);
  for (const { milli, from, to } of spans) {
    const first = Math.max(0, Math.floor((from - time.from) / width));
    const last = Math.min(count - 1, Math.floor((to - time.from) / width));
    for (let bin = first; bin <= last; bin++) {
      const start = time.from + bin * width;
      const ms = Math.min(to, start + width) - Math.max(from, start);
      if (ms > 0) bins[bin] = (bins[bin] ?? 0) + ((milli / 1000) * ms) / width;
    }
  }
  return bins;
}

/** How promptly each team was served: the time that it held, against that time and its waiting together. */
function servedOf({ fates, held }: Record): number[] {
  const teams = new Map<string, { held: number; waited: number }>();
  const of = (teamId: string) => {
    const known = teams.get(teamId) ?? { held: 0, waited: 0 };
    teams.set(teamId, known);
    return known;
  };
  for (const { teamId, from, to } of fates) of(teamId).waited += to - from;
  for (const { teamId, from, to } of held) of(teamId).held += to - from;
  return [...teams.values()].map(({ held, waited }) => (held + waited === 0 ? 1 : held / (held + waited)));
}

/** Jain, Chiu and Hawe, "A quantitative measure of fairness", 1984. */
export function jain(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  const squares = values.reduce((total, value) => total + value * value, 0);
  return squares === 0 ? 1 : (sum * sum) / (values.length * squares);
}
