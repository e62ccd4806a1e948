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

/** `spare` is what others may still take without delaying the holder. It may be negative. */
export type Hold = {
  requestId: string;
  spareMilli: number;
  spareBytes: number;
  /** Whether a lease of this team may come to lie beside the holder's. */
  admits: (teamId: string) => boolean;
  /** When leases that end will have made room for it: what ends before that takes nothing from the holder. */
  until?: number;
};

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

/** What this request may take here: all that is free, or what the holder does not need. */
export function spareFor(requestId: string, room: Room): { milli: number; bytes: number } {
  const { hold } = room;
  if (hold === undefined || hold.requestId === requestId) return { milli: room.freeMilli, bytes: room.freeBytes };
  return { milli: Math.min(room.freeMilli, hold.spareMilli), bytes: Math.min(room.freeBytes, hold.spareBytes) };
}
