/** What holds after every round of every history. Each check returns what is broken, in words, or nothing. */

import { mayShare, meets } from "../allowed.ts";
import { chargeOn, WHOLE } from "../amount.ts";
import { isSpent } from "../budget.ts";
import { quotaAt } from "../calendar.ts";
import { DEFAULT_POLICY, timesOf } from "../notice.ts";
import { devicesOf } from "../placement.ts";
import { allOf, reservationIdOf } from "../reservation.ts";
import { keptReservations, leasesOf, outsideGuarantee, type Promises, promisesAt, promisesNow } from "../share.ts";
import { stopFor } from "../stops.ts";
import { teamsOf } from "../team-state.ts";
import type { Holding, Waiting, World } from "../types.ts";
import type { Happened } from "./machine.ts";

export type Check = (happened: Happened) => string | undefined;

const sum = (holdings: readonly Holding[]) => holdings.reduce((total, one) => total + one.milli, 0);
const find = (queue: readonly Waiting[], requestId: string) => queue.find((one) => one.requestId === requestId);
const grantsOf = ({ before, round }: Happened) =>
  round.verdicts.flatMap((verdict) => {
    const request = find(before.queue, verdict.requestId);
    return verdict.state === "granted" && request ? [{ request, placement: verdict.placement }] : [];
  });

const noDeviceOverCommitted: Check = ({ after }) => {
  for (const device of after.devices) {
    const there = after.holdings.filter((one) => one.gpuId === device.id);
    const bytes = there.reduce((total, one) => total + one.memoryBytes, 0);
    if (sum(there) > WHOLE) return `device ${device.id} has ${sum(there)} leased`;
    if (bytes > device.memoryBytes) return `device ${device.id} has ${bytes} bytes leased`;
  }
  return undefined;
};

const nobodyAboveLimit: Check = (happened) => {
  const { after } = happened;
  const { quotas } = promisesNow(happened.before);
  for (const { request } of grantsOf(happened)) {
    const quota = quotas.get(request.teamId);
    const own = after.holdings.filter((one) => one.teamId === request.teamId);
    if (quota === undefined || sum(own) > quota.limitMilli) return `team ${request.teamId} is above its limit`;
    const personal = sum(own.filter((one) => one.userId === request.userId));
    if (personal > (quota.personMilli ?? Number.POSITIVE_INFINITY)) return `${request.userId} is above the ceiling`;
  }
  return undefined;
};

/** Who takes more than what is reserved for them leaves to the others of the team what is reserved for those. */
const nobodyUsesWhatIsReservedForAnother: Check = (happened) => {
  const { after } = happened;
  const { quotas, own } = promisesNow(happened.before);
  for (const { request } of grantsOf(happened)) {
    const ofTeam = own.get(request.teamId);
    if (ofTeam === undefined) continue;
    const held = (userId: string) =>
      sum(after.holdings.filter((one) => one.teamId === request.teamId && one.userId === userId));
    if (held(request.userId) <= (ofTeam.get(request.userId) ?? 0)) continue;
    let promised = sum(after.holdings.filter((one) => one.teamId === request.teamId));
    for (const [userId, milli] of ofTeam) promised += Math.max(0, milli - held(userId));
    const limit = quotas.get(request.teamId)?.limitMilli ?? 0;
    if (promised > limit) return `${request.requestId} took what is reserved for another of team ${request.teamId}`;
  }
  return undefined;
};

const chargedAsTheRulesSay: Check = (happened) => {
  for (const { request, placement } of grantsOf(happened)) {
    const whole = happened.before.quotas.get(request.teamId)?.coTenancy === "whole-cards";
    const count = Math.max(1, Math.ceil(request.milli / WHOLE));
    if (placement.pieces.length !== count)
      return `${request.requestId} got ${placement.pieces.length} of ${count} devices`;
    if (new Set(placement.pieces.map((one) => one.gpuId)).size !== count)
      return `${request.requestId} got a device twice`;
    for (const piece of placement.pieces) {
      const device = happened.before.devices.find((one) => one.id === piece.gpuId);
      const { pinnedGpuId = piece.gpuId, needs } = request;
      if (device && (device.id !== pinnedGpuId || !meets(needs, device)))
        return `${request.requestId} was placed where it may not lie`;
      if (device?.state !== "open") return `${request.requestId} was placed on a device that takes no leases`;
      const milli = whole ? WHOLE : Math.min(WHOLE, request.milli);
      if (piece.milli !== chargeOn({ milli, memoryBytes: request.memoryBytes }, device.memoryBytes)) {
        return `${request.requestId} is charged ${piece.milli}`;
      }
    }
  }
  return undefined;
};

