/** What is left on each device, and for whom it is kept. */
import { WHOLE } from "./amount.ts";
import type { Device, Holding } from "./types.ts";

/** A device with what is left on it. */
export type Room = {
  device: Device;
  /** The server with the link group, the same for devices that reach each other directly; empty when it has none. */
  link: string;
  freeMilli: number;
  freeBytes: number;
  leases: number;
  /** Team → how many of its leases lie here. */
  teams: Map<string, number>;
  /** One waits for this device; what it will not need may be used by others. */
  hold?: Hold;
  /** Its leases in the order of their ends, while nothing about them changes. */
  ends?: readonly End[];
};

/** A lease on a device, and when it likely ends. */
export type End = { holding: Holding; at: number };

/**
 * Those that wait for a device. `spare` is what others may still take without delaying any of them; it may be negative.
 * Where room is made for several, each takes of what is free only what those do not leave who were told for its own sake:
 * it gets the device when they have gone, whichever of the others comes first.
 */
export type Hold = {
  /** Request → its part. */
  parts: Map<string, HoldPart>;
  spareMilli: number;
  spareBytes: number;
  /** Whether two teams' leases may lie beside each other. */
  share: (one: string, other: string) => boolean;
  /** When leases that end will have made room for it: what ends before that takes nothing from the holder. */
  until?: number;
};

type Amount = { milli: number; memoryBytes: number };

/** What one of them will take of what is free, and what those leave beyond its need who go for its sake (`left`). */
export type HoldPart = Amount & { teamId: string; left: Amount };

/** Whether others than this request wait for a device. */
export function isKeptForOthers({ hold }: Room, requestId: string): boolean {
  return hold !== undefined && (hold.parts.size > 1 || !hold.parts.has(requestId));
}

/** Whether a lease of this team may come to lie beside those that others wait to lay here. */
export function admits({ hold }: Room, { requestId, teamId }: { requestId: string; teamId: string }): boolean {
  if (hold === undefined) return true;
  for (const [other, part] of hold.parts) if (other !== requestId && !hold.share(part.teamId, teamId)) return false;
  return true;
}

/** Nothing is kept for this request any more. */
export function leave(room: Room, requestId: string): void {
  const { hold } = room;
  const part = hold?.parts.get(requestId);
  if (hold === undefined || part === undefined) return;
  hold.parts.delete(requestId);
  hold.spareMilli += part.milli;
  hold.spareBytes += part.memoryBytes;
  if (hold.parts.size === 0) room.hold = undefined;
}

/** What each device has left under these holdings. */
export function roomOf(devices: readonly Device[], holdings: readonly Holding[]): Map<string, Room> {
  const rooms = new Map<string, Room>();
  for (const device of devices) {
    const free = { freeMilli: WHOLE, freeBytes: device.memoryBytes };
    const { serverId, linkGroup } = device;
    const link = linkGroup === undefined ? "" : `${serverId}/${linkGroup}`;
    rooms.set(device.id, { device, link, ...free, leases: 0, teams: new Map() });
  }
  for (const holding of holdings) {
    const room = rooms.get(holding.gpuId);
    if (room) take(room, holding);
  }
  return rooms;
}

/** Takes an amount out of a room; what comes now is there until `endsAt`. */
export function take(
  room: Room,
  amount: { milli: number; memoryBytes: number; teamId: string },
  endsAt: number = Number.POSITIVE_INFINITY,
): void {
  room.freeMilli -= amount.milli;
  room.freeBytes -= amount.memoryBytes;
  room.leases += 1;
  room.teams.set(amount.teamId, (room.teams.get(amount.teamId) ?? 0) + 1);
  if (room.hold && endsAt >= (room.hold.until ?? Number.NEGATIVE_INFINITY)) {
    room.hold.spareMilli -= amount.milli;
    room.hold.spareBytes -= amount.memoryBytes;
  }
}

/** Puts back what was taken for good. */
export function give(room: Room, amount: { milli: number; memoryBytes: number; teamId: string }): void {
  room.freeMilli += amount.milli;
  room.freeBytes += amount.memoryBytes;
  room.leases -= 1;
  const count = (room.teams.get(amount.teamId) ?? 0) - 1;
  if (count > 0) room.teams.set(amount.teamId, count);
  else room.teams.delete(amount.teamId);
  if (room.hold) {
    room.hold.spareMilli += amount.milli;
    room.hold.spareBytes += amount.memoryBytes;
  }
}

const NONE = { milli: 0, memoryBytes: 0 };

/**
 * What this request may take here: all that is free, or what those do not need who wait for the device; now, or when
 * what ends anyway has ended (`ending`).
 */
export function spareFor(
  requestId: string,
  room: Room,
  ending: readonly Holding[] = [],
): { milli: number; bytes: number } {
  const { hold } = room;
  const more = sumOf(ending);
  const milli = room.freeMilli + more.milli;
  const bytes = room.freeBytes + more.memoryBytes;
  if (hold === undefined || !isKeptForOthers(room, requestId)) return { milli, bytes };
  const own = hold.parts.get(requestId) ?? NONE;
  return {
    milli: Math.min(milli, hold.spareMilli + own.milli),
    bytes: Math.min(bytes, hold.spareBytes + own.memoryBytes),
  };
}

/** What leases hold together. */
export function sumOf(holdings: readonly Amount[]): Amount {
  if (holdings.length === 0) return NONE;
  return holdings.reduce(
    (sum, one) => ({ milli: sum.milli + one.milli, memoryBytes: sum.memoryBytes + one.memoryBytes }),
    NONE,
  );
}
