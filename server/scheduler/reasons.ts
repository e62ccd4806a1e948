/** Turns what stops a request into a reason a person can act on. */
import type { LeaseReason } from "../contracts/lease.ts";
import { chargeOn, formatBytes, formatMilli, formatQuota, WHOLE } from "./amount.ts";
import { roomOf } from "./placement.ts";
import { evaluateQueue } from "./queue.ts";
import type { Obstacle, Waiting, World } from "./types.ts";

/** The reason for a verdict that is not a grant. `request` need not be in the world's queue. */
export function explain(request: Waiting, obstacle: Obstacle, world: World): LeaseReason {
  const largest = largestEver(request, world);
  const fits = fitsNow(request, world);
  const bounds = { ...(fits > 0 ? { fitsNowMilli: fits } : {}), largestMilli: largest };
  return { ...wordsFor(request, obstacle, world, fits, largest), ...bounds };
}

type Words = Pick<LeaseReason, "rule" | "message" | "hint" | "holders">;

function wordsFor(request: Waiting, obstacle: Obstacle, world: World, fits: number, largest: number): Words {
  switch (obstacle.rule) {
    case "gpu-type":
      return {
        rule: "gpu-type",
        message: `There is no GPU type ${world.gpuType} in the pool.`,
        hint: "%gpu free shows the types there are",
      };
    case "amount":
      return amountWords(request, obstacle.why, world, largest);
    case "team-limit":
      return obstacle.ever ? limitEver(request, world, fits, largest) : limitNow(request, world, fits);
    case "guaranteed":
      return guaranteedWords(request, obstacle.ever, world);
    case "pinned":
      return pinnedWords(request, obstacle.why, world);
    case "no-server":
      return {
        rule: "no-server",
        message: `No GPU server with ${world.gpuType} takes leases just now; the request waits until one is back.`,
      };
    case "order":
      return orderWords(obstacle.behind, world, fits);
    case "free-device":
      return deviceWords(request, world, fits);
  }
}

function amountWords(
  request: Waiting,
  why: "several-gpus" | "more-memory-than-a-device",
  world: World,
  largest: number,
): Words {
  if (why === "several-gpus") {
    return {
      rule: "amount",
      message: `A notebook can borrow at most 1 GPU at once; you asked for ${formatMilli(request.milli)}.`,
      hint: attachHint(largest),
    };
  }
  const most = Math.max(0, ...present(world).map((device) => device.memoryBytes));
  return {
    rule: "amount",
    message: `You asked for ${formatBytes(request.memoryBytes)} of GPU memory; the largest ${world.gpuType} device has ${formatBytes(most)} for leases.`,
    hint: attachHint(largest),
  };
}

function limitEver(request: Waiting, world: World, fits: number, largest: number): Words {
  const quota = world.quotas.get(request.teamId);
  if (quota === undefined) {
    return {
      rule: "team-limit",
      message: `Your team has no quota for ${world.gpuType}.`,
      hint: "ask your team lead or an admin for a quota",
    };
  }
  const asked =
    request.memoryBytes > 0
      ? `${formatBytes(request.memoryBytes)}, which is ${formatMilli(request.milli)}`
      : formatMilli(request.milli);
  return {
    rule: "team-limit",
    message: `team ${quota.teamName} may use at most ${formatQuota(quota.limitMilli)} ${world.gpuType} at once; you asked for ${asked}.`,
    hint: fits > 0 || largest > 0 ? attachHint(fits > 0 ? fits : largest) : "ask your team lead for more",
  };
}

function limitNow(request: Waiting, world: World, fits: number): Words {
  const quota = world.quotas.get(request.teamId);
  const limit = quota?.limitMilli ?? 0;
  const used = usedBy(request.teamId, world);
  const own = world.holdings.filter((holding) => holding.teamId === request.teamId);
  const level = used >= limit ? "at its limit" : "near its limit";
  return {
    rule: "team-limit",
    message: `team ${quota?.teamName ?? ""} is ${level} (${formatQuota(used)} of ${formatQuota(limit)} ${world.gpuType}).`,
    hint: soonerHint(request, own, fits),
    holders: holders(request, own, world.now),
  };
}

