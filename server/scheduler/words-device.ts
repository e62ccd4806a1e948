/** Sentences for what devices, the order and the rules of the pool stop. */
import { meets } from "./allowed.ts";
import { formatBytes, formatMilli } from "./amount.ts";
import { attachHint, holders, holdingsOf, soonerHint } from "./holders.ts";
import { reservationIdOf } from "./reservation.ts";
import { type Room, roomOf } from "./room.ts";
import { type Seen, waiterSeen } from "./seen-by.ts";
import type { Needs, Obstacle, Waiting, World } from "./types.ts";
import { scaledDown, type Words } from "./words-quota.ts";
import { reservedFor, reservedForOthers } from "./words-reservation.ts";

export function amountWords(
  request: Waiting,
  why: Extract<Obstacle, { rule: "amount" }>["why"],
  world: World,
  largest: number,
): Words {
  if (why === "several-gpus") {
    return {
      rule: "amount",
      message: `This program can use at most ${request.maxDevices ?? 1} GPU at once; you asked for ${formatMilli(request.milli)}.`,
      hint: attachHint(largest),
    };
  }
  if (why === "more-than-the-pool") {
    const there = world.devices.filter((device) => device.state !== "gone").length;
    return {
      rule: "amount",
      message: `The pool has ${there} ${world.gpuType}; you asked for ${formatMilli(request.milli)} at once.`,
      hint: attachHint(largest),
    };
  }
  const present = world.devices.filter((device) => device.state !== "gone");
  const most = Math.max(0, ...present.map((device) => device.memoryBytes));
  return {
    rule: "amount",
    message: `You asked for ${formatBytes(request.memoryBytes)} of GPU memory; the largest ${world.gpuType} device has ${formatBytes(most)} for leases.`,
    hint: attachHint(largest),
  };
}

export function pinnedWords(
  request: Waiting,
  why: "gone" | "draining" | "away" | "busy" | "memory",
  world: Seen,
): Words {
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
        holders: holders(request, there, world),
      };
  }
}

export function orderWords(request: Waiting, behind: string, world: Seen, fits: number): Words {
  const first = world.queue.find((waiting) => waiting.requestId === behind);
  const team = first && world.quotas.get(first.teamId)?.teamName;
  const reserved = world.reservations?.find((reservation) => reservation.id === reservationIdOf(behind));
  const nobody = reserved === undefined ? "Somebody" : `By a reservation ${reservedFor(reserved, world)}`;
  const who = first === undefined ? nobody : `${waiterSeen(first, world)} (team ${team ?? "?"})`;
  const amount = first === undefined ? "" : ` for ${formatMilli(first.milli)} ${world.gpuType}`;
  return {
    rule: "order",
    message: [`${who} waits first${amount}.`, scaledDown(request.teamId, world)].filter(Boolean).join(" "),
    ...(fits > 0 ? { hint: attachHint(fits) } : {}),
  };
}

export function deviceWords(request: Waiting, world: Seen, fits: number): Words {
  let best: Room | undefined;
  for (const room of roomOf(world.devices, world.holdings).values()) {
    if (room.device.state === "open" && room.freeMilli > (best?.freeMilli ?? Number.NEGATIVE_INFINITY)) best = room;
  }
  const piece =
    best === undefined || best.freeMilli <= 0
      ? `every ${world.gpuType} device that takes leases is full`
      : `the largest free piece is ${formatMilli(best.freeMilli)} of ${best.device.name} on ${best.device.serverName}`;
  const asked = request.memoryBytes > 0 ? formatBytes(request.memoryBytes) : formatMilli(request.milli);
  return {
    rule: "free-device",
    message: [
      `No device has ${asked} free: ${piece}.`,
      drainedWords(request, world),
      reservedForOthers(request, world),
      scaledDown(request.teamId, world),
    ]
      .filter(Boolean)
      .join(" "),
    hint: soonerHint(request, world.holdings, fits),
    holders: holders(request, world.holdings, world),
  };
}

/** No device of the type takes leases: drained, or its server is not connected. */
export function noServerWords(request: Waiting, world: World): Words {
  return {
    rule: "no-server",
    message: [
      `No GPU server with ${world.gpuType} takes leases just now; the request waits until one does.`,
      drainedWords(request, world),
    ]
      .filter(Boolean)
      .join(" "),
  };
}

/** So many drained devices are named one by one. */
const NAMED = 2;

/** Which devices that would do for this request are being drained; nothing when none is. */
function drainedWords({ needs }: Waiting, world: World): string | undefined {
  const drained = world.devices.filter(
    (device) => device.state === "draining" && (needs === undefined || meets(needs, device)),
  );
  if (drained.length === 0) return undefined;
  const names = drained.slice(0, NAMED).map(({ name, serverName }) => `${name} on ${serverName}`);
  if (drained.length > NAMED) names.push(`${drained.length - NAMED} more`);
  const last = names.pop() ?? "";
  const whole = names.length === 0 ? last : `${names.join(", ")} and ${last}`;
  return drained.length === 1
    ? `${whole} is being drained and takes no new leases.`
    : `${whole} are being drained and take no new leases.`;
}

/** Room is being made for it. */
export function reclaimWords(
  request: Waiting,
  obstacle: Extract<Obstacle, { rule: "reclaim" }>,
  world: Seen,
  fits: number,
): Words {
  const taken = holdingsOf(obstacle.leaseIds, world.holdings);
  const seconds = Math.max(0, Math.ceil((obstacle.releaseAt - world.now) / 1000));
  return {
    rule: "reclaim",
    message: [
      `Your team is below its guaranteed quota: room is being made, in ${seconds} s at the latest.`,
      scaledDown(request.teamId, world),
    ]
      .filter(Boolean)
      .join(" "),
    ...(fits > 0 ? { hint: attachHint(fits) } : {}),
    holders: holders(request, taken, world),
  };
}

/** An admin has stopped new leases. */
export function stoppedWords(scope: "all" | "team" | "user", reason: string): Words {
  const whom = { all: "New leases are", team: "New leases of your team are", user: "Your new leases are" }[scope];
  return { rule: "stopped", message: `${whom} stopped: ${reason}`, hint: "ask an admin when they begin again" };
}

/** The type takes another kind of work now. */
export function calendarWords(request: Waiting, opensAt: number | undefined, world: World): Words {
  const kind = request.kind ?? "interactive";
  const from =
    opensAt === undefined ? "" : ` until ${new Date(opensAt).toISOString().slice(0, 16).replace("T", " ")} UTC`;
  return {
    rule: "calendar",
    message: `${world.gpuType} takes no ${kind} work${from}.`,
    hint: "%gpu free shows other types",
  };
}

/** No device of the type has what the environment needs. */
export function needsWords(needs: Needs | undefined, world: World): Words {
  const cuda = (version: number) => `${Math.floor(version / 1000)}.${Math.floor((version % 1000) / 10)}`;
  const parts = [
    needs?.zone === undefined ? [] : [`zone ${needs.zone}`],
    needs?.maxRttUs === undefined ? [] : [`at most ${needs.maxRttUs / 1000} ms away`],
    needs?.minCudaVersion === undefined ? [] : [`CUDA ${cuda(needs.minCudaVersion)} or later`],
    needs?.minDriverVersion === undefined ? [] : [`driver ${needs.minDriverVersion} or later`],
  ].flat();
  return {
    rule: "needs",
    message: `No ${world.gpuType} device has what this environment needs (${parts.join(", ")}).`,
    hint: "choose another GPU type or an environment that needs less",
  };
}
