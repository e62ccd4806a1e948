/** Which devices a request may lie on, whatever is free there. */
import { WHOLE } from "./amount.ts";
import type { Room } from "./room.ts";
import type { CoTenancy, Labels, Needs, Quota } from "./types.ts";

/** Whether the labels meet the needs. What is not known of a device meets no need. */
export function meets(needs: Needs | undefined, labels: Labels): boolean {
  if (needs === undefined) return true;
  const { zone, maxRttUs, minCudaVersion, minDriverVersion } = needs;
  return (
    (zone === undefined || labels.zone === zone) &&
    (maxRttUs === undefined || (labels.rttUs !== undefined && labels.rttUs <= maxRttUs)) &&
    (minCudaVersion === undefined || (labels.cudaVersion !== undefined && labels.cudaVersion >= minCudaVersion)) &&
    (minDriverVersion === undefined ||
      (labels.driverVersion !== undefined && compareVersions(labels.driverVersion, minDriverVersion) >= 0))
  );
}

/** Orders versions like `580.65.06` by their numbers; one that says less is the first of its line. */
export function compareVersions(one: string, other: string): number {
  const [a, b] = [one.split(".").map(Number), other.split(".").map(Number)];
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const order = (a[at] ?? 0) - (b[at] ?? 0);
    if (order !== 0) return order;
  }
  return 0;
}

/** Policies of other teams bind too: who never shares a card is not joined by anybody else. */
export type CoTenancyOf = (teamId: string) => CoTenancy;

/** Nothing when every team shares cards with every other, which spares looking at who lies where. */
export function coTenancyIn(quotas: ReadonlyMap<string, Quota>): CoTenancyOf | undefined {
  const exclusive = [...quotas.values()].some(({ coTenancy = "any" }) => coTenancy !== "any");
  return exclusive ? (teamId) => quotas.get(teamId)?.coTenancy ?? "any" : undefined;
}

/** Whether a team's lease may join those that hold a part of this device, less those that are about to leave it. */
export function mayJoin(
  teamId: string,
  room: Room,
  policyOf: CoTenancyOf,
  leaving?: ReadonlyMap<string, number>,
): boolean {
  for (const [other, count] of room.teams) {
    if (count > (leaving?.get(other) ?? 0) && !mayShare(teamId, other, policyOf)) return false;
  }
  return true;
}

/** Whether two teams' leases may lie on one card. */
export function mayShare(teamId: string, other: string, policyOf: CoTenancyOf): boolean {
  const [own, theirs] = [policyOf(teamId), policyOf(other)];
  if (own === "whole-cards" || theirs === "whole-cards") return false;
  return teamId === other || (own === "any" && theirs === "any");
}

/** What a team asks for under its policy: who takes whole cards only is charged for whole cards. */
export function underPolicy(milli: number, policy: CoTenancy): number {
  return policy === "whole-cards" ? Math.ceil(milli / WHOLE) * WHOLE : milli;
}