function guaranteedWords(request: Waiting, ever: boolean, world: World): Words {
  const quota = world.quotas.get(request.teamId);
  const guaranteed = quota?.guaranteedMilli ?? 0;
  const amount = formatMilli(request.milli);
  if (ever) {
    return {
      rule: "guaranteed",
      message: `team ${quota?.teamName ?? ""} has ${formatQuota(guaranteed)} ${world.gpuType} guaranteed; you asked for ${amount} inside it.`,
      hint: `%gpu attach ${amount} without --guaranteed borrows beyond it`,
    };
  }
  const own = world.holdings.filter((holding) => holding.teamId === request.teamId && !holding.borrowed);
  const used = own.reduce((sum, holding) => sum + holding.milli, 0);
  return {
    rule: "guaranteed",
    message: `team ${quota?.teamName ?? ""} uses ${formatQuota(used)} of its ${formatQuota(guaranteed)} guaranteed ${world.gpuType}.`,
    hint: `%gpu attach ${amount} without --guaranteed borrows beyond it`,
    holders: holders(request, own, world.now),
  };
}

function pinnedWords(request: Waiting, why: "gone" | "draining" | "away" | "busy" | "memory", world: World): Words {
  const device = world.devices.find((candidate) => candidate.id === request.pinnedGpuId);
  const place =
    device === undefined ? "that held this notebook's parked memory" : `${device.name} on ${device.serverName}`;
  const there = world.holdings.filter((holding) => holding.gpuId === request.pinnedGpuId);
  const fresh = "restart the notebook to start without the parked memory";
  switch (why) {
    case "gone":
      return {
        rule: "pinned",
        message: `The device ${place} has left the pool; the parked memory is lost.`,
        hint: fresh,
      };
    case "draining":
      return {
        rule: "pinned",
        message: `This notebook's parked memory is on ${place}, which takes no new leases (it is being drained).`,
        hint: fresh,
      };
    case "memory":
      return {
        rule: "pinned",
        message: `${place} holds this notebook's parked memory and is too small for this amount.`,
      };
    case "away":
      return {
        rule: "pinned",
        message: `This notebook's parked memory is on ${place}, whose server is not connected.`,
      };
    case "busy":
      return {
        rule: "pinned",
        message: `This notebook's parked memory is on ${place}, which is full.`,
        hint: soonerHint(request, there, 0),
        holders: holders(request, there, world.now),
      };
  }
}

function orderWords(behind: string, world: World, fits: number): Words {
  const first = world.queue.find((waiting) => waiting.requestId === behind);
  const team = first && world.quotas.get(first.teamId)?.teamName;
  const who = first === undefined ? "Somebody" : `${first.who} (team ${team ?? "?"})`;
  const amount = first === undefined ? "" : ` for ${formatMilli(first.milli)} ${world.gpuType}`;
  return { rule: "order", message: `${who} waits first${amount}.`, ...(fits > 0 ? { hint: attachHint(fits) } : {}) };
}

function deviceWords(request: Waiting, world: World, fits: number): Words {
  const rooms = [...roomOf(world.devices, world.holdings).values()].filter((room) => room.device.state === "open");
  const [best] = rooms.sort((a, b) => b.freeMilli - a.freeMilli);
  const piece =
    best === undefined || best.freeMilli <= 0
      ? `every ${world.gpuType} device is full`
      : `the largest free piece is ${formatMilli(best.freeMilli)} of ${best.device.name} on ${best.device.serverName}`;
  const asked = request.memoryBytes > 0 ? formatBytes(request.memoryBytes) : formatMilli(request.milli);
  return {
    rule: "free-device",
    message: `No device has ${asked} free: ${piece}.`,
    hint: soonerHint(request, world.holdings, fits),
    holders: holders(request, world.holdings, world.now),
  };
}

