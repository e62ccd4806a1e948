/**
 * What has to be taken back so that a team gets what it is guaranteed. Only leases of other teams, only such as lie
 * outside their team's guarantee and may be interrupted. A plan that does not make the request fit is no plan, so
 * nobody is disturbed for nothing.
 */
import { mayJoin } from "./allowed.ts";
import type { ByDevice, Leaving } from "./hold.ts";
import { type Asker, type Candidate, closest, devicesOf, mayLie, pieceOn } from "./placement.ts";
import { reservationIdOf } from "./reservation.ts";
import { admits, isKeptForOthers, type Room, spareFor } from "./room.ts";
import type { Lease } from "./share.ts";
import { groupOf } from "./share.ts";
import type { Holding, Notice, Piece, Policy, Waiting } from "./types.ts";

/** What a plan may choose from. */
export type Reclaimable = {
  leases: ByDevice;
  /** Leases outside their team's guarantee, by id. */
  outside: ReadonlyMap<string, Lease>;
  /** Lease → the request it is taken for already, in this round or in one before. */
  takenFor: ReadonlyMap<string, string>;
  /** Lease → the reservation for which it is known to go. */
  reserved: ReadonlyMap<string, string>;
} & Releases;

/** What decides when a lease that is taken back is released. */
export type Releases = {
  now: number;
  /** The times that hold for a team's leases. */
  timesOf: (teamId: string) => Policy;
  /** It lies inside its team's guarantee until then. */
  notBefore: (leaseId: string) => number;
};

/** For one request: who is known to go for it. */
type Making = Reclaimable & { told: ReadonlySet<string> };

/** Devices, who leaves each of them, and when the last has left. */
export type Plan = { pieces: ({ room: Room } & Leaving)[]; leaseIds: string[]; releaseAt: number };

/** `cost` is what others lose, thousandths. */
type Part = { room: Room; leaving: Leaving; taken: Lease[]; cost: number };

/** Less than any lease: of equally dear devices those are chosen that are kept already, so that a plan stays. */
const CHANGE = 1 / 1024;

/** The plan that takes least from others; nothing when none makes the request fit. */
export function planReclaim(asker: Asker, rooms: readonly Room[], from: Reclaimable): Plan | undefined {
  const parts = new Map<Room, Part>();
  const making = { ...from, told: toldFor(asker.request, from) };
  const count = devicesOf(asker.request);
  let least = Number.POSITIVE_INFINITY;
  for (const room of rooms) {
    const part = partOn(asker, room, making, count === 1 ? least : Number.POSITIVE_INFINITY);
    if (part === undefined) continue;
    parts.set(room, part);
    least = Math.min(least, part.cost);
  }
  const chosen = choose([...parts.values()], count);
  if (chosen === undefined) return undefined;
  const leases = new Map(chosen.flatMap((part) => part.taken).map((lease) => [lease.id, lease]));
  const releases = [...leases.values()].map((lease) => releaseOf(lease.first, from));
  return {
    pieces: chosen.map(({ room, leaving }) => ({ room, ...leaving })),
    leaseIds: [...leases.keys()],
    releaseAt: Math.max(from.now, ...releases),
  };
}

function choose(parts: Part[], count: number): Part[] | undefined {
  if (count > 1) {
    const candidates: Candidate[] = parts.map(({ room, cost }) => ({ room, cost }));
    return closest(candidates, count)?.flatMap((room) => parts.find((part) => part.room === room) ?? []);
  }
  let best: Part | undefined;
  for (const part of parts) if (best === undefined || part.cost < best.cost) best = part;
  return best && [best];
}

/**
 * Released when the notice is over, and not before the lease has had its minimum run time and lies outside its team's
 * guarantee. What was told before holds, unless the clock has jumped back since: nobody is told twice, and nobody waits
 * for a time that is far ahead.
 */
export function noticeFor(holding: Holding, requestId: string, from: Releases): Notice {
  const { now } = from;
  const { notice, grantedAt } = holding;
  const { noticeMs, minRunMs } = from.timesOf(holding.teamId);
  const notBefore = from.notBefore(groupOf(holding));
  const releaseAt = Math.max(now + noticeMs, Math.min(grantedAt, now) + minRunMs, notBefore);
  const latest = Math.max(now + Math.max(noticeMs, minRunMs), notBefore);
  const lateEnough = notBefore <= now || (notice !== undefined && notice.releaseAt >= notBefore);
  const holds = notice !== undefined && notice.at <= now && lateEnough && notice.releaseAt <= latest;
  return holds ? { ...notice, requestId } : { requestId, at: now, releaseAt };
}

/** When it would be released. */
export function releaseOf(holding: Holding, from: Releases): number {
  return noticeFor(holding, "", from).releaseAt;
}

