/** What a team could get now, and at most ever. */
import { coTenancyIn, mayJoin, meets } from "./allowed.ts";
import { WHOLE } from "./amount.ts";
import { isSpent } from "./budget.ts";
import { leastChargeOn } from "./never.ts";
import { devicesOf } from "./placement.ts";
import { evaluateQueue } from "./queue.ts";
import { roomOf } from "./room.ts";
import { promisesNow } from "./share.ts";
import { quotaFor, teamsOf } from "./team-state.ts";
import type { Waiting, World } from "./types.ts";

export type Asking = Pick<
  Waiting,
  "requestId" | "teamId" | "guaranteedOnly" | "pinnedGpuId" | "userId" | "who" | "maxDevices" | "needs" | "kind"
>;

const present = (world: World) => world.devices.filter((device) => device.state !== "gone");

/** The most that today's rules could ever grant this request's team in one lease. */
export function largestEver(
  request: Pick<Asking, "teamId" | "userId" | "guaranteedOnly" | "maxDevices">,
  world: World,
): number {
  const quota = quotaFor(request, world);
  const devices = present(world).length;
  if (quota === undefined || devices === 0 || isSpent(quota.budget, world.now)) return 0;
  const { limitMilli, personMilli = limitMilli, guaranteedMilli } = quota;
  const most = Math.min(limitMilli, personMilli, request.guaranteedOnly ? guaranteedMilli : limitMilli);
  const several = Math.min(devices, request.maxDevices ?? 1) * WHOLE;
  return Math.max(0, most <= WHOLE ? most : Math.min(several, Math.floor(most / WHOLE) * WHOLE));
}

/** Among so many leases and requests a part of the largest free piece is looked for, too. */
const LOOKED_INTO = 200;

/** Those of a world that a round has gone through, by what the answer follows from; nobody changes such a world. */
const known = new WeakMap<ReadonlySet<string>, Map<string, number>>();

/** The most that would be granted at once if it were asked for in place of this request. */
export function fitsNow(request: Asking, world: World): number {
  const { bearing } = world;
  if (bearing === undefined || bearing.has(request.requestId)) return mostThatFits(request, world);
  const answers = known.get(bearing) ?? new Map<string, number>();
  known.set(bearing, answers);
  const { teamId, userId, guaranteedOnly, pinnedGpuId, needs, kind } = request;
  const key = JSON.stringify([teamId, isPersonal(teamId, world) && userId, guaranteedOnly, pinnedGpuId, needs, kind]);
  const answer = answers.get(key) ?? mostThatFits(request, world);
  answers.set(key, answer);
  return answer;
}

/** Whether it matters which person of the team asks. */
function isPersonal(teamId: string, world: World): boolean {
  const { quotas, own } = promisesNow(world);
  return quotas.get(teamId)?.personMilli !== undefined || own.has(teamId) || (world.stops?.length ?? 0) > 0;
}

function mostThatFits(request: Asking, world: World): number {
  const held = world.holdings.filter((holding) => holding.teamId === request.teamId);
  const team = teamsOf(held, promisesNow(world)).get(request.teamId);
  if (team === undefined) return 0;
  const policyOf = coTenancyIn(world.quotas);
  const rooms = [...roomOf(world.devices, world.holdings).values()].filter(
    (room) =>
      room.device.state === "open" &&
      (request.pinnedGpuId === undefined || room.device.id === request.pinnedGpuId) &&
      meets(request.needs, room.device) &&
      (policyOf === undefined || mayJoin(request.teamId, room, policyOf)),
  );
  const pieces = rooms.map((room) => Math.min(room.freeMilli, memoryInThousandths(room)));
  const candidate = Math.min(team.headroom(request), WHOLE, Math.max(0, ...pieces));
  if (candidate <= 0) return 0;
  const { requestId, teamId, userId, who, guaranteedOnly, pinnedGpuId, needs, kind } = request;
  const asked: Omit<Waiting, "milli"> = {
    ...{ requestId, teamId, userId, who, guaranteedOnly, pinnedGpuId, needs, kind },
    ...{ memoryBytes: 0, createdAt: Number.MAX_SAFE_INTEGER, lengthMs: 0 },
    rank: Number.MIN_SAFE_INTEGER,
  };
  const others = othersFor(requestId, world);
  const isGranted = (milli: number) => {
    const verdicts = evaluateQueue({ ...world, queue: [...others, { ...asked, milli }] });
    const verdict = verdicts.find((one) => one.requestId === requestId);
    return verdict?.state === "granted" && verdict.placement.milli === milli;
  };
  if (isGranted(candidate)) return candidate;
  // A part of what is free may be kept for others. Where a round takes long, that is not looked into.
  if (others.length + world.holdings.length > LOOKED_INTO) return 0;
  let [most, tooMuch] = [0, candidate];
  while (tooMuch - most > 1) {
    const middle = Math.floor((most + tooMuch) / 2);
    if (isGranted(middle)) most = middle;
    else tooMuch = middle;
  }
  return most;
}

/** Those who wait beside it and have a say; when its own place decides about others, that may be any of them. */
function othersFor(requestId: string, { queue, bearing }: World): Waiting[] {
  const any = bearing === undefined || bearing.has(requestId);
  return queue.filter((waiting) => waiting.requestId !== requestId && (any || bearing.has(waiting.requestId)));
}

function memoryInThousandths(room: { freeBytes: number; device: { memoryBytes: number } }): number {
  const { memoryBytes } = room.device;
  if (memoryBytes <= 0) return 0;
  return Number((BigInt(Math.max(0, room.freeBytes)) * BigInt(WHOLE)) / BigInt(memoryBytes));
}

/** What the request would be charged at least, for people. */
export function leastCharge(amount: Pick<Waiting, "milli" | "memoryBytes" | "needs">, world: World): number {
  return devicesOf(amount) === 1 ? leastChargeOn(amount, world.devices) : amount.milli;
}