/** Up to eight leases, the asker's own first, then those that have been idle longest. */
function holders(request: Waiting, holdings: World["holdings"], now: number): NonNullable<LeaseReason["holders"]> {
  return [...holdings]
    .sort(
      (a, b) =>
        Number(b.userId === request.userId) - Number(a.userId === request.userId) || a.lastWorkAt - b.lastWorkAt,
    )
    .slice(0, 8)
    .map((holding) => ({
      amount: formatMilli(holding.milli),
      who: holding.userId === request.userId ? "you" : holding.who,
      ...(holding.label === undefined ? {} : { label: holding.label }),
      idleSeconds: Math.max(0, Math.floor((now - holding.lastWorkAt) / 1000)),
    }));
}

function soonerHint(request: Waiting, holdings: World["holdings"], fits: number): string | undefined {
  const own = holdings
    .filter((holding) => holding.userId === request.userId && holding.label !== undefined)
    .sort((a, b) => a.lastWorkAt - b.lastWorkAt)[0];
  if (own?.label !== undefined) return `run %gpu detach in ${own.label}`;
  return fits > 0 ? attachHint(fits) : undefined;
}

const attachHint = (milli: number): string => `%gpu attach ${formatMilli(Math.max(1, milli))}`;

const present = (world: World) => world.devices.filter((device) => device.state !== "gone");

/** What a team holds of this type, thousandths. */
export function usedBy(teamId: string, world: World): number {
  return world.holdings.reduce((sum, holding) => sum + (holding.teamId === teamId ? holding.milli : 0), 0);
}

/** The most that today's rules could ever grant this request's team in one lease. */
function largestEver(request: Pick<Waiting, "teamId" | "guaranteedOnly">, world: World): number {
  const quota = world.quotas.get(request.teamId);
  if (quota === undefined || present(world).length === 0) return 0;
  return Math.max(0, Math.min(WHOLE, quota.limitMilli, request.guaranteedOnly ? quota.guaranteedMilli : WHOLE));
}

/** The most that would be granted at once if it were asked for in place of this request. */
export function fitsNow(
  request: Pick<Waiting, "requestId" | "teamId" | "guaranteedOnly" | "pinnedGpuId" | "userId" | "who">,
  world: World,
): number {
  const quota = world.quotas.get(request.teamId);
  if (quota === undefined) return 0;
  const held = world.holdings.filter((holding) => holding.teamId === request.teamId);
  const used = held.reduce((sum, holding) => sum + holding.milli, 0);
  const guaranteedUsed = held.reduce((sum, holding) => sum + (holding.borrowed ? 0 : holding.milli), 0);
  const byQuota = Math.min(
    quota.limitMilli - used,
    request.guaranteedOnly ? quota.guaranteedMilli - guaranteedUsed : WHOLE,
  );
  const rooms = [...roomOf(world.devices, world.holdings).values()].filter(
    ({ device }) => device.state === "open" && (request.pinnedGpuId === undefined || device.id === request.pinnedGpuId),
  );
  const byDevice = rooms.map((room) => Math.min(room.freeMilli, memoryInThousandths(room)));
  const candidate = Math.min(byQuota, Math.max(0, ...byDevice));
  if (candidate <= 0) return 0;
  const others = world.queue.filter((waiting) => waiting.requestId !== request.requestId);
  const asked: Waiting = {
    ...request,
    milli: candidate,
    memoryBytes: 0,
    createdAt: Number.MAX_SAFE_INTEGER,
    lengthMs: 0,
  };
  const verdict = evaluateQueue({ ...world, queue: [...others, asked] }).find((v) => v.requestId === request.requestId);
  return verdict?.state === "granted" ? candidate : 0;
}

function memoryInThousandths(room: { freeBytes: number; device: { memoryBytes: number } }): number {
  if (room.device.memoryBytes <= 0) return 0;
  return Number((BigInt(Math.max(0, room.freeBytes)) * BigInt(WHOLE)) / BigInt(room.device.memoryBytes));
}

/** What the request would be charged at least, for people. */
export function leastCharge(amount: { milli: number; memoryBytes: number }, world: World): number {
  const charges = present(world).map((device) => chargeOn(amount, device.memoryBytes));
  return charges.length > 0 ? Math.min(...charges) : amount.milli;
}
