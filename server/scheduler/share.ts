/** Who has what of a type, what is guaranteed now, and who needs more. */
import { WHOLE } from "./amount.ts";
import { longestNotice } from "./notice.ts";
import type { Holding, Quota, World } from "./types.ts";

/** What the devices that take leases have together, thousandths. */
export function capacityInService(world: Pick<World, "devices">): number {
  return world.devices.filter((device) => device.state === "open").length * WHOLE;
}

/** A reservation in force adds to its team's guarantee, and to its limit. */
export function withReservations(world: World): Map<string, Quota> {
  const lead = longestNotice(world);
  const active = (world.reservations ?? []).filter(({ from, to }) => world.now >= from - lead && world.now < to);
  if (active.length === 0) return world.quotas;
  const quotas = new Map(world.quotas);
  for (const { teamId, milli } of active) {
    const quota = quotas.get(teamId);
    if (quota === undefined) continue;
    const guaranteedMilli = quota.guaranteedMilli + milli;
    quotas.set(teamId, { ...quota, guaranteedMilli, limitMilli: Math.max(quota.limitMilli + milli, guaranteedMilli) });
  }
  return quotas;
}

/**
 * What each team is guaranteed with the devices that are there: the quota, or, when a lost server leaves less than all
 * guarantees together, the part of what is left that goes with the quota.
 */
export function guaranteesNow(world: World, quotas: ReadonlyMap<string, Quota> = world.quotas): Map<string, number> {
  let promised = 0;
  for (const quota of quotas.values()) promised += quota.guaranteedMilli;
  const inService = capacityInService(world);
  const scale = (milli: number) =>
    promised <= inService ? milli : Number((BigInt(milli) * BigInt(inService)) / BigInt(promised));
  return new Map([...quotas.values()].map((quota) => [quota.teamId, scale(quota.guaranteedMilli)]));
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
 * good, then by what was granted inside it, then by what was borrowed, each by age; what does not fit is outside.
 */
export function outsideGuarantee(leases: readonly Lease[], guarantees: ReadonlyMap<string, number>): Set<string> {
  const byTeam = new Map<string, Lease[]>();
  for (const lease of leases) {
    const own = byTeam.get(lease.first.teamId);
    if (own === undefined) byTeam.set(lease.first.teamId, [lease]);
    else own.push(lease);
  }
  const outside = new Set<string>();
  for (const [teamId, own] of byTeam) {
    let left = guarantees.get(teamId) ?? 0;
    for (const lease of own.sort(bySeniority)) {
      if (lease.milli <= left) left -= lease.milli;
      else if (!lease.first.guaranteedOnly) outside.add(lease.id);
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
