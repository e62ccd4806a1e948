/** Reservations: a part of the pool that a team has for a time, ready when the time begins. */
import { underPolicy } from "./allowed.ts";
import { isSpent } from "./budget.ts";
import { keptReservations, promisesAt, reservationsAt } from "./share.ts";
import { stopFor } from "./stops.ts";
import { type TeamState, teamsOf } from "./team-state.ts";
import type { Holding, Reservation, Waiting, World } from "./types.ts";

/** A part of a reservation that nobody has leased yet. */
export type Unit = {
  /** As if somebody asked for it. */
  request: Waiting;
  /** When it is due: now, or when the reservation begins. */
  at: number;
  /** From then on what is kept for it is others'. */
  until: number;
  /** Whether who asked for it would be granted it. What is free is kept for it all the same, but nobody is taken back. */
  grantable: boolean;
};

/**
 * What of the reservations for which room is kept nobody has leased yet, in parts of their unit's size; of that, when
 * servers are away, what is still guaranteed. Who holds what when one begins is taken from who holds it now (`held`), and
 * for whom room is made that is there by then (`isMade`).
 */
export function unitsLeft(
  world: World,
  teams: ReadonlyMap<string, TeamState>,
  { held, isMade }: { held: () => readonly Holding[]; isMade: (requestId: string, by: number) => boolean },
): Unit[] {
  const teamsThen = (at: number) => {
    const then = teamsOf(held(), promisesAt(world, at));
    for (const [teamId, team] of teams)
      for (const [request, milli] of team.asked())
        if (isMade(request.requestId, at)) then.get(teamId)?.reserve(request, milli);
    return then;
  };
  const times = new Set(keptReservations(world).map(({ from }) => Math.max(from, world.now)));
  return [...times].sort((a, b) => a - b).flatMap((at) => unitsAt(at, world, at === world.now ? teams : teamsThen(at)));
}

/**
 * Those that are due at a time, the largest first, as they pack best; those of reservations that hold before and go on
 * then are due already. What is held counts for the reservation that began first, and of these for the smaller unit.
 */
function unitsAt(at: number, world: World, teams: ReadonlyMap<string, TeamState>): Unit[] {
  const there = reservationsAt(world, at).sort(
    (a, b) => a.from - b.from || a.unitMilli - b.unitMilli || (a.id < b.id ? -1 : 1),
  );
  // What a team, or a person, has taken counts once, however many reservations they have.
  const taken = new Map<string, number>();
  const kept = new Map<string, number>();
  const units = there.flatMap((reservation) => {
    const { teamId, userId, milli, from } = reservation;
    const team = teams.get(teamId);
    if (team === undefined) return [];
    const unitMilli = underPolicy(reservation.unitMilli, team.quota.coTenancy ?? "any");
    const whose = `${teamId}/${userId ?? ""}`;
    const reserved = there.reduce((sum, one) => sum + (one.teamId === teamId ? one.milli : 0), 0);
    const ofTeam = Math.max(0, team.takenInCommon() - (team.quota.guaranteedMilli - reserved));
    const known = taken.get(whose) ?? (userId === undefined ? ofTeam : team.heldOrAskedBy(userId));
    const here = Math.min(known, milli);
    taken.set(whose, known - here);
    const inside = userId === undefined ? team.leftInside("") : team.ownLeft(userId);
    const before = kept.get(whose) ?? 0;
    const parts = partsOf(Math.min(milli - here, inside - before), unitMilli);
    kept.set(whose, before + parts.reduce((sum, part) => sum + part, 0));
    if (from < at && at > world.now) return [];
    let personal = userId === undefined ? 0 : team.heldOrAskedBy(userId) + before;
    return parts.map((part, index): Unit => {
      const request = unitOf({ ...reservation, unitMilli: part }, index);
      const grantable = isGrantable(request, team, world, at, personal);
      if (userId !== undefined) personal += part;
      return { request, at, until: reservation.to, grantable };
    });
  });
  return units.sort((a, b) => b.request.milli - a.request.milli);
}

/** An amount in parts of a unit's size, and what is left of it. */
function partsOf(milli: number, unitMilli: number): number[] {
  if (milli <= 0) return [];
  const whole = Array.from({ length: Math.floor(milli / unitMilli) }, () => unitMilli);
  const rest = milli - whole.length * unitMilli;
  return rest > 0 ? [...whole, rest] : whole;
}

/** Whether somebody of the team could have it then; `personal` is what its person has already. */
function isGrantable(unit: Waiting, { quota }: TeamState, { stops }: World, at: number, personal: number): boolean {
  const { personMilli = Number.POSITIVE_INFINITY, budget } = quota;
  return stopFor(unit, stops) === undefined && !isSpent(budget, at) && personal + unit.milli <= personMilli;
}

/** All of a reservation as requests of its unit's size: its team takes it at once. */
export function allOf(reservation: Reservation): Waiting[] {
  return partsOf(reservation.milli, reservation.unitMilli).map((unitMilli, index) =>
    unitOf({ ...reservation, unitMilli }, index),
  );
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
