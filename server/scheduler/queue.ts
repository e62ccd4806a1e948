/**
 * The queue of one GPU type: first come, first served, with two exceptions that keep it moving. A request that
 * only its own team's quota stops holds up that team alone; a request pinned to a device holds up that device alone.
 * Everything else that waits for a device holds up all who came later, so that a large request is not starved.
 */
import { chargeOn, memoryOn, WHOLE } from "./amount.ts";
import { bestFit, fits, type Room, roomOf, take } from "./placement.ts";
import type { Obstacle, Placement, Verdict, Waiting, World } from "./types.ts";

/** Verdicts for the whole queue in order; grants count for those behind them. Applying all of them is always safe. */
export function evaluateQueue(world: World): Verdict[] {
  const pass = new Pass(world);
  const verdicts = inOrder(world.queue).map((request) => pass.judge(request));
  const of = verdicts.filter((verdict) => verdict.state === "queued").length;
  let position = 0;
  return verdicts.map((verdict) => {
    if (verdict.state !== "queued") return verdict;
    position += 1;
    return { ...verdict, position, of };
  });
}

/** Decides one new request behind everybody who waits already. Does not judge those ahead anew for their own sake. */
export function decide(request: Waiting, world: World): Verdict {
  const others = world.queue.filter((waiting) => waiting.requestId !== request.requestId);
  const verdict = evaluateQueue({ ...world, queue: [...others, request] }).find(
    (candidate) => candidate.requestId === request.requestId,
  );
  if (verdict === undefined) throw new Error("a judged request has a verdict");
  return verdict;
}

/** Oldest first; the id breaks ties the same way everywhere. */
export function inOrder(queue: Waiting[]): Waiting[] {
  return [...queue].sort((a, b) => a.createdAt - b.createdAt || (a.requestId < b.requestId ? -1 : 1));
}

/** What one team holds: all of it, and the part inside its guaranteed quota. */
type TeamUse = { used: number; guaranteedUsed: number };

class Pass {
  readonly #world: World;
  readonly #rooms: Map<string, Room>;
  readonly #teams = new Map<string, TeamUse>();
  /** First of each team that its limit stops. */
  readonly #waitsForLimit = new Map<string, string>();
  readonly #waitsForGuaranteed = new Map<string, string>();
  /** Devices kept for a request that must be placed there. */
  readonly #kept = new Map<string, string>();
  /** The first request that waits for any device. */
  #head: string | undefined;

  constructor(world: World) {
    this.#world = world;
    this.#rooms = roomOf(world.devices, world.holdings);
    for (const holding of world.holdings) {
      const use = this.#use(holding.teamId);
      use.used += holding.milli;
      if (!holding.borrowed) use.guaranteedUsed += holding.milli;
    }
  }

  judge(request: Waiting): Verdict {
    const never = this.#neverFits(request);
    if (never) return { state: "refused", requestId: request.requestId, obstacle: never };
    const obstacle = this.#quotaObstacle(request) ?? this.#orderObstacle(request);
    if (obstacle) return this.#queued(request, obstacle);
    const room = this.#roomFor(request);
    if (room) return { state: "granted", requestId: request.requestId, placement: this.#place(request, room) };
    return this.#queued(request, this.#deviceObstacle(request));
  }

  /** Reasons for which no end of any lease would help. */
  #neverFits(request: Waiting): Obstacle | undefined {
    const quota = this.#world.quotas.get(request.teamId);
    const present = this.#world.devices.filter((device) => device.state !== "gone");
    if (quota === undefined) {
      return present.length === 0 ? { rule: "gpu-type" } : { rule: "team-limit", ever: true };
    }
    const pinned = request.pinnedGpuId === undefined ? undefined : this.#pinnedNever(request, request.pinnedGpuId);
    if (pinned) return pinned;
    const least = this.#leastCharge(request);
    if (request.memoryBytes > 0 && least > WHOLE) return { rule: "amount", why: "more-memory-than-a-device" };
    if (least > quota.limitMilli) return { rule: "team-limit", ever: true };
    if (request.guaranteedOnly && least > quota.guaranteedMilli) return { rule: "guaranteed", ever: true };
    return least > WHOLE ? { rule: "amount", why: "several-gpus" } : undefined;
  }

