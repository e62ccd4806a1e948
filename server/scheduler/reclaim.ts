/**
 * What has to be taken back so that a team gets what it is guaranteed. Only leases of other teams, only such as lie
 * outside their team's guarantee and may be interrupted. A plan that does not make the request fit is no plan, so
 * nobody is disturbed for nothing.
 */
import { mayJoin } from "./allowed.ts";
import type { ByDevice } from "./hold.ts";
import { type Asker, type Candidate, closest, devicesOf, mayLie, pieceOn } from "./placement.ts";
import type { Room } from "./room.ts";
import type { Lease } from "./share.ts";
import { groupOf } from "./share.ts";
import type { Holding, Notice, Policy } from "./types.ts";

/** What a plan may choose from. */
export type Reclaimable = {
  leases: ByDevice;
  /** Leases outside their team's guarantee, by id. */
  outside: ReadonlyMap<string, Lease>;
  /** Lease → the request it is taken for already, in this round or in one before. */
  takenFor: ReadonlyMap<string, string>;
  policy: Policy;
  now: number;
};

/** Devices, who leaves each of them, and when the last has left. */
export type Plan = { pieces: { room: Room; leaving: Holding[] }[]; leaseIds: string[]; releaseAt: number };

type Part = { room: Room; leaving: Holding[]; taken: Lease[]; cost: number };

