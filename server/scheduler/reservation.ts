/** Reservations: a part of the pool that a team has for a time, ready when the time begins. */
import { underPolicy } from "./allowed.ts";
import { activeReservations } from "./share.ts";
import type { TeamState } from "./team-state.ts";
import type { Reservation, Waiting, World } from "./types.ts";

/**
 * What of the active reservations nobody has leased yet, as requests of their unit's size; of that, when servers are
 * away, what is still guaranteed.
 */
export function unitsLeft(world: World, teams: ReadonlyMap<string, TeamState>): Waiting[] {
  // What a team, or a person, has taken counts once, however many reservations they have.
  const taken = new Map<string, number>();
  const kept = new Map<string, number>();
  return activeReservations(world).flatMap((reservation) => {
    const { teamId, userId, milli } = reservation;
    const team = teams.get(teamId);
    if (team === undefined) return [];
    const unitMilli = underPolicy(reservation.unitMilli, team.quota.coTenancy ?? "any");
    const whose = `${teamId}/${userId ?? ""}`;
    const guaranteedMilli = world.quotas.get(teamId)?.guaranteedMilli ?? 0;
    const ofTeam = Math.max(0, team.takenInCommon() - guaranteedMilli);
    const known = taken.get(whose) ?? (userId === undefined ? ofTeam : team.heldOrAskedBy(userId));
    const here = Math.min(known, milli);
    taken.set(whose, known - here);
    const inside = userId === undefined ? team.leftInside("") : team.ownLeft(userId);
    const before = kept.get(whose) ?? 0;
    const count = Math.max(0, Math.floor(Math.min(milli - here, inside - before) / unitMilli));
    kept.set(whose, before + count * unitMilli);
    return Array.from({ length: count }, (_, index) => unitOf({ ...reservation, unitMilli }, index));
  });
}

/** All of a reservation as requests of its unit's size: its team takes it at once. */
export function allOf(reservation: Reservation): Waiting[] {
  const count = Math.floor(reservation.milli / reservation.unitMilli);
  return Array.from({ length: count }, (_, index) => unitOf(reservation, index));
}

/** The reservation that a unit's id names; an id of anything else is returned as it is. */
export const reservationIdOf = (unitId: string): string => unitId.split("/")[0] ?? unitId;

function unitOf(reservation: Reservation, index: number): Waiting {
  return {
    requestId: `${reservation.id}/${index}`,
    teamId: reservation.teamId,
    userId: reservation.userId ?? "",
    who: reservation.who ?? "",
    milli: reservation.unitMilli,
    memoryBytes: 0,
    guaranteedOnly: false,
    createdAt: reservation.from,
    lengthMs: reservation.to - reservation.from,
    maxDevices: Number.MAX_SAFE_INTEGER,
  };
}
