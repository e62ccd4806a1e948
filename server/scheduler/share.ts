/** Who has what of a type, what is guaranteed now, and who needs more. */
import { WHOLE } from "./amount.ts";
import { quotaAt } from "./calendar.ts";
import { leadOf } from "./notice.ts";
import type { Holding, Quota, Reservation, World } from "./types.ts";

/** What the devices that take leases have together, thousandths. */
export function capacityInService(world: Pick<World, "devices">): number {
  return world.devices.filter((device) => device.state === "open").length * WHOLE;
}

/** What is promised to teams now. */
export type Promises = {
  /** With what is reserved: that adds to a team's guarantee, and to its limit. */
  quotas: ReadonlyMap<string, Quota>;
  /** What each team is guaranteed with the devices that are there. */
  guarantees: ReadonlyMap<string, number>;
  /** Team → person → the part of that which only this person may use. */
  own: ReadonlyMap<string, ReadonlyMap<string, number>>;
};

type Timed = Pick<World, "now" | "reservations" | "policy" | "quotas"> & Partial<Pick<World, "holdings">>;

/** Reservations for which room is kept now: from so long before they begin that it is there in time. */
export function keptReservations(world: Timed): Reservation[] {
  const { reservations = [], now } = world;
  if (reservations.length === 0) return [];
  const lead = leadOf(world);
  return reservations.filter(({ from, to }) => now >= from - lead && now < to);
}

/** Reservations that hold at a time. */
export function reservationsAt({ reservations = [] }: Pick<World, "reservations">, at: number): Reservation[] {
  return reservations.filter(({ from, to }) => at >= from && at < to);
}

const known = new WeakMap<World, Promises>();

/** What holds now. Found out once for each world, which nobody changes: every sentence about a long queue asks for it. */
export function promisesNow(world: World): Promises {
  const found = known.get(world) ?? promisesOf(world, world.quotas, reservationsAt(world, world.now));
  known.set(world, found);
  return found;
}

/** What holds at a later time, with the devices that are there now. */
export function promisesAt(world: World, at: number): Promises {
  if (at === world.now) return promisesNow(world);
  const then = [...world.quotas].map(([teamId, quota]): [string, Quota] => {
    const { calendar } = quota;
    if (calendar === undefined) return [teamId, quota];
    return [teamId, { ...quota, ...quotaAt(calendar, at) }];
  });
  return promisesOf(world, new Map(then), reservationsAt(world, at));
}

function promisesOf(
  world: Pick<World, "devices">,
  plain: ReadonlyMap<string, Quota>,
  reservations: readonly Reservation[],
): Promises {
  const quotas = new Map(plain);
  for (const { teamId, milli } of reservations) {
    const quota = quotas.get(teamId);
    if (quota === undefined) continue;
    const guaranteedMilli = quota.guaranteedMilli + milli;
    quotas.set(teamId, { ...quota, guaranteedMilli, limitMilli: Math.max(quota.limitMilli + milli, guaranteedMilli) });
  }
  const scale = scaling(world, quotas);
  const own = new Map<string, Map<string, number>>();
  for (const { teamId, userId, milli } of reservations) {
    if (userId === undefined || !quotas.has(teamId)) continue;
    const ofTeam = own.get(teamId) ?? new Map<string, number>();
    own.set(teamId, ofTeam.set(userId, (ofTeam.get(userId) ?? 0) + scale(milli)));
  }
  const guarantees = new Map([...quotas.values()].map((quota) => [quota.teamId, scale(quota.guaranteedMilli)]));
  return { quotas, guarantees, own };
}

/** Whether all that is promised now fits once every device that is away or drained takes leases again. */
export function areEnoughInAll(world: World): boolean {
  const devices = world.devices.map((device) =>
    device.state === "gone" ? device : { ...device, state: "open" as const },
  );
  const { quotas } = promisesNow(world);
  const promised = [...quotas.values()].reduce((sum, quota) => sum + quota.guaranteedMilli, 0);
  return promised <= capacityInService({ devices });
}

/** What one team is guaranteed with the devices that are there, with what is reserved for it. */
export function guaranteedNow(teamId: string, world: World): number {
  return promisesNow(world).guarantees.get(teamId) ?? 0;
}

/** All of a promise; or, when a lost server leaves less than all guarantees together, its part of what is left. */
function scaling(world: Pick<World, "devices">, quotas: ReadonlyMap<string, Quota>): (milli: number) => number {
  let promised = 0;
  for (const quota of quotas.values()) promised += quota.guaranteedMilli;
  const inService = capacityInService(world);
  if (promised <= inService) return (milli) => milli;
  return (milli) => Number((BigInt(milli) * BigInt(inService)) / BigInt(promised));
}

/** All parts of one lease. */
export const groupOf = (holding: Holding): string => holding.groupId ?? holding.leaseId;

/** A lease with all its parts: what it holds, and whether it may be taken back. */
export type Lease = { id: string; parts: Holding[]; milli: number; first: Holding };

/** Holdings by lease. */
export function leasesOf(holdings: readonly Holding[]): Lease[] {
  const leases = new Map<string, Lease>();
  for (const holding of holdings) {
    const id = groupOf(holding);
    const known = leases.get(id);
    if (known === undefined) leases.set(id, { id, parts: [holding], milli: holding.milli, first: holding });
    else {
      known.parts.push(holding);
      known.milli += holding.milli;
    }
  }
  return [...leases.values()];
}

/**
 * Leases outside their team's guarantee: these may be taken back. A guarantee is filled first by what was granted for
 * good, then by what was granted inside it, then by what was borrowed, each by age; what does not fit is outside. What
 * is reserved for a person is filled by their leases alone.
 */
export function outsideGuarantee(
  leases: readonly Lease[],
  { guarantees, own }: Pick<Promises, "guarantees" | "own">,
): Set<string> {
  const byTeam = new Map<string, Lease[]>();
  for (const lease of leases) {
    const ofTeam = byTeam.get(lease.first.teamId);
    if (ofTeam === undefined) byTeam.set(lease.first.teamId, [lease]);
    else ofTeam.push(lease);
  }
  const outside = new Set<string>();
  for (const [teamId, ofTeam] of byTeam) {
    const reserved = new Map(own.get(teamId));
    let left = guarantees.get(teamId) ?? 0;
    for (const milli of reserved.values()) left -= milli;
    for (const lease of ofTeam.sort(bySeniority)) {
      const { userId, guaranteedOnly } = lease.first;
      const ofPerson = Math.min(lease.milli, reserved.get(userId) ?? 0);
      if (lease.milli - ofPerson <= left) {
        left -= lease.milli - ofPerson;
        if (ofPerson > 0) reserved.set(userId, (reserved.get(userId) ?? 0) - ofPerson);
      } else if (!guaranteedOnly) outside.add(lease.id);
    }
  }
  return outside;
}

function bySeniority(a: Lease, b: Lease): number {
  return (
    standing(a.first) - standing(b.first) ||
    a.first.grantedAt - b.first.grantedAt ||
    (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
  );
}

const standing = (holding: Holding): number => (holding.guaranteedOnly ? 0 : holding.borrowed ? 2 : 1);

/** What a team holds of this type, thousandths. */
export function usedBy(teamId: string, world: Pick<World, "holdings">): number {
  return world.holdings.reduce((sum, holding) => sum + (holding.teamId === teamId ? holding.milli : 0), 0);
}