const coTenancyHolds: Check = ({ after, before }) => {
  const fresh = after.holdings.filter((one) => !before.holdings.some((old) => old.leaseId === one.leaseId));
  for (const one of fresh) {
    for (const other of after.holdings) {
      if (other === one || other.gpuId !== one.gpuId) continue;
      const [own, theirs] = [one, other].map((each) => after.quotas.get(each.teamId)?.coTenancy ?? "any");
      if (own === "whole-cards") return `${one.leaseId} does not have its card alone`;
      if (one.teamId !== other.teamId && (own !== "any" || theirs !== "any")) return `${one.leaseId} shares a card`;
    }
  }
  return undefined;
};

const everybodyHasOneVerdict: Check = ({ before, round }) => {
  const judged = round.verdicts.map((verdict) => verdict.requestId).sort();
  const asked = before.queue.map((one) => one.requestId).sort();
  if (judged.join() !== asked.join()) return `asked ${asked.join()}, judged ${judged.join()}`;
  const places = round.verdicts.flatMap((verdict) => (verdict.state === "queued" ? [verdict.position] : []));
  return places.every((place, index) => place === index + 1) ? undefined : `places ${places.join()}`;
};

/** Of two that are alike but for their age, the older is never passed over. */
const firstComeFirstServed: Check = ({ before, round }) => {
  const verdicts = new Map(round.verdicts.map((verdict) => [verdict.requestId, verdict]));
  const alike = (a: Waiting, b: Waiting) =>
    a.teamId === b.teamId &&
    a.userId === b.userId &&
    a.milli === b.milli &&
    a.memoryBytes === b.memoryBytes &&
    a.guaranteedOnly === b.guaranteedOnly &&
    a.kind === b.kind &&
    (a.rank ?? 0) === (b.rank ?? 0) &&
    a.pinnedGpuId === b.pinnedGpuId &&
    a.needs?.zone === b.needs?.zone &&
    !a.keptGpuIds?.length &&
    !b.keptGpuIds?.length;
  for (const [index, older] of before.queue.entries()) {
    for (const younger of before.queue.slice(index + 1)) {
      if (older.createdAt > younger.createdAt || !alike(older, younger)) continue;
      const passed =
        verdicts.get(older.requestId)?.state === "queued" && verdicts.get(younger.requestId)?.state === "granted";
      if (passed) return `${younger.requestId} passed ${older.requestId}`;
    }
  }
  return undefined;
};

/**
 * Only from other teams, only from outside their guarantee, never what was asked for with --guaranteed, and only for
 * who would be granted it.
 */
const onlyTheReclaimableIsTaken: Check = ({ before, after, round }) => {
  // With what this round has granted: who comes inside a guarantee pushes out what the team itself borrowed before.
  const leases = leasesOf(after.holdings);
  const outsideNow = outsideGuarantee(leases, promisesNow(before));
  for (const { leaseId, notice } of round.notices) {
    const lease = leases.find((one) => one.id === leaseId);
    const unit = unitOf(notice.requestId, before);
    const claimant = unit?.request ?? find(before.queue, notice.requestId);
    if (lease === undefined || claimant === undefined) return `${leaseId} is taken for nobody`;
    // What is reserved for later is taken from those who are outside then.
    const at = unit?.at ?? before.now;
    const promises = promisesAt(before, at);
    const outside = outsideGuarantee(leases, promises);
    if (lease.first.guaranteedOnly) return `${leaseId} was never to be taken back`;
    if (!outside.has(leaseId)) return `${leaseId} lies inside its team's guarantee`;
    if (!outsideNow.has(leaseId) && notice.releaseAt < at) return `${leaseId} is taken while it is guaranteed`;
    if (lease.first.teamId === claimant.teamId) return `${leaseId} is the claimant's own team's`;
    if (stopFor(claimant, before.stops)) return `${leaseId} is taken for one who is stopped`;
    const { personMilli = Number.POSITIVE_INFINITY, budget } = before.quotas.get(claimant.teamId) ?? {};
    if (isSpent(budget, at)) return `${leaseId} is taken for a team without budget`;
    if (leastCharge(claimant, before) > personMilli) return `${leaseId} is taken for more than a person may have`;
    // What was told before holds for the next claimant too, though the team's times have changed since.
    const told = leasesOf(before.holdings).find((one) => one.id === leaseId)?.first.notice;
    if (told?.at === notice.at && told.releaseAt === notice.releaseAt) continue;
    const { minRunMs, noticeMs } = timesOf(before)(lease.first.teamId);
    if (notice.releaseAt < notice.at + noticeMs || notice.at > before.now) return `${leaseId} has no full notice`;
    // A lease that was granted in what is now the future, because the clock jumped back, counts from now on.
    if (notice.releaseAt < Math.min(lease.first.grantedAt, notice.at) + minRunMs)
      return `${leaseId} did not have its minimum run time`;
    if (leastCharge(claimant, before) > leftInside(claimant, after, promises))
      return `${claimant.requestId} is not below its own share`;
  }
  return undefined;
};

