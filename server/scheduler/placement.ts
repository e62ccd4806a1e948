/** Which device takes a request. */
import { chargeOn, memoryOn, WHOLE } from "./amount.ts";
import type { Device, Holding } from "./types.ts";

/** A device with what is left on it. */
export type Room = { device: Device; freeMilli: number; freeBytes: number; leases: number };

/** What each device has left under these holdings. */
export function roomOf(devices: Device[], holdings: Holding[]): Map<string, Room> {
  const rooms = new Map<string, Room>();
  for (const device of devices) {
    rooms.set(device.id, { device, freeMilli: WHOLE, freeBytes: device.memoryBytes, leases: 0 });
  }
  for (const holding of holdings) {
    const room = rooms.get(holding.gpuId);
    if (room) take(room, holding);
  }
  return rooms;
}

/** Takes an amount out of a room. */
export function take(room: Room, amount: { milli: number; memoryBytes: number }): void {
  room.freeMilli -= amount.milli;
  room.freeBytes -= amount.memoryBytes;
  room.leases += 1;
}

/** Whether the request fits this device now. */
export function fits(request: { milli: number; memoryBytes: number }, room: Room): boolean {
  return (
    room.device.state === "open" &&
    chargeOn(request, room.device.memoryBytes) <= room.freeMilli &&
    memoryOn(request, room.device.memoryBytes) <= room.freeBytes
  );
}

/**
 * Best fit by stranded capacity: the device on which least is left over, so that fractions pack together and
 * whole GPUs stay whole; then the one with fewer leases, then a fixed order.
 */
export function bestFit(request: { milli: number; memoryBytes: number }, rooms: Iterable<Room>): Room | undefined {
  let best: { room: Room; left: number } | undefined;
  for (const room of rooms) {
    if (!fits(request, room)) continue;
    const left = room.freeMilli - chargeOn(request, room.device.memoryBytes);
    if (best === undefined || compare(left, room, best.left, best.room) < 0) best = { room, left };
  }
  return best?.room;
}

function compare(left: number, room: Room, bestLeft: number, best: Room): number {
  return (
    left - bestLeft ||
    room.leases - best.leases ||
    room.device.serverName.localeCompare(best.device.serverName) ||
    room.device.name.localeCompare(best.device.name) ||
    (room.device.id < best.device.id ? -1 : 1)
  );
}
