/** How long a request will wait, as far as the ends of leases tell. */
import { likelyEnd } from "./hold.ts";
import { evaluate, evaluateQueue } from "./queue.ts";
import type { Holding, Obstacle, Placement, Verdict, Waiting, World } from "./types.ts";

/** No estimate looks further than this many ends of leases. */
const STEPS = 60;
/** A long queue or a large pool is not played through: this many leases and requests are looked at altogether. */
const LOOKED_AT = 6_000;

export type Estimate = {
  /** Seconds until the grant: likely, and between which bounds. */
  likely: number;
  low: number;
  high: number;
  /**
   * If `likely` is the time limit of a busy lease: seconds until its idle limit, if it is idle from now. Pages then
   * show both times.
   */
  soonest?: number;
  basis: "room is being made" | "the calendar" | "end times and idle limits" | "the rate at which leases end";
};

/** So many of a queue that is shown whole are estimated; for one behind them its explanation tells. */
export const ESTIMATED = 50;

/**
 * When the request will be granted if nobody else comes; nothing when no end of a lease leads there (a server is away,
 * for example). `verdicts` are those of this world, when the caller has them already.
 */
export function estimate(requestId: string, world: World, verdicts?: readonly Verdict[]): Estimate | undefined {
  return estimates([requestId], world, verdicts ?? evaluateQueue(world)).get(requestId);
}

/** The same for several, who are played through together: it takes little longer than for the last of them. */
export function estimates(
  requestIds: Iterable<string>,
  world: World,
  verdicts: readonly Verdict[],
): Map<string, Estimate> {
  const found = new Map<string, Estimate>();
  const played = new Set<string>();
  const wanted = new Set(requestIds);
  for (const own of verdicts) {
    const { requestId, state } = own;
    if (state === "refused" || !wanted.has(requestId)) continue;
    const told = state === "granted" ? bounded(world.now, world, 0) : byObstacle(own.obstacle, world);
    if (told === "play") played.add(requestId);
    else if (told !== undefined) found.set(requestId, told);
  }
  // Ends of leases are no basis where no lease is held or about to be granted.
  const hasLeases = world.holdings.length > 0 || verdicts.some(({ state }) => state === "granted");
  if (played.size === 0 || !hasLeases) return found;
  const deciding = verdictsThatDecide(played, verdicts);
  const last = deciding.at(-1);
  const ahead = last?.state === "queued" ? last.position : 1;
  const steps = Math.min(STEPS, Math.floor(LOOKED_AT / (world.holdings.length + world.devices.length + ahead)));
  const add = (guesses: ReadonlyMap<string, Estimate>) => {
    for (const [requestId, guess] of guesses) {
      found.set(requestId, guess);
      played.delete(requestId);
    }
  };
  // The first step is the moment of the verdicts, which tell of it already.
  if (steps > 1) add(byPlaying(played, world, deciding, steps));
  if (steps < STEPS && played.size > 0) add(byRate(played, world, verdicts));
  return found;
}

/** What the obstacle itself tells: nothing may be the answer, too. */
function byObstacle(obstacle: Obstacle, world: World): Estimate | undefined | "play" {
  if (obstacle.rule === "reclaim") {
    const seconds = secondsUntil(obstacle.releaseAt, world.now);
    return { likely: seconds, low: 0, high: seconds + 30, basis: "room is being made" };
  }
  if (obstacle.rule === "calendar") {
    if (obstacle.opensAt === undefined) return undefined;
    const seconds = secondsUntil(obstacle.opensAt, world.now);
    return { likely: seconds, low: seconds, high: 2 * seconds, basis: "the calendar" };
  }
  if ((obstacle.rule === "team-limit" || obstacle.rule === "guaranteed") && obstacle.more !== undefined) {
    const seconds = secondsUntil(obstacle.more.at, world.now);
    return { likely: seconds, low: seconds, high: 2 * seconds, basis: "the calendar" };
  }
  // No end of a lease leads out of these.
  if (obstacle.rule === "stopped" || obstacle.rule === "no-server") return undefined;
  if (obstacle.rule === "pinned" && obstacle.why !== "busy") return undefined;
  // The device on which it will fit first is kept for it.
  if (obstacle.rule === "free-device" && obstacle.likelyAt !== undefined) return bounded(obstacle.likelyAt, world, 1);
  return "play";
}

/** Likely seconds until the grant. */
export function estimateWait(requestId: string, world: World): number | undefined {
  return estimate(requestId, world)?.likely;
}

const secondsUntil = (at: number, now: number): number => Math.max(0, Math.ceil((at - now) / 1000));

function endOf(holding: Holding, world: World): number {
  const end = likelyEnd(holding, world.quotas.get(holding.teamId)?.idleMs, world.now);
  return Math.min(end, holding.notice?.releaseAt ?? end);
}

/**
 * The verdicts that decide about the wanted requests: everything up to the last wanted one, and up to the requests that
 * those wait behind. A claim may wait behind a request of its team that is judged later, with the surplus.
 */
function verdictsThatDecide(wanted: ReadonlySet<string>, judged: readonly Verdict[]): readonly Verdict[] {
  let last = judged.findLastIndex((verdict) => wanted.has(verdict.requestId));
  const indexOf = new Map(judged.map((verdict, index) => [verdict.requestId, index]));
  for (let index = 0; index <= last; index++) {
    const verdict = judged[index];
    if (verdict?.state !== "queued" || verdict.obstacle.rule !== "order") continue;
    last = Math.max(last, indexOf.get(verdict.obstacle.behind) ?? 0);
  }
  return judged.slice(0, last + 1);
}