  #pinnedNever(request: Waiting, gpuId: string): Obstacle | undefined {
    const device = this.#rooms.get(gpuId)?.device;
    if (device === undefined || device.state === "gone") return { rule: "pinned", why: "gone" };
    if (device.state === "draining") return { rule: "pinned", why: "draining" };
    const tooMuch = request.memoryBytes > 0 && chargeOn(request, device.memoryBytes) > WHOLE;
    return tooMuch ? { rule: "pinned", why: "memory" } : undefined;
  }

  #quotaObstacle(request: Waiting): Obstacle | undefined {
    const quota = this.#world.quotas.get(request.teamId);
    const use = this.#use(request.teamId);
    const charge = this.#leastCharge(request);
    if (quota === undefined || use.used + charge > quota.limitMilli) {
      if (!this.#waitsForLimit.has(request.teamId)) this.#waitsForLimit.set(request.teamId, request.requestId);
      return { rule: "team-limit", ever: false };
    }
    if (request.guaranteedOnly && use.guaranteedUsed + charge > quota.guaranteedMilli) {
      if (!this.#waitsForGuaranteed.has(request.teamId))
        this.#waitsForGuaranteed.set(request.teamId, request.requestId);
      return { rule: "guaranteed", ever: false };
    }
    return undefined;
  }

  #orderObstacle(request: Waiting): Obstacle | undefined {
    const behind =
      this.#waitsForLimit.get(request.teamId) ??
      (request.guaranteedOnly ? this.#waitsForGuaranteed.get(request.teamId) : undefined) ??
      this.#head ??
      (request.pinnedGpuId === undefined ? undefined : this.#kept.get(request.pinnedGpuId));
    return behind === undefined ? undefined : { rule: "order", behind };
  }

  /** Rooms this request may use: its own device when pinned, else all that nobody ahead waits for. */
  #roomFor(request: Waiting): Room | undefined {
    const allowed = [...this.#rooms.values()].filter((room) => this.#mayUse(request, room));
    return bestFit(request, allowed);
  }

  #mayUse(request: Waiting, room: Room): boolean {
    if (request.pinnedGpuId !== undefined && room.device.id !== request.pinnedGpuId) return false;
    if (this.#kept.has(room.device.id)) return false;
    const quota = this.#world.quotas.get(request.teamId);
    const use = this.#use(request.teamId);
    const charge = chargeOn(request, room.device.memoryBytes);
    if (quota === undefined || use.used + charge > quota.limitMilli) return false;
    return !request.guaranteedOnly || use.guaranteedUsed + charge <= quota.guaranteedMilli;
  }

  #place(request: Waiting, room: Room): Placement {
    const milli = chargeOn(request, room.device.memoryBytes);
    const memoryBytes = memoryOn(request, room.device.memoryBytes);
    const use = this.#use(request.teamId);
    const guaranteed = this.#world.quotas.get(request.teamId)?.guaranteedMilli ?? 0;
    const borrowed = use.guaranteedUsed + milli > guaranteed;
    use.used += milli;
    if (!borrowed) use.guaranteedUsed += milli;
    take(room, { milli, memoryBytes });
    return { gpuId: room.device.id, milli, memoryBytes, borrowed };
  }

  #deviceObstacle(request: Waiting): Obstacle {
    this.#keep(request);
    const pinned = request.pinnedGpuId === undefined ? undefined : this.#rooms.get(request.pinnedGpuId);
    if (pinned) return { rule: "pinned", why: pinned.device.state === "away" ? "away" : "busy" };
    const open = this.#world.devices.some((device) => device.state === "open");
    if (!open) return { rule: "no-server" };
    const inTheWay = [...this.#rooms.values()].find((room) => fits(request, room) && this.#kept.has(room.device.id));
    const behind = inTheWay && this.#kept.get(inTheWay.device.id);
    return behind === undefined ? { rule: "free-device" } : { rule: "order", behind };
  }

  /** Makes those behind leave what this request waits for. */
  #keep(request: Waiting): void {
    if (request.pinnedGpuId === undefined) this.#head ??= request.requestId;
    else if (!this.#kept.has(request.pinnedGpuId)) this.#kept.set(request.pinnedGpuId, request.requestId);
  }

  #leastCharge(request: Waiting): number {
    const devices = this.#world.devices.filter((device) =>
      request.pinnedGpuId === undefined ? device.state !== "gone" : device.id === request.pinnedGpuId,
    );
    if (devices.length === 0) return request.milli;
    return Math.min(...devices.map((device) => chargeOn(request, device.memoryBytes)));
  }

  #use(teamId: string): TeamUse {
    const known = this.#teams.get(teamId);
    if (known) return known;
    const fresh = { used: 0, guaranteedUsed: 0 };
    this.#teams.set(teamId, fresh);
    return fresh;
  }

  #queued(request: Waiting, obstacle: Obstacle): Verdict {
    return { state: "queued", requestId: request.requestId, position: 0, of: 0, obstacle };
  }
}