/** A part of a reservation for which room is made before anybody asks for it, and when it is due. */
function unitOf(requestId: string, world: World): { request: Waiting; at: number } | undefined {
  const made = keptReservations(world).find((one) => one.id === reservationIdOf(requestId));
  if (made === undefined) return undefined;
  const [unit] = allOf(made);
  // How large the part is that is missing follows from what is held.
  return unit && { request: { ...unit, requestId, milli: 1 }, at: Math.max(world.now, made.from) };
}

/** What this request may still take of its team's guarantee, as things stand. */
function leftInside({ teamId, userId }: Waiting, { holdings }: World, promises: Promises): number {
  return teamsOf(holdings, promises).get(teamId)?.leftInsideNow(userId) ?? 0;
}

function leastCharge(request: Waiting, world: World): number {
  if (request.memoryBytes === 0) return request.milli;
  return Math.min(...world.devices.map((device) => chargeOn(request, device.memoryBytes)));
}

/** With those who were told gone, the claimant fits; with any one of them still there, it does not. */
const nobodyIsTakenForNothing: Check = ({ before, after, round }) => {
  for (const requestId of new Set(round.notices.map((one) => one.notice.requestId))) {
    // What is reserved is kept by the reservation, whichever device it will be.
    if (unitOf(requestId, before) !== undefined) continue;
    const claimant = find(after.queue, requestId);
    const gpuIds = claimant?.keptGpuIds ?? [];
    if (claimant === undefined || gpuIds.length === 0) return `nothing is kept for ${requestId}`;
    const told = leasesOf(after.holdings).filter(({ first }) => first.notice?.requestId === requestId);
    const fits = (gone: ReadonlySet<string>) =>
      gpuIds.every((gpuId) => fitsOn(claimant, gpuId, after, (one) => gone.has(one.groupId ?? one.leaseId)));
    const all = new Set(told.map((lease) => lease.id));
    if (!fits(all)) return `${requestId} would not fit after the reclaim`;
    // What is kept there for a reservation is not seen here.
    if (keptReservations(before).length > 0) continue;
    for (const { id } of told) {
      if (fits(new Set([...all].filter((other) => other !== id)))) return `${id} is taken for nothing`;
    }
  }
  return undefined;
};

function fitsOn(request: Waiting, gpuId: string, world: World, gone: (holding: Holding) => boolean): boolean {
  const device = world.devices.find((one) => one.id === gpuId);
  if (device?.state !== "open" || (request.pinnedGpuId ?? gpuId) !== gpuId || !meets(request.needs, device))
    return false;
  const onIt = world.holdings.filter((one) => one.gpuId === gpuId);
  const there = onIt.filter((one) => !gone(one) && !one.ending);
  const claims = world.queue.filter((one) => one !== request && one.keptGpuIds?.includes(gpuId));
  const policyOf = (teamId: string) => world.quotas.get(teamId)?.coTenancy ?? "any";
  if (![...there, ...claims].every(({ teamId }) => mayShare(request.teamId, teamId, policyOf))) return false;
  const takes = (one: Waiting) => {
    const milli = policyOf(one.teamId) === "whole-cards" ? WHOLE : Math.min(WHOLE, one.milli);
    const memoryBytes = one.memoryBytes || Math.floor((device.memoryBytes * milli) / WHOLE);
    return { milli: chargeOn({ milli, memoryBytes: one.memoryBytes }, device.memoryBytes), memoryBytes };
  };
  let { milli, memoryBytes } = takes(request);
  // Others for whom room is made there take what those leave who were told for their sake, and what is missing of what is free.
  for (const one of claims) {
    const told = onIt.filter(({ notice, ending }) => notice?.requestId === one.requestId && !ending);
    const piece = takes(one);
    milli += Math.max(0, piece.milli - sum(told));
    memoryBytes += Math.max(0, piece.memoryBytes - bytesOf(told));
  }
  return sum(there) + milli <= WHOLE && bytesOf(there) + memoryBytes <= device.memoryBytes;
}

