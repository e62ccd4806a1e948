/**
 * Traces of requests: read from CSV, and generated as people make them. Interactive sessions come by day, hold a GPU
 * while their person thinks, and end; batch jobs come at any hour, most of them in the evening.
 */
import type { Kind } from "../types.ts";

/** One request of a trace. Times are seconds since the trace began. */
export type Asked = { at: number; team: string; person: string; milli: number; kind: Kind; holdSeconds: number };

const HEADER = "at_s,team,person,milli,kind,hold_s";
const DAY = 86_400;

export function formatTrace(trace: readonly Asked[]): string {
  const lines = trace.map(({ at, team, person, milli, kind, holdSeconds }) =>
    [at, team, person, milli, kind, holdSeconds].join(","),
  );
  return `${[HEADER, ...lines].join("\n")}\n`;
}

/** Reads a trace; what is not one is an error that names the line. */
export function parseTrace(text: string): Asked[] {
  const [header, ...lines] = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  if (header?.trim() !== HEADER) throw new Error(`A trace begins with the line ${HEADER}`);
  return lines
    .map((line, index): Asked => {
      const [at, team, person, milli, kind, hold] = line.split(",").map((cell) => cell.trim());
      const numbers = [at, milli, hold].map(Number);
      const whole = numbers.every((value) => Number.isSafeInteger(value) && value >= 0);
      if (!whole || !team || !person || (kind !== "interactive" && kind !== "batch") || numbers[1] === 0) {
        throw new Error(`Line ${index + 2} of the trace is not a request: ${line}`);
      }
      return { at: numbers[0] ?? 0, team, person, milli: numbers[1] ?? 0, kind, holdSeconds: numbers[2] ?? 0 };
    })
    .sort((a, b) => a.at - b.at);
}

export type TraceOptions = { seed: number; days: number; teams: number; peoplePerTeam: number };

/** A realistic trace; the same seed makes the same trace. */
export function generateTrace({ seed, days, teams, peoplePerTeam }: TraceOptions): Asked[] {
  const random = mulberry32(seed);
  const trace: Asked[] = [];
  for (let team = 0; team < teams; team++) {
    for (let person = 0; person < peoplePerTeam; person++) {
      const who = { team: `team-${team}`, person: `person-${team}-${person}` };
      for (let day = 0; day < days; day++) {
        const weekend = day % 7 >= 5;
        if (random() < (weekend ? 0.15 : 0.8)) trace.push(...dayOfWork(who, day, random));
        if (random() < (weekend ? 0.1 : 0.3)) trace.push(...eveningOfJobs(who, day, random));
      }
    }
  }
  return trace.sort((a, b) => a.at - b.at || (a.person < b.person ? -1 : 1));
}

type Who = { team: string; person: string };

/** Sessions between nine and six, with breaks for thinking, lunch and other people. */
function dayOfWork(who: Who, day: number, random: () => number): Asked[] {
  const asked: Asked[] = [];
  let at = day * DAY + Math.floor((9 + normal(random) * 0.75) * 3600);
  const end = day * DAY + Math.floor((17.5 + normal(random)) * 3600);
  while (at < end) {
    const holdSeconds = Math.max(120, Math.floor(Math.exp(Math.log(2_400) + normal(random) * 0.9)));
    const milli = pick(random, [250, 500, 500, 500, 1000]);
    asked.push({ ...who, at: Math.max(0, at), milli, kind: "interactive", holdSeconds });
    // Think time: most pauses are short, a few are long.
    at += holdSeconds + Math.floor(Math.exp(Math.log(1_200) + normal(random)));
  }
  return asked;
}

/** Jobs that are sent off before going home: hours long, whole GPUs, some of several. */
function eveningOfJobs(who: Who, day: number, random: () => number): Asked[] {
  const at = day * DAY + Math.floor((17 + normal(random) * 2) * 3600);
  const jobs = 1 + Math.floor(random() * 3);
  return Array.from({ length: jobs }, (_, index) => ({
    ...who,
    at: Math.max(0, at + index * 20),
    milli: pick(random, [1000, 1000, 1000, 2000, 4000]),
    kind: "batch" as const,
    holdSeconds: Math.max(600, Math.floor(Math.exp(Math.log(3 * 3_600) + normal(random) * 0.7))),
  }));
}

const pick = (random: () => number, from: readonly number[]): number =>
  from[Math.floor(random() * from.length)] ?? 1000;

/** A number of the standard normal distribution (Box and Muller). */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** A small generator of pseudo-random numbers that is the same everywhere. */
export function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
