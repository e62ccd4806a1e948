/** The log as demand that can be played again, and as what happened. Pure; every assumption is counted. */
import type { Demand, Fate, Record } from "#server/scheduler/simulate/demand.ts";
import type { Time } from "#server/scheduler/simulate/outcome.ts";
import type { Logged } from "./read-log.ts";

/** Who asks again within so long after giving up or being refused asked once. */
export const RETRY_MS = 15 * 60_000;
/** Their length is not what the person wanted: the pool ended them. */
const CUT_SHORT = new Set(["taken back", "server lost"]);

export type Assumed = { asked: number; carried: number; retries: number; lengthGuessed: number };

/** Requests in the order of their age, of one GPU type; `now` is when the log was read. */
export function demandOf(
  log: readonly Logged[],
  time: Time,
  now: number,
): { demands: Demand[]; assumed: Assumed; logged: Record } {
  const medians = mediansOf(log);
  const retryOf = retriesIn(log);
  const lengths = lengthsOf(log, retryOf, medians, now);
  const demands = log.map((row): Demand => {
    const length = lengths.get(row.id)?.ms ?? 0;
    const carried = row.createdAt < time.from;
    // What runs already has that much behind it.
    const behind = carried && row.grantedAt !== null && row.grantedAt < time.from ? time.from - row.grantedAt : 0;
    const earlier = retryOf.get(row.id);
    const { id, teamId, userId, milli, memoryBytes, rank, kind, maxDevices, needs, createdAt } = row;
    return {
      ...{ id, teamId, userId, milli, memoryBytes, rank, kind, maxDevices, createdAt },
      guaranteedOnly: row.guaranteedOnly === 1,
      ...(needs === null ? {} : { needs }),
      at: Math.max(createdAt, time.from),
      holdMs: Math.max(1, length - behind),
      lengthMs: Math.max(1, row.forSeconds * 1000 - behind),
      ...patienceOf(row),
      ...(earlier === undefined ? {} : { retryOf: earlier }),
      ...(carried ? { carried } : {}),
    };
  });
  const carried = demands.filter((demand) => demand.carried).length;
  return {
    demands,
    logged: happened(log, time, now),
    assumed: {
      asked: demands.length - carried,
      carried,
      retries: retryOf.size,
      lengthGuessed: [...lengths.values()].filter(({ guessed }) => guessed).length,
    },
  };
}

const gaveUp = ({ state }: Logged): boolean => state === "cancelled" || state === "expired";

/**
 * Who was granted waits for as long as it takes, to see how long that is; who gave up, as long as they did; who was
 * refused and now may wait, as long as they said.
 */
function patienceOf(row: Logged): { patienceMs?: number } {
  if (gaveUp(row)) return { patienceMs: Math.max(0, (row.decidedAt ?? row.waitUntil) - row.createdAt) };
  return row.state === "refused" ? { patienceMs: Math.max(0, row.waitUntil - row.createdAt) } : {};
}

/** A request → the one of the same process just before it that came to nothing. */
function retriesIn(log: readonly Logged[]): Map<string, string> {
  const latest = new Map<string, Logged>();
  const found = new Map<string, string>();
  for (const row of log) {
    const before = latest.get(row.owner);
    latest.set(row.owner, row);
    if (before === undefined || !(gaveUp(before) || before.state === "refused")) continue;
    if (row.createdAt - (before.decidedAt ?? before.createdAt) <= RETRY_MS) found.set(row.id, before.id);
  }
  return found;
}

/** How long each would hold what it gets: what the log says; else what it got when it asked again; else the median. */
function lengthsOf(
  log: readonly Logged[],
  retryOf: ReadonlyMap<string, string>,
  medians: { of: (row: Logged) => number },
  now: number,
): Map<string, { ms: number; guessed: boolean }> {
  const lengths = new Map<string, { ms: number; guessed: boolean }>();
  const later = new Map<string, { ms: number; guessed: boolean }>();
  for (const row of [...log].reverse()) {
    const length = lengthOf(row, later.get(row.id), medians.of(row), now);
    lengths.set(row.id, length);
    const earlier = retryOf.get(row.id);
    if (earlier !== undefined) later.set(earlier, length);
  }
  return lengths;
}

function lengthOf(row: Logged, later: { ms: number; guessed: boolean } | undefined, median: number, now: number) {
  const most = row.forSeconds * 1000;
  if (row.grantedAt === null) return later ?? { ms: Math.min(median, most), guessed: true };
  const held = (row.endedAt ?? now) - row.grantedAt;
  if (row.endedAt !== null && !CUT_SHORT.has(row.endReason ?? "")) return { ms: held, guessed: false };
  return { ms: Math.max(held, Math.min(median, most)), guessed: true };
}

/** Of leases that ran as long as their people wanted: the team's, else everybody's, else what was asked for. */
function mediansOf(log: readonly Logged[]): { of: (row: Logged) => number } {
  const byTeam = new Map<string, number[]>();
  const all: number[] = [];
  for (const { teamId, grantedAt, endedAt, endReason } of log) {
    if (grantedAt === null || endedAt === null || CUT_SHORT.has(endReason ?? "")) continue;
    byTeam.set(teamId, [...(byTeam.get(teamId) ?? []), endedAt - grantedAt]);
    all.push(endedAt - grantedAt);
  }
  const middle = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  const teams = new Map([...byTeam].map(([teamId, values]) => [teamId, middle(values)] as const));
  const everybody = middle(all);
  return { of: ({ teamId, forSeconds }) => teams.get(teamId) ?? everybody ?? forSeconds * 1000 };
}

/** What the log itself says, counted as a replay counts. Who waits still is left out: nobody knows until when. */
function happened(log: readonly Logged[], time: Time, now: number): Record {
  const counted = log.filter((row) => row.createdAt >= time.from && row.state !== "queued");
  const fates = counted.map((row): Fate => {
    const { teamId, milli, createdAt, decidedAt, grantedAt, state } = row;
    const how = state === "granted" ? "granted" : state === "refused" ? "refused" : "gave up";
    return { teamId, milli, from: createdAt, to: grantedAt ?? decidedAt ?? createdAt, how };
  });
  const held = log.flatMap(({ teamId, heldMilli, grantedAt, endedAt }) =>
    grantedAt === null ? [] : [{ teamId, milli: heldMilli ?? 0, from: grantedAt, to: endedAt ?? now }],
  );
  const reclaimed = log.filter(
    ({ endReason, endedAt }) => endReason === "taken back" && endedAt !== null && endedAt >= time.from,
  );
  return { fates, held, reclaimed: reclaimed.length, endedAt: now };
}