const bytesOf = (holdings: readonly Holding[]) => holdings.reduce((total, one) => total + one.memoryBytes, 0);

/** Who waits inside the guarantee for one device that reclaiming would make free is served, or room is being made. */
const guaranteesAreReached: Check = ({ before, after, round }) => {
  const promises = promisesNow(before);
  // Who comes inside a guarantee in this round may bring another of its team inside, and push out what lies elsewhere.
  const outside = outsideGuarantee(leasesOf(before.holdings), promises);
  const outsideThen = outsideGuarantee(leasesOf(after.holdings), promises);
  const isOutside = (leaseId: string) => outside.has(leaseId) && outsideThen.has(leaseId);
  for (const verdict of round.verdicts) {
    if (verdict.state !== "queued" || !["free-device", "order"].includes(verdict.obstacle.rule)) continue;
    const request = find(after.queue, verdict.requestId);
    if (request === undefined || request.milli > WHOLE || request.guaranteedOnly) continue;
    // Of each team the first in line: others come after it.
    const behind = after.queue.some((one) => one !== request && one.teamId === request.teamId);
    const whole = after.quotas.get(request.teamId)?.coTenancy === "whole-cards";
    const { personMilli = Number.POSITIVE_INFINITY } = after.quotas.get(request.teamId) ?? {};
    const theirs = sum(after.holdings.filter((one) => one.teamId === request.teamId && one.userId === request.userId));
    const left = Math.min(leftInside(request, after, promises), personMilli - theirs);
    // Memory is charged by device: more than the guarantee leaves is no claim there.
    const isClaim = ({ memoryBytes }: World["devices"][number]) =>
      chargeOn({ ...request, milli: whole ? WHOLE : request.milli }, memoryBytes) <= left;
    if (behind) continue;
    const removable = (one: Holding) =>
      isOutside(one.groupId ?? one.leaseId) && one.teamId !== request.teamId && one.notice === undefined;
    const possible = after.devices.filter((one) => isClaim(one) && fitsOn(request, one.id, after, removable));
    // Those before it that wait for a device have as many kept for them in this round, or have one of others to come beside.
    const ahead = round.verdicts.slice(0, round.verdicts.indexOf(verdict)).reduce((count, one) => {
      const asked = find(after.queue, one.requestId);
      if (one.state !== "queued" || asked?.keptGpuIds?.length || !FOR_A_DEVICE.has(one.obstacle.rule)) return count;
      return count + devicesOf(asked ?? request);
    }, 0);
    if (possible.length > ahead) return `${request.requestId} waits although ${possible[0]?.id} could be made free`;
  }
  return undefined;
};

const FOR_A_DEVICE: ReadonlySet<string> = new Set(["free-device", "order", "pinned", "reclaim"]);

/** Room is made within the longer of the notice and the minimum run time; no team has longer ones than the pool. */
const roomIsMadeInTime: Check = ({ before, round }) => {
  const { noticeMs, minRunMs } = before.policy ?? DEFAULT_POLICY;
  const latest = before.now + Math.max(noticeMs, minRunMs);
  for (const verdict of round.verdicts) {
    if (verdict.state !== "queued" || verdict.obstacle.rule !== "reclaim") continue;
    const late = verdict.obstacle.releaseAt - latest;
    if (late > 0) return `${verdict.requestId} waits ${late} ms too long for its room`;
  }
  return undefined;
};

