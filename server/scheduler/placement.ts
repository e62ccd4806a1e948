/** Which devices take a request. */
import { type CoTenancyOf, mayJoin, meets } from "./allowed.ts";
import { chargeOn, memoryOn, WHOLE } from "./amount.ts";
import { admits, type Room, spareFor } from "./room.ts";
import type { Piece, Waiting } from "./types.ts";

/** A request with what its quota leaves for it, and with the policies that bind. */
export type Asker = {
  request: Waiting;
  headroomMilli: number;
  /** Nothing when every team shares cards with every other. */
  policyOf: CoTenancyOf | undefined;
};

/** How many devices a request takes. */
export const devicesOf = (request: Pick<Waiting, "milli">): number => Math.max(1, Math.ceil(request.milli / WHOLE));

/** What a request takes of one device. */
export function pieceOn(request: Pick<Waiting, "milli" | "memoryBytes">, room: Room): Piece {
  const one = { milli: Math.min(request.milli, WHOLE), memoryBytes: request.memoryBytes };
  const { id, memoryBytes } = room.device;
  return { gpuId: id, milli: chargeOn(one, memoryBytes), memoryBytes: memoryOn(one, memoryBytes) };
}

/** Whether a request may ever lie on a device: what runs there now apart. */
export function mayLie(asker: Pick<Asker, "request">, room: Room): boolean {
  const { request } = asker;
  const { device } = room;
  if (device.state !== "open") return false;
  if (request.pinnedGpuId !== undefined && device.id !== request.pinnedGpuId) return false;
  return request.needs === undefined || meets(request.needs, device);
}

/** Whether one piece of the request fits this device now. */
export function fits(asker: Asker, room: Room): boolean {
  const { request, headroomMilli, policyOf } = asker;
  // The cheapest tests first: most devices fail them, and there are many. What is charged is never less than `milli`.
  if (room.freeMilli <= 0 || room.freeMilli < Math.min(request.milli, WHOLE)) return false;
  if (room.freeBytes < request.memoryBytes) return false;
  if (!mayLie(asker, room)) return false;
  const piece = pieceOn(request, room);
  const spare = spareFor(request.requestId, room);
  if (piece.milli > spare.milli || piece.memoryBytes > spare.bytes || piece.milli > headroomMilli) return false;
  if (policyOf !== undefined && !mayJoin(request.teamId, room, policyOf)) return false;
  return admits(room, request);
}

/**
 * Best fit: the device on which least is left over, so that fractions pack together and whole GPUs stay whole; then the
 * one with fewer leases, then the first. `rooms` come in a fixed order.
 */
export function bestFit(asker: Asker, rooms: Iterable<Room>): Room | undefined {
  let best: Room | undefined;
  let bestLeft = Number.POSITIVE_INFINITY;
  for (const room of rooms) {
    if (!fits(asker, room)) continue;
    const left = room.freeMilli - pieceOn(asker.request, room).milli;
    if (left < bestLeft || (left === bestLeft && best !== undefined && room.leases < best.leases)) {
      best = room;
      bestLeft = left;
    }
  }
  return best;
}

/** The devices that take a request now, all or none; nothing when it does not fit. */
export function place(asker: Asker, rooms: readonly Room[]): Room[] | undefined {
  const count = devicesOf(asker.request);
  if (count === 1) {
    const room = bestFit(asker, rooms);
    return room && [room];
  }
  return closest(
    rooms.filter((room) => fits(asker, room)).map((room) => ({ room, cost: 0 })),
    count,
  );
}

export type Candidate = { room: Room; cost: number };

/**
 * `count` of these devices: in one link group where that can be, else on one server, else anywhere; of these the
 * cheapest, and of equally cheap ones the group with the fewest left over, so that large groups stay whole.
 */
export function closest(candidates: readonly Candidate[], count: number): Room[] | undefined {
  if (candidates.length < count) return undefined;
  const choices = [
    cheapestGroup(
      candidates.filter(({ room }) => room.link !== ""),
      count,
      (room) => room.link,
    ),
    cheapestGroup(candidates, count, (room) => room.device.serverId),
    cheapestGroup(candidates, count, () => ""),
  ];
  // Closeness is worth nobody's lease: a dearer choice is taken only when nothing else is possible.
  const possible = choices.filter((choice) => choice !== undefined);
  const least = Math.min(...possible.map((choice) => choice.cost));
  return possible.find((choice) => choice.cost === least)?.rooms;
}

/** The first `count` by cost; of equally cheap ones those that come first. */
function cheapest(group: readonly Candidate[], count: number): Candidate[] {
  const chosen: Candidate[] = [];
  for (const candidate of group) {
    if (chosen.length === count && candidate.cost >= (chosen.at(-1)?.cost ?? 0)) continue;
    let at = chosen.length;
    while (at > 0 && candidate.cost < (chosen[at - 1]?.cost ?? 0)) at--;
    chosen.splice(at, 0, candidate);
    if (chosen.length > count) chosen.pop();
  }
  return chosen;
}

type Choice = { rooms: Room[]; cost: number; left: number };

function cheapestGroup(
  candidates: readonly Candidate[],
  count: number,
  keyOf: (room: Room) => string,
): Choice | undefined {
  const groups = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    const key = keyOf(candidate.room);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [candidate]);
    else group.push(candidate);
  }
  let best: Choice | undefined;
  for (const group of groups.values()) {
    if (group.length < count) continue;
    const chosen = cheapest(group, count);
    const cost = chosen.reduce((sum, one) => sum + one.cost, 0);
    const choice = { rooms: chosen.map((one) => one.room), cost, left: group.length - count };
    if (best === undefined || choice.cost < best.cost || (choice.cost === best.cost && choice.left < best.left)) {
      best = choice;
    }
  }
  return best;
}
