/** Reservations: a part of the pool that a team has for a time, ready when the time begins. */
import { longestNotice } from "./notice.ts";
import type { TeamState } from "./team-state.ts";
import type { Reservation, Waiting, World } from "./types.ts";

/** Reservations for which room is kept now: from one notice before they begin, so that it is there in time. */
export function activeReservations(world: World): Reservation[] {
  const lead = longestNotice(world);
  return (world.reservations ?? []).filter(({ from, to }) => world.now >= from - lead && world.now < to);
}

/** What of the active reservations nobody has leased yet, as requests of their unit's size. */
export function unitsLeft(world: World, teams: ReadonlyMap<string, TeamState>): Waiting[] {
  return activeReservations(world).flatMap((reservation) => {
    const team = teams.get(reservation.teamId);
    if (team === undefined) return [];
    const base = world.quotas.get(reservation.teamId)?.guaranteedMilli ?? 0;
    const leased = Math.max(0, team.used + team.reserved - base);
    const count = Math.max(0, Math.floor((reservation.milli - leased) / reservation.unitMilli));
    return Array.from({ length: count }, (_, index) => unitOf(reservation, index));
  });
}

/** All of a reservation as requests of its unit's size: its team takes it at once. */
export function allOf(reservation: Reservation): Waiting[] {
  const count = Math.floor(reservation.milli / reservation.unitMilli);
  return Array.from({ length: count }, (_, index) => unitOf(reservation, index));
}

function unitOf(reservation: Reservation, index: number): Waiting {
  return {
    requestId: `${reservation.id}/${index}`,
    teamId: reservation.teamId,
    userId: "",
    who: "",
    milli: reservation.unitMilli,
    memoryBytes: 0,
    guaranteedOnly: false,
    createdAt: reservation.from,
    lengthMs: reservation.to - reservation.from,
    maxDevices: Number.MAX_SAFE_INTEGER,
  };
}