/** Who had room made for it gets it, unless the world changed from outside meanwhile. */
const noReclaimLeavesTheClaimantWaiting: Check = ({ cleared, before, after }) => {
  for (const requestId of cleared) {
    if (find(before.queue, requestId) === undefined) continue;
    if (find(after.queue, requestId) !== undefined) return `${requestId} still waits after the reclaim`;
  }
  return undefined;
};

const noBudgetIsOverdrawn: Check = (happened) => {
  const { now, quotas } = happened.before;
  for (const { request } of grantsOf(happened)) {
    const budget = quotas.get(request.teamId)?.budget;
    if (budget !== undefined && now < budget.endsAt && budget.usedMilliHours >= budget.milliHours)
      return `${request.requestId} is granted on a budget that is used up`;
  }
  return undefined;
};

const nothingIsGrantedUnderAStop: Check = (happened) => {
  const stopped = grantsOf(happened).find(({ request }) => stopFor(request, happened.before.stops));
  return stopped && `${stopped.request.requestId} is granted under a stop`;
};

const onlyOpenWorkIsTaken: Check = (happened) => {
  const kinds = happened.before.open?.kinds ?? ["interactive", "batch"];
  for (const { request } of grantsOf(happened)) {
    const kind = request.kind ?? "interactive";
    if (!kinds.includes(kind)) return `${request.requestId} is ${kind} and granted at the time of ${kinds.join()}`;
  }
  return undefined;
};

/** Nobody is refused for a bound that their team's calendar raises far enough within a day: they may wait for it. */
const whoMayWaitForMoreIsNotRefused: Check = ({ before, round }) => {
  for (const verdict of round.verdicts) {
    if (verdict.state !== "refused") continue;
    if (verdict.obstacle.rule !== "team-limit" && verdict.obstacle.rule !== "guaranteed") continue;
    const request = find(before.queue, verdict.requestId);
    const { calendar, coTenancy } = before.quotas.get(request?.teamId ?? "") ?? {};
    if (request === undefined || calendar === undefined || request.memoryBytes > 0 || coTenancy === "whole-cards")
      continue;
    for (let minute = 1; minute < 24 * 60; minute++) {
      const at = before.now + minute * 60_000;
      const then = quotaAt(calendar, at);
      if (request.milli <= (request.guaranteedOnly ? then.guaranteedMilli : then.limitMilli))
        return `${request.requestId} is refused, and could have its GPU in ${minute} minutes`;
    }
  }
  return undefined;
};

const everythingAddsUp: Check = ({ after, granted, ended }) =>
  granted - ended === sum(after.holdings)
    ? undefined
    : `granted ${granted}, ended ${ended}, held ${sum(after.holdings)}`;

export const checks: Record<string, Check> = {
  "no device is over-committed, in compute or in memory": noDeviceOverCommitted,
  "no team is above its limit, no person above the ceiling": nobodyAboveLimit,
  "what is reserved for one person is left to them": nobodyUsesWhatIsReservedForAnother,
  "a lease is charged as the rules say, and whole: all its devices or none": chargedAsTheRulesSay,
  "who does not share cards shares none": coTenancyHolds,
  "everybody who waits has one verdict and one place": everybodyHasOneVerdict,
  "first come, first served within equal need": firstComeFirstServed,
  "only what is above a guarantee is taken, for a team below its own, with full notice": onlyTheReclaimableIsTaken,
  "nobody is taken back for nothing": nobodyIsTakenForNothing,
  "a guarantee that reclaiming can serve is served": guaranteesAreReached,
  "room is made within the notice and the minimum run time": roomIsMadeInTime,
  "no reclaim leaves the claimant waiting": noReclaimLeavesTheClaimantWaiting,
  "nothing is granted on a budget that is used up": noBudgetIsOverdrawn,
  "what the pool does not take now waits": onlyOpenWorkIsTaken,
  "nothing is granted under a stop": nothingIsGrantedUnderAStop,
  "who may wait for more is not refused": whoMayWaitForMoreIsNotRefused,
  "everything released adds up": everythingAddsUp,
};

/** The first rule that one of these rounds breaks, in words. */
export function broken(happened: readonly Happened[]): string | undefined {
  for (const one of happened) {
    for (const [name, check] of Object.entries(checks)) {
      const words = check(one);
      if (words !== undefined) return `${name}: ${words}`;
    }
  }
  return undefined;
}
