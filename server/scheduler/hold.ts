/** Keeping devices for a request that waits for them. */

import { type CoTenancyOf, mayJoin, mayShare } from "./allowed.ts";
import { WHOLE } from "./amount.ts";
import { type Asker, type Candidate, closest, devicesOf, mayLie, pieceOn } from "./placement.ts";
import { type End, isKeptForOthers, leave, type Room, spareFor, sumOf } from "./room.ts";
import type { Holding, Waiting } from "./types.ts";

/** Holdings by device. */
export type ByDevice = ReadonlyMap<string, readonly Holding[]>;

export function byDevice(holdings: readonly Holding[]): Map<string, Holding[]> {
  const map = new Map<string, Holding[]>();
  for (const holding of holdings) {
    const there = map.get(holding.gpuId);
    if (there === undefined) map.set(holding.gpuId, [holding]);
    else there.push(holding);
  }
  return map;
}

/** Who leaves a device before one for whom it is kept can come: who is told for its sake, and who ends anyway (known of all that wait for it). */
export type Leaving = { told: readonly Holding[]; goes: readonly Holding[] };

/**
 * Keeps a device, beside others that wait for it: who is not among them gets what is left of it when these have gone, at
 * `until`, and they have come.
 */
export function keep(
  request: Waiting,
  room: Room,
  { told, goes }: Leaving,
  policyOf: CoTenancyOf | undefined,
  until?: number,
): void {
  leave(room, request.requestId);
  const share = (one: string, other: string) => policyOf === undefined || mayShare(one, other, policyOf);
  const ends = sumOf(goes);
  room.hold ??= {
    ...{ parts: new Map(), share },
    ...{ spareMilli: room.freeMilli + ends.milli, spareBytes: room.freeBytes + ends.memoryBytes },
    ...(until === undefined ? {} : { until }),
  };
  const { hold } = room;
  const { requestId, teamId } = request;
  const [piece, gone] = [pieceOn(request, room), sumOf(told)];
  const [milli, memoryBytes] = [piece.milli - gone.milli, piece.memoryBytes - gone.memoryBytes];
  const part = { teamId, milli: Math.max(0, milli), memoryBytes: Math.max(0, memoryBytes) };
  hold.parts.set(requestId, {
    ...part,
    left: { milli: part.milli - milli, memoryBytes: part.memoryBytes - memoryBytes },
  });
  hold.spareMilli -= part.milli;
  hold.spareBytes -= part.memoryBytes;
}

/** When a lease ends at the latest, or earlier when its idle limit is nearer. */
export function likelyEnd(holding: Holding, idleMs: number | undefined, now: number): number {
  if (holding.ending) return now;
  const end = holding.expiresAt;
  // A lease that works now may work on; one that has been idle for a minute will likely stay so.
  if (idleMs === undefined || now - holding.lastWorkAt < 60_000) return end;
  return Math.max(now, Math.min(end, holding.lastWorkAt + idleMs));
}

/** When a device is ready, and how many of its leases have to end before. */
export type Ready = { room: Room; at: number; leaving: number };

/**
 * When a piece of the request fits this device as leases come to their end (`ends`, soonest first); nothing when it
 * never does, or not before `bound`.
 */
export function readyAt(
  asker: Asker,
  room: Room,
  ends: readonly End[],
  now: number,
  bound: number = Number.POSITIVE_INFINITY,
): Ready | undefined {
  const { request, policyOf } = asker;
  const { hold } = room;
  if (isKeptForOthers(room, request.requestId)) return undefined;
  // The cheapest test first: most devices are full until after the best that is known.
  const full = hold === undefined && room.freeMilli < Math.min(request.milli, WHOLE);
  if (full && (ends[0] === undefined || ends[0].at >= bound)) return undefined;
  if (!mayLie(asker, room)) return undefined;
  const piece = pieceOn(request, room);
  let { milli, bytes } = spareFor(request.requestId, room);
  const leavingOf = policyOf === undefined ? undefined : new Map<string, number>();
  let at = now;
  let count = 0;
  while (
    piece.milli > milli ||
    piece.memoryBytes > bytes ||
    (policyOf !== undefined && !mayJoin(request.teamId, room, policyOf, leavingOf))
  ) {
    const end = ends[count];
    if (end === undefined || end.at >= bound) return undefined;
    count += 1;
    milli += end.holding.milli;
    bytes += end.holding.memoryBytes;
    leavingOf?.set(end.holding.teamId, (leavingOf.get(end.holding.teamId) ?? 0) + 1);
    at = Math.max(at, end.at);
  }
  return { room, at, leaving: count };
}

/**
 * Keeps the devices on which the request will fit first; when that is, as far as the ends of leases tell. `rooms` come in
 * the order in which the first lease on each ends.
 */
export function keepSoonest(
  asker: Asker,
  rooms: readonly Room[],
  endsOn: (room: Room) => readonly End[],
  now: number,
): number | undefined {
  const chosen =
    devicesOf(asker.request) > 1 ? soonestGroup(asker, rooms, endsOn, now) : soonest(asker, rooms, endsOn, now);
  if (chosen === undefined) return undefined;
  for (const { room, leaving, at } of chosen) {
    const goes = endsOn(room)
      .slice(0, leaving)
      .map((end) => end.holding);
    keep(asker.request, room, { told: [], goes }, asker.policyOf, at);
  }
  return Math.max(...chosen.map((ready) => ready.at));
}

function soonest(asker: Asker, rooms: readonly Room[], endsOn: (room: Room) => readonly End[], now: number) {
  const least = Math.min(asker.request.milli, WHOLE);
  let best: Ready | undefined;
  let late = false;
  for (const room of rooms) {
    // Most devices are full until after the best that is known, and there are many.
    if (late && room.freeMilli < least) continue;
    if (isKeptForOthers(room, asker.request.requestId)) continue;
    const ends = endsOn(room);
    late = best !== undefined && (ends[0]?.at ?? best.at) >= best.at;
    if (late && room.freeMilli < least) continue;
    const ready = readyAt(asker, room, ends, now, best?.at);
    if (ready !== undefined && (best === undefined || ready.at < best.at)) best = ready;
  }
  return best && [best];
}

function soonestGroup(asker: Asker, rooms: readonly Room[], endsOn: (room: Room) => readonly End[], now: number) {
  const count = devicesOf(asker.request);
  const found = new Map<Room, Ready>();
  // When the `count` soonest are ready: no choice is cheaper than these, so none that is ready later is in one.
  const soonest: number[] = [];
  const bound = () => soonest[count - 1] ?? Number.POSITIVE_INFINITY;
  for (const room of rooms) {
    const ends = endsOn(room);
    if (room.freeMilli < WHOLE && (ends[0]?.at ?? now) > bound()) continue;
    const ready = readyAt(asker, room, ends, now, bound() + 1);
    if (ready === undefined) continue;
    found.set(room, ready);
    soonest.push(ready.at);
    soonest.sort((a, b) => a - b).splice(count);
  }
  const candidates = [...found.values()].flatMap(({ room, at }): Candidate[] =>
    at <= bound() ? [{ room, cost: at - now }] : [],
  );
  return closest(candidates, count)?.flatMap((room) => found.get(room) ?? []);
}
