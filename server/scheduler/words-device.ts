/** Sentences for what devices, the order and the rules of the pool stop. */
import { coTenancyIn, mayJoin, meets } from "./allowed.ts";
import { chargeOn, formatBytes, formatMilli } from "./amount.ts";
import { inUtc } from "./calendar.ts";
import { attachHint, holders, holdingsOf, soonerHint } from "./holders.ts";
import { devicesOf } from "./placement.ts";
import { reservationIdOf } from "./reservation.ts";
import { type Room, roomOf } from "./room.ts";
import { askerSeen, isAsker, type Seen, waiterSeen } from "./seen-by.ts";
import type { Needs, Obstacle, Stop, Waiting, World } from "./types.ts";
import { scaledDown, type Words } from "./words-quota.ts";
import { reservedFor, reservedForOthers } from "./words-reservation.ts";

export function amountWords(
  request: Waiting,
  why: Extract<Obstacle, { rule: "amount" }>["why"],
  world: Seen,
  largest: number,
): Words {
  const asker = askerSeen(request, world);
  if (why === "several-gpus") {
    return {
      rule: "amount",
      message: `This program can use at most ${request.maxDevices ?? 1} GPU at once; ${asker} asked for ${formatMilli(request.milli)}.`,
      hint: attachHint(largest, world),
    };
  }
  if (why === "more-than-the-pool") {
    const there = world.devices.filter((device) => device.state !== "gone").length;
    return {
      rule: "amount",
      message: `The pool has ${there} ${world.gpuType}; ${asker} asked for ${formatMilli(request.milli)} at once.`,
      hint: attachHint(largest, world),
    };
  }
  const present = world.devices.filter((device) => device.state !== "gone");
  const most = Math.max(0, ...present.map((device) => device.memoryBytes));
  return {
    rule: "amount",
    message: `${asker === "you" ? "You" : asker} asked for ${formatBytes(request.memoryBytes)} of GPU memory; the largest ${world.gpuType} device has ${formatBytes(most)} for leases.`,
    hint: attachHint(largest, world),
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
        hint: soonerHint(request, there, 0, world),
        holders: holders(request, there, world),
      };
  }
}

export function orderWords(request: Waiting, behind: string, world: Seen, fits: number): Words {
  const first = world.queue.find((waiting) => waiting.requestId === behind);
  const team = first && world.quotas.get(first.teamId)?.teamName;
  const reserved = world.reservations?.find((reservation) => reservation.id === reservationIdOf(behind));
  const ahead =
    first !== undefined
      ? `${waiterSeen(first, world)} (team ${team ?? "?"}) waits first for ${formatMilli(first.milli)} ${world.gpuType}.`
      : reserved !== undefined
        ? `A reservation for ${reservedFor(reserved, world)} comes first.`
        : "Somebody waits first.";
  return {
    rule: "order",
    message: [ahead, scaledDown(request.teamId, world)].filter(Boolean).join(" "),
    ...(fits > 0 ? { hint: attachHint(fits, world) } : {}),
  };
}

export function deviceWords(request: Waiting, world: Seen, fits: number): Words {
  return {
    rule: "free-device",
    message: [
      freeWords(request, world),
      drainedWords(request, world),
      reservedForOthers(request, world),
      scaledDown(request.teamId, world),
    ]
      .filter(Boolean)
      .join(" "),
    hint: soonerHint(request, world.holdings, fits, world),
    holders: holders(request, world.holdings, world),
  };
}

/** What is free of the devices on which the request may lie, and why that does not serve it. */
function freeWords(request: Waiting, world: World): string {
  const open = [...roomOf(world.devices, world.holdings).values()].filter(
    ({ device }) => device.state === "open" && meets(request.needs, device),
  );
  const policyOf = coTenancyIn(world.quotas);
  const rooms = policyOf === undefined ? open : open.filter((room) => mayJoin(request.teamId, room, policyOf));
  const count = devicesOf(request);
  if (count > 1) {
    const whole = rooms.filter(({ leases }) => leases === 0).length;
    const free = `${whole} whole ${world.gpuType} ${whole === 1 ? "device is" : "devices are"} free`;
    return whole < count ? `${free}, of ${count} that it takes.` : `${free} and kept for others.`;
  }
  const asked = request.memoryBytes > 0 ? formatBytes(request.memoryBytes) : formatMilli(request.milli);
  const largest = (of: readonly Room[]) =>
    of.reduce<Room | undefined>((best, room) => (room.freeMilli > (best?.freeMilli ?? 0) ? room : best), undefined);
  const pieceOf = ({ freeMilli, device }: Room) =>
    `${formatMilli(freeMilli)} of ${device.name} on ${device.serverName}`;
  const wide = rooms.find(
    (room) => chargeOn(request, room.device.memoryBytes) <= room.freeMilli && request.memoryBytes <= room.freeBytes,
  );
  if (wide !== undefined) return `${pieceOf(wide)} is free and kept for others.`;
  const best = largest(rooms);
  if (best !== undefined) return `No device has ${asked} free: the largest free piece is ${pieceOf(best)}.`;
  return largest(open) === undefined
    ? `No device has ${asked} free: every ${world.gpuType} device that takes leases is full.`
    : `No device has ${asked} free: what is free lies on cards that are not shared between these teams.`;
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
      `${teamSeen(request, world)} is below its guaranteed quota: room is being made, in ${seconds} s at the latest.`,
      scaledDown(request.teamId, world),
    ]
      .filter(Boolean)
      .join(" "),
    ...(fits > 0 ? { hint: attachHint(fits, world) } : {}),
    holders: holders(request, taken, world),
  };
}

/** An admin has stopped new leases. Why those of one person are is between the two of them and other admins. */
export function stoppedWords(request: Waiting, { scope, reason }: Pick<Stop, "scope" | "reason">, world: Seen): Words {
  const own = isAsker(request, world);
  const team = teamSeen(request, world);
  const whom = {
    all: "New leases are stopped",
    team: `New leases of ${team === YOUR_TEAM ? "your team" : team} are stopped`,
    user: own ? "Your new leases are stopped" : `New leases of ${waiterSeen(request, world)} are stopped`,
  }[scope];
  const told = scope !== "user" || own || world.reader.seesAll;
  return {
    rule: "stopped",
    message: told ? `${whom}: ${reason}` : `${whom} by an admin.`,
    hint: "ask an admin when they begin again",
  };
}

const YOUR_TEAM = "Your team";

/** The team of the request at the beginning of a sentence. */
function teamSeen({ teamId }: Waiting, { reader, quotas }: Seen): string {
  return reader.teamIds.includes(teamId) ? YOUR_TEAM : `team ${quotas.get(teamId)?.teamName ?? "?"}`;
}

/** The type takes another kind of work now. */
export function calendarWords(request: Waiting, opensAt: number | undefined, world: World): Words {
  const kind = request.kind ?? "interactive";
  const from = opensAt === undefined ? "" : ` until ${inUtc(opensAt)}`;
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
