/** What holds a request back inside its own team: the quota, and those of the team who come before it. */
import type { Asker } from "./placement.ts";
import type { TeamState } from "./team-state.ts";
import type { Obstacle, Waiting } from "./types.ts";

/** Which rule of the quota it does not meet now; those behind it hear of it. */
export function quotaObstacle(request: Waiting, team: TeamState, least: number): Obstacle | undefined {
  const { requestId, userId } = request;
  const { personMilli } = team.quota;
  if (least > team.leftBelowLimitNow(userId)) {
    team.firstForLimit ??= requestId;
    return { rule: "team-limit", ever: false };
  }
  if (personMilli !== undefined && team.usedBy(userId) + least > personMilli) {
    if (!team.firstOfPerson.has(userId)) team.firstOfPerson.set(userId, requestId);
    return { rule: "person-limit", ever: false };
  }
  if (request.guaranteedOnly && least > team.leftForGuaranteedOnly(userId)) {
    team.firstForGuarantee ??= requestId;
    return { rule: "guaranteed", ever: false };
  }
  return undefined;
}

/**
 * Nobody of a team overtakes at the cost of one ahead: neither of the limit, nor of a place inside the guarantee, nor
 * of the team's turn at the surplus. What is reserved for one person costs the others nothing.
 */
export function orderInTeam(request: Waiting, team: TeamState, least: number): Obstacle | undefined {
  const behind = (requestId: string | undefined): Obstacle | undefined =>
    requestId === undefined || requestId === request.requestId ? undefined : { rule: "order", behind: requestId };
  const { userId } = request;
  const ofPerson = behind(team.firstOfPerson.get(userId)) ?? behind(team.aheadOfPerson(userId, least));
  if (ofPerson !== undefined || team.isOwn(request, least)) return ofPerson;
  return (
    behind(team.firstForLimit) ??
    (request.guaranteedOnly ? behind(team.firstForGuarantee) : undefined) ??
    (least > team.leftBelowLimit(userId) ? behind(team.aheadOfTeam()) : undefined) ??
    (team.isClaim(request, least) ? undefined : behind(team.firstClaim ?? team.first))
  );
}

/** Which part of the quota a request is placed in: it matters where the charge goes by the device. */
export type Part = "inside" | "all";

/** What two requests have in common that fit the same devices in this part of the quota. */
export function placing({ request }: Asker, team: TeamState, part: Part): string {
  return request.memoryBytes > 0 ? `${shapeOf(request, team)}/${part}` : shapeOf(request, team);
}

/** Only what the guarantee leaves. */
export function insideGuarantee(asker: Asker, team: TeamState): Asker {
  return { ...asker, headroomMilli: Math.min(asker.headroomMilli, team.leftInside(asker.request.userId)) };
}

/** Requests of one shape fit the same devices. Memory is charged by device, and what the team has left bounds it. */
export function shapeOf(request: Waiting, team: TeamState): string {
  const { milli, memoryBytes, pinnedGpuId = "", needs, guaranteedOnly } = request;
  const shape = `${milli}/${memoryBytes}/${pinnedGpuId}/${needs === undefined ? "" : JSON.stringify(needs)}`;
  const own = memoryBytes > 0 || (team.quota.coTenancy ?? "any") !== "any";
  const kept = request.keptGpuIds?.length ? request.requestId : "";
  return own ? `${shape}/${guaranteedOnly}/${request.teamId}/${request.userId}/${kept}` : `${shape}/${kept}`;
}