/** Plays on: leases end when they likely do, and who comes first is granted. Whom that does not reach is left out. */
function byPlaying(
  wanted: ReadonlySet<string>,
  world: World,
  deciding: readonly Verdict[],
  steps: number,
): Map<string, Estimate> {
  const ahead = new Set(deciding.map((verdict) => verdict.requestId));
  const found = new Map<string, Estimate>();
  const open = new Set(wanted);
  // The rest of the queue does not delay the wanted requests, and need not be judged at every step.
  let queue = world.queue.filter((waiting) => ahead.has(waiting.requestId));
  const requestOf = new Map(queue.map((waiting) => [waiting.requestId, waiting]));
  let ends = world.holdings.map((holding) => ({ holding, at: endOf(holding, world) }));
  let at = world.now;
  for (let step = 0; step < steps && open.size > 0; step++) {
    const holdings = ends.map((one) => one.holding);
    const decided = new Set<string>();
    for (const verdict of evaluate({ ...world, now: at, holdings, queue }).verdicts) {
      if (verdict.state === "queued") continue;
      decided.add(verdict.requestId);
      if (open.delete(verdict.requestId) && verdict.state === "granted") {
        found.set(verdict.requestId, bounded(at, world, step));
      }
      const request = requestOf.get(verdict.requestId);
      if (verdict.state === "granted" && request) {
        ends.push(...piecesOf(request, verdict.placement, at).map((holding) => ({ holding, at: holding.expiresAt })));
      }
    }
    queue = queue.filter((waiting) => !decided.has(waiting.requestId));
    if (ends.length === 0) break;
    at = Math.max(
      at,
      ends.reduce((least, one) => Math.min(least, one.at), Number.POSITIVE_INFINITY),
    );
    ends = ends.filter((one) => one.at > at);
  }
  return found;
}

function bounded(at: number, world: World, steps: number): Estimate {
  const likely = secondsUntil(at, world.now);
  const soonest = soonestIdleEnd(at, world);
  // Leases may end early at any time, and each that has to end first may be extended.
  return {
    likely,
    low: Math.min(Math.floor(likely / 2), soonest ?? likely),
    ...(soonest === undefined ? {} : { soonest }),
    high: likely * (steps > 1 ? 2 : 1) + 60,
    basis: "end times and idle limits",
  };
}

/** Seconds until the idle limit of the lease that ends at `at`; undefined if that end is its idle limit. */
function soonestIdleEnd(at: number, world: World): number | undefined {
  let soonest: number | undefined;
  for (const holding of world.holdings) {
    const idleMs = world.quotas.get(holding.teamId)?.idleMs;
    if (idleMs === undefined || endOf(holding, world) !== at) continue;
    const idleEnd = Math.max(world.now, holding.lastWorkAt + idleMs);
    if (idleEnd < at) soonest = Math.min(soonest ?? Number.POSITIVE_INFINITY, secondsUntil(idleEnd, world.now));
  }
  return soonest;
}

/** Far back in a long queue: what waits ahead of each, against what ends. */
function byRate(wanted: ReadonlySet<string>, world: World, judged: readonly Verdict[]): Map<string, Estimate> {
  const found = new Map<string, Estimate>();
  const capacity = world.devices.filter((device) => device.state === "open").length * 1000;
  if (capacity === 0) return found;
  const requests = askedIn(world.queue);
  const ends = world.holdings.map((holding) => ({ at: endOf(holding, world), milli: holding.milli }));
  ends.sort((a, b) => a.at - b.at);
  let [needed, lengths, freed, ended, at] = [0, 0, 0, 0, world.now];
  for (const verdict of judged) {
    const request = requests.get(verdict.requestId);
    if (verdict.state !== "queued" || request === undefined) continue;
    needed += request.milli;
    lengths += request.lengthMs * request.milli;
    for (let end = ends[ended]; end !== undefined && freed < needed; end = ends[ended]) {
      freed += end.milli;
      at = Math.max(at, end.at);
      ended += 1;
    }
    if (!wanted.has(verdict.requestId)) continue;
    // What is beyond one turn of the pool waits for those who come before it.
    const turns = Math.max(0, needed - freed) / capacity;
    const likely = secondsUntil(at + Math.ceil(turns * (lengths / needed)), world.now);
    const bounds = { low: Math.floor(likely / 4), high: likely * 2 + 60 };
    found.set(verdict.requestId, { likely, ...bounds, basis: "the rate at which leases end" });
    if (found.size === wanted.size) break;
  }
  return found;
}

const known = new WeakMap<readonly Waiting[], ReadonlyMap<string, Waiting>>();

/** Requests by id. Found out once for each queue, which nobody changes: many ask about a long one. */
function askedIn(queue: readonly Waiting[]): ReadonlyMap<string, Waiting> {
  const found = known.get(queue) ?? new Map(queue.map((waiting) => [waiting.requestId, waiting]));
  known.set(queue, found);
  return found;
}

function piecesOf(request: Waiting, placement: Placement, at: number): Holding[] {
  return placement.pieces.map((piece) => ({
    ...piece,
    leaseId: `${request.requestId}/${piece.gpuId}`,
    groupId: request.requestId,
    teamId: request.teamId,
    userId: request.userId,
    borrowed: placement.borrowed,
    grantedAt: at,
    expiresAt: at + request.lengthMs,
    who: request.who,
    lastWorkAt: at,
  }));
}