/** The plan that takes least from others; nothing when none makes the request fit. */
export function planReclaim(asker: Asker, rooms: readonly Room[], from: Reclaimable): Plan | undefined {
  const parts = new Map<Room, Part>();
  const count = devicesOf(asker.request);
  let least = Number.POSITIVE_INFINITY;
  for (const room of rooms) {
    const part = partOn(asker, room, from, count === 1 ? least : Number.POSITIVE_INFINITY);
    if (part === undefined) continue;
    parts.set(room, part);
    least = Math.min(least, part.cost);
  }
  const chosen = choose([...parts.values()], count);
  if (chosen === undefined) return undefined;
  const leases = new Map(chosen.flatMap((part) => part.taken).map((lease) => [lease.id, lease]));
  const releases = [...leases.values()].map((lease) => releaseOf(lease.first, from));
  return {
    pieces: chosen.map(({ room, leaving }) => ({ room, leaving })),
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
 * Released when the notice is over, and not before the lease has had its minimum run time. What was told before holds,
 * unless the clock has jumped back since: nobody is told twice, and nobody waits for a time that is far ahead.
 */
export function noticeFor(holding: Holding, requestId: string, from: Pick<Reclaimable, "now" | "policy">): Notice {
  const { now, policy } = from;
  const { notice, grantedAt } = holding;
  const releaseAt = Math.max(now + policy.noticeMs, Math.min(grantedAt, now) + policy.minRunMs);
  const stale =
    notice === undefined || notice.at > now || notice.releaseAt > now + Math.max(policy.noticeMs, policy.minRunMs);
  return stale ? { requestId, at: now, releaseAt } : { ...notice, requestId };
}

/** When it would be released. */
export function releaseOf(holding: Holding, from: Pick<Reclaimable, "now" | "policy">): number {
  return noticeFor(holding, "", from).releaseAt;
}

/** What one device would cost, unless it costs more than `bound`. */
function partOn(asker: Asker, room: Room, from: Reclaimable, bound: number): Part | undefined {
  const { request, policyOf } = asker;
  if (!mayLie(asker, room)) return undefined;
  const { hold } = room;
  if (hold !== undefined && hold.requestId !== request.requestId) return undefined;
  const piece = pieceOn(request, room);
  if (piece.milli > asker.headroomMilli) return undefined;
  let [milli, bytes] = [room.freeMilli, room.freeBytes];
  const there = from.leases.get(room.device.id) ?? [];
  // What ends anyway, and what was told already for this request, costs nobody anything more.
  const own = (holding: Holding) => from.takenFor.get(groupOf(holding)) === request.requestId;
  if (piece.milli - milli >= bound && !there.some((holding) => holding.ending || own(holding))) return undefined;
  const leaving: Holding[] = [];
  const leavingOf = new Map<string, number>();
  const leave = (holding: Holding) => {
    leaving.push(holding);
    milli += holding.milli;
    bytes += holding.memoryBytes;
    leavingOf.set(holding.teamId, (leavingOf.get(holding.teamId) ?? 0) + 1);
  };
  const enough = () =>
    piece.milli <= milli &&
    piece.memoryBytes <= bytes &&
    (policyOf === undefined || mayJoin(request.teamId, room, policyOf, leavingOf));
  const taken: Lease[] = [];
  for (const holding of there) {
    if (holding.ending) leave(holding);
  }
  if (!enough()) {
    for (const holding of there) {
      if (holding.ending || !own(holding)) continue;
      const lease = from.outside.get(groupOf(holding));
      if (lease === undefined) continue;
      leave(holding);
      if (!taken.includes(lease)) taken.push(lease);
    }
  }
  if (enough()) return { room, leaving, taken, cost: 0 };
  if (piece.milli - milli >= bound) return undefined;
  return furtherOn(asker, room, from, { there, leaving, taken, leave, enough });
}

type Progress = {
  there: readonly Holding[];
  leaving: Holding[];
  taken: Lease[];
  leave: (holding: Holding) => void;
  enough: () => boolean;
};

/** Takes one lease after the other, those that lose least first, until the request fits. */
function furtherOn(asker: Asker, room: Room, from: Reclaimable, progress: Progress): Part | undefined {
  const { there, leaving, taken, leave, enough } = progress;
  const victims = there
    .filter((holding) => !leaving.includes(holding) && holding.teamId !== asker.request.teamId)
    .flatMap((holding) => {
      const lease = from.outside.get(groupOf(holding));
      const free = lease !== undefined && !from.takenFor.has(lease.id);
      return free ? [{ holding, lease }] : [];
    })
    .sort(
      (a, b) => releaseOf(a.holding, from) - releaseOf(b.holding, from) || b.holding.grantedAt - a.holding.grantedAt,
    );
  const chosen: typeof victims = [];
  const count = (list: typeof victims) => new Map(list.map((one) => [one.lease.id, one.lease]));
  for (const victim of victims) {
    if (enough()) break;
    leave(victim.holding);
    chosen.push(victim);
  }
  if (!enough()) return undefined;
  const needed = withoutSuperfluous(asker, room, leaving, chosen);
  const kept = leaving.filter(
    (holding) => needed.some((one) => one.holding === holding) || !chosen.some((one) => one.holding === holding),
  );
  const leases = [...count(needed).values()];
  const cost = leases.reduce((sum, lease) => sum + lease.milli, 0);
  return { room, leaving: kept, taken: [...taken, ...leases], cost };
}

/** Spares those whom a later choice has made unnecessary, beginning with the largest. */
function withoutSuperfluous<T extends { holding: Holding }>(
  asker: Asker,
  room: Room,
  leaving: readonly Holding[],
  chosen: readonly T[],
): T[] {
  const piece = pieceOn(asker.request, room);
  let spareMilli = room.freeMilli - piece.milli;
  let spareBytes = room.freeBytes - piece.memoryBytes;
  for (const holding of leaving) {
    spareMilli += holding.milli;
    spareBytes += holding.memoryBytes;
  }
  const policyOf = (teamId: string) => asker.policyOf?.(teamId) ?? "any";
  const exclusive = policyOf(asker.request.teamId) !== "any";
  const spared = new Set<T>();
  for (const one of [...chosen].sort((a, b) => b.holding.milli - a.holding.milli)) {
    const { milli, memoryBytes, teamId } = one.holding;
    if (milli > spareMilli || memoryBytes > spareBytes || exclusive || policyOf(teamId) !== "any") continue;
    spareMilli -= milli;
    spareBytes -= memoryBytes;
    spared.add(one);
  }
  return chosen.filter((one) => !spared.has(one));
}