/** What one device would cost, unless it costs more than `bound`. */
function partOn(asker: Asker, room: Room, from: Making, bound: number): Part | undefined {
  const { request, policyOf } = asker;
  if (!mayLie(asker, room)) return undefined;
  // Who waits for leases to end by themselves has the device alone; where room is made for others there may be place, too.
  const beside = isKeptForOthers(room, request.requestId);
  if (beside && (room.hold?.until !== undefined || !admits(room, request))) return undefined;
  const piece = pieceOn(request, room);
  if (piece.milli > asker.headroomMilli) return undefined;
  const there = from.leases.get(room.device.id) ?? [];
  // What ends anyway, and what was told already for this request, costs nobody anything more.
  const goes = there.filter((holding) => holding.ending);
  let { milli, bytes } = spareFor(request.requestId, room, goes);
  const change = request.keptGpuIds?.includes(room.device.id) ? 0 : CHANGE;
  if (piece.milli - milli + change >= bound && !there.some((holding) => from.told.has(groupOf(holding))))
    return undefined;
  const leavingOf = new Map<string, number>();
  const count = ({ teamId }: Holding) => leavingOf.set(teamId, (leavingOf.get(teamId) ?? 0) + 1);
  goes.forEach(count);
  const enough = () =>
    piece.milli <= milli &&
    piece.memoryBytes <= bytes &&
    (policyOf === undefined || mayJoin(request.teamId, room, policyOf, leavingOf));
  const chosen: Victim[] = [];
  for (const victim of victimsOn(there, asker, from)) {
    if (enough()) break;
    const { holding } = victim;
    milli += holding.milli;
    bytes += holding.memoryBytes;
    count(holding);
    chosen.push(victim);
  }
  if (!enough()) return undefined;
  const needed = withoutSuperfluous(asker, piece, { milli, bytes }, chosen);
  const leases = new Map(needed.map(({ lease, told }) => [lease.id, { lease, told }]));
  let cost = change;
  for (const { lease, told } of leases.values()) cost += told ? 0 : lease.milli;
  const taken = [...leases.values()].map(({ lease }) => lease);
  return { room, leaving: { told: needed.map(({ holding }) => holding), goes }, taken, cost };
}

/** Parts of reservations are asked for by nobody yet. */
const isUnit = ({ requestId }: Pick<Waiting, "requestId">): boolean => reservationIdOf(requestId) !== requestId;

/** Leases that are known to go for a request, or for the reservation of which this is a part. */
function toldFor(request: Waiting, { takenFor, reserved }: Reclaimable): ReadonlySet<string> {
  const told = new Set<string>();
  for (const [leaseId, claimant] of takenFor) if (claimant === request.requestId) told.add(leaseId);
  if (!isUnit(request)) return told;
  const own = reservationIdOf(request.requestId);
  for (const [leaseId, reservationId] of reserved) if (reservationId === own) told.add(leaseId);
  return told;
}

type Victim = { holding: Holding; lease: Lease; told: boolean };

/** Whom a request may take on a device: those who were told for it already, then those that lose least. */
function victimsOn(there: readonly Holding[], { request }: Asker, from: Making): Victim[] {
  const victims = there.flatMap((holding): Victim[] => {
    const lease = from.outside.get(groupOf(holding));
    if (lease === undefined || holding.ending || holding.teamId === request.teamId) return [];
    const claimant = from.takenFor.get(lease.id);
    if (claimant !== undefined && claimant !== request.requestId) return [];
    // Room for a reservation is made where it was begun to be made, whichever part of it that was for.
    return [{ holding, lease, told: from.told.has(lease.id) }];
  });
  if (victims.length < 2) return victims;
  return victims.sort(
    (a, b) =>
      Number(b.told) - Number(a.told) ||
      releaseOf(a.holding, from) - releaseOf(b.holding, from) ||
      b.holding.grantedAt - a.holding.grantedAt,
  );
}

/** Spares those whom a later choice has made unnecessary: first who was not told yet, of these the largest. `left` is there with all gone. */
function withoutSuperfluous(
  asker: Asker,
  piece: Piece,
  left: { milli: number; bytes: number },
  chosen: readonly Victim[],
): readonly Victim[] {
  if (chosen.length < 2) return chosen;
  let spareMilli = left.milli - piece.milli;
  let spareBytes = left.bytes - piece.memoryBytes;
  const policyOf = (teamId: string) => asker.policyOf?.(teamId) ?? "any";
  const exclusive = policyOf(asker.request.teamId) !== "any";
  const spared = new Set<Victim>();
  const order = [...chosen].sort((a, b) => Number(a.told) - Number(b.told) || b.holding.milli - a.holding.milli);
  for (const one of order) {
    const { milli, memoryBytes, teamId } = one.holding;
    if (milli > spareMilli || memoryBytes > spareBytes || exclusive || policyOf(teamId) !== "any") continue;
    spareMilli -= milli;
    spareBytes -= memoryBytes;
    spared.add(one);
  }
  return spared.size === 0 ? chosen : chosen.filter((one) => !spared.has(one));
}
