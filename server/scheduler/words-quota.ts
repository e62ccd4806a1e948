/** Sentences for what a quota stops. */
import type { LeaseReason } from "../contracts/lease.ts";
import { formatBytes, formatMilli, formatQuota } from "./amount.ts";
import { inUtc } from "./calendar.ts";
import { attachHint, holders, soonerHint } from "./holders.ts";
import { askerSeen, isAsker, type Seen, waiterSeen } from "./seen-by.ts";
import { areEnoughInAll, promisesNow, usedBy } from "./share.ts";
import { quotaFor } from "./team-state.ts";
import type { More, Obstacle, Waiting, World } from "./types.ts";
import { reservedInTeam } from "./words-reservation.ts";

export type Words = Pick<LeaseReason, "rule" | "message" | "hint" | "holders">;

/** More than the team may use at once, at any time or until a later one. */
export function limitEver(
  request: Waiting,
  more: More | undefined,
  world: Seen,
  { fits, largest }: { fits: number; largest: number },
): Words {
  const quota = quotaFor(request, world);
  if (quota === undefined) {
    return {
      rule: "team-limit",
      message: `${world.reader.teamIds.includes(request.teamId) ? "Your" : "The"} team has no quota for ${world.gpuType}.`,
      hint: "ask your team lead or an admin for a quota",
    };
  }
  const asked =
    request.memoryBytes > 0
      ? `${formatBytes(request.memoryBytes)}, which is ${formatMilli(request.milli)}`
      : formatMilli(request.milli);
  return {
    rule: "team-limit",
    message: [
      `team ${quota.teamName} may use at most ${formatQuota(quota.limitMilli)} ${world.gpuType} at once; ${askerSeen(request, world)} asked for ${asked}.`,
      more && `From ${inUtc(more.at)} on it may use ${formatQuota(more.milli)}.`,
    ]
      .filter(Boolean)
      .join(" "),
    hint: fits > 0 || largest > 0 ? attachHint(fits > 0 ? fits : largest, world) : "ask your team lead for more",
  };
}

export function limitNow(request: Waiting, world: Seen, fits: number): Words {
  const quota = promisesNow(world).quotas.get(request.teamId);
  const limit = quota?.limitMilli ?? 0;
  const used = usedBy(request.teamId, world);
  const own = world.holdings.filter((holding) => holding.teamId === request.teamId);
  const team = `team ${quota?.teamName ?? ""}`;
  const message =
    used >= limit
      ? `${team} is at its limit (${formatQuota(used)} of ${formatQuota(limit)} ${world.gpuType}).`
      : `${team} holds ${formatQuota(used)} of the ${formatQuota(limit)} ${world.gpuType} that its limit allows; ${askerSeen(request, world)} asked for ${formatQuota(request.milli)}.`;
  return {
    rule: "team-limit",
    message: [message, reservedInTeam(request, world)].filter(Boolean).join(" "),
    hint: soonerHint(request, own, fits, world),
    holders: holders(request, own, world),
  };
}

export function guaranteedWords(
  request: Waiting,
  { ever, more }: Pick<Extract<Obstacle, { rule: "guaranteed" }>, "ever" | "more">,
  world: Seen,
): Words {
  const amount = formatMilli(request.milli);
  if (ever || more) {
    const quota = quotaFor(request, world);
    const guaranteed = quota?.guaranteedMilli ?? 0;
    return {
      rule: "guaranteed",
      message: [
        `team ${quota?.teamName ?? ""} has ${formatQuota(guaranteed)} ${world.gpuType} guaranteed; ${askerSeen(request, world)} asked for ${amount} inside it.`,
        more && `From ${inUtc(more.at)} on it has ${formatQuota(more.milli)}.`,
      ]
        .filter(Boolean)
        .join(" "),
      hint: `${attachHint(request.milli, world)} without --guaranteed borrows beyond it`,
    };
  }
  const { quotas, guarantees } = promisesNow(world);
  const quota = quotas.get(request.teamId);
  const guaranteed = guarantees.get(request.teamId) ?? 0;
  const own = world.holdings.filter((holding) => holding.teamId === request.teamId && !holding.borrowed);
  const used = own.reduce((sum, holding) => sum + holding.milli, 0);
  const message = `team ${quota?.teamName ?? ""} uses ${formatQuota(used)} of its ${formatQuota(guaranteed)} guaranteed ${world.gpuType}.`;
  return {
    rule: "guaranteed",
    message: [message, reservedInTeam(request, world), scaledDown(request.teamId, world)].filter(Boolean).join(" "),
    hint: `${attachHint(request.milli, world)} without --guaranteed borrows beyond it`,
    holders: holders(request, own, world),
  };
}

/** What one person of a team may hold at once. */
export function personWords(request: Waiting, ever: boolean, world: Seen, fits: number): Words {
  const quota = world.quotas.get(request.teamId);
  const most = formatQuota(quota?.personMilli ?? 0);
  const own = world.holdings.filter(({ teamId, userId }) => teamId === request.teamId && userId === request.userId);
  const each = `each person of team ${quota?.teamName ?? ""} may hold at most ${most} ${world.gpuType} at once`;
  if (ever) {
    const hint = attachHint(fits > 0 ? fits : (quota?.personMilli ?? 0), world);
    return {
      rule: "person-limit",
      message: `${each}; ${askerSeen(request, world)} asked for ${formatMilli(request.milli)}.`,
      hint,
    };
  }
  const held = formatQuota(own.reduce((sum, { milli }) => sum + milli, 0));
  const holds = isAsker(request, world) ? "you hold" : `${waiterSeen(request, world)} holds`;
  return {
    rule: "person-limit",
    message: `${each}, and ${holds} ${held}.`,
    hint: soonerHint(request, own, fits, world),
    holders: holders(request, own, world),
  };
}

/** A budget that is used up. */
export function budgetWords(request: Waiting, resetsAt: number, world: World): Words {
  const quota = world.quotas.get(request.teamId);
  const hours = formatQuota(quota?.budget?.milliHours ?? 0);
  const day = new Date(resetsAt).toISOString().slice(0, 10);
  return {
    rule: "budget",
    message: `team ${quota?.teamName ?? ""} has used its budget of ${hours} GPU-hours of ${world.gpuType}; the next begins on ${day}.`,
    hint: "ask your team lead or an admin for a larger budget",
  };
}

/** Says when less than the quota is guaranteed because devices are missing, and whether they can come back; nothing when all is. */
export function scaledDown(teamId: string, world: World): string | undefined {
  const promises = promisesNow(world);
  const quota = promises.quotas.get(teamId);
  const now = promises.guarantees.get(teamId);
  if (quota === undefined || now === undefined || now >= quota.guaranteedMilli) return undefined;
  const part = `${formatQuota(now)} of the ${formatQuota(quota.guaranteedMilli)} of team ${quota.teamName} is guaranteed`;
  if (!areEnoughInAll(world)) return `There are fewer ${world.gpuType} devices than teams are guaranteed: ${part}.`;
  const states = world.devices.map(({ state }) => state).filter((state) => state !== "gone");
  const [away, drained] = [states.includes("away"), states.includes("draining")];
  const missing = states.filter((state) => state !== "open").length;
  const how = [away && "away", drained && "being drained"].filter(Boolean).join(" or ");
  return `${missing} of ${states.length} ${world.gpuType} devices are ${how}: ${part} until they are back.`;
}
